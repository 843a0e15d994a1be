//! Replays the corpora: every file of `fuzz/corpus/NAME` passes the check of the target `NAME`. Every target must have
//! a program and a corpus.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use fuzzed::TARGETS;

/// Least number of files of a corpus.
const FILES_MIN: usize = 8;
/// Maximum size of a file: larger ones slow a fuzzer down, and do not belong in a repository.
const BYTES_MAX: usize = 64 << 10;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns the files of a directory, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn names(files: &[PathBuf]) -> BTreeSet<String> {
    files.iter().map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len());
    assert_eq!(names(&files(&fuzz().join("fuzz_targets"))), targets);
    assert_eq!(names(&files(&fuzz().join("corpus"))), targets);
    let manifest: toml::Table = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap().parse().unwrap();
    let programs =
        manifest["bin"].as_array().unwrap().iter().map(|program| program["name"].as_str().unwrap().to_owned());
    assert_eq!(programs.collect::<BTreeSet<String>>(), targets);
    for target in &targets {
        let program = fs::read_to_string(fuzz().join(format!("fuzz_targets/{target}.rs"))).unwrap();
        assert!(program.contains(&format!("fuzzed::{target}(data)")), "{target}");
    }
}

#[test]
fn every_file_passes_its_check() {
    let mut failed = Vec::new();
    for (name, check) in TARGETS {
        let files = files(&fuzz().join("corpus").join(name));
        assert!(files.len() >= FILES_MIN, "{name} has {} files, and {FILES_MIN} are the least", files.len());
        for file in files {
            let bytes = fs::read(&file).unwrap();
            assert!(bytes.len() <= BYTES_MAX, "{} has {} bytes", file.display(), bytes.len());
            // The first half of a file is another input.
            for part in [&bytes[..], &bytes[..bytes.len() / 2]] {
                if catch_unwind(|| check(part)).is_err() {
                    failed.push(format!("{} ({} bytes)", file.display(), part.len()));
                }
            }
        }
    }
    assert!(failed.is_empty(), "these inputs fail:\n{}", failed.join("\n"));
}
