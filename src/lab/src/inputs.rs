//! Digests of the files that a scenario reads (traces, job files, profiles), to detect changes.
//!
//! The files are not interpreted.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::scenario::ScenarioError;

/// Returns a line for each file, as a TOML comment: its name relative to `directory`, and a digest of its content. For
/// a directory, the digest covers all of its files.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn digests(files: &BTreeSet<PathBuf>, directory: &Path) -> Result<String, ScenarioError> {
    let mut lines = String::new();
    for file in files {
        let unread =
            |why: io::Error| ScenarioError { file: file.clone(), line: 1, rule: format!("cannot be read: {why}") };
        let digest = digest(file).map_err(unread)?;
        let name = file.strip_prefix(directory).unwrap_or(file);
        // Writing to a string cannot fail. `Debug` escapes a line break in a name.
        let _ = writeln!(lines, "# with {name:?}, {}", base::hex(&digest));
    }
    Ok(lines)
}

fn digest(path: &Path) -> io::Result<[u8; 32]> {
    if !std::fs::metadata(path)?.is_dir() {
        return of_file(path);
    }
    let mut hash = Sha256::new();
    let entries: io::Result<BTreeSet<PathBuf>> = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect();
    for file in entries?.iter().filter(|file| file.is_file()) {
        hash.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update(of_file(file)?);
    }
    Ok(hash.finalize().into())
}

/// Returns the digest of a file, which may have gigabytes and is never in memory as a whole.
fn of_file(path: &Path) -> io::Result<[u8; 32]> {
    let (mut file, mut hash) = (BufReader::new(File::open(path)?), Sha256::new());
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            return Ok(hash.finalize().into());
        }
        hash.update(part);
        let length = part.len();
        file.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_counts_and_every_byte() {
        let directory = std::env::temp_dir().join(format!("tepui-lab-inputs-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join("profiles")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
        let files = BTreeSet::from([directory.join("a.csv"), directory.join("profiles")]);
        let now = || digests(&files, &directory).unwrap();
        write("a.csv", "1");
        write("profiles/b.json", "2");
        let first = now();
        assert!(first.lines().count() == 2 && first.contains("\"a.csv\""), "{first}");
        assert_eq!(first, now());
        write("a.csv", "3");
        let second = now();
        write("profiles/b.json", "4");
        let third = now();
        write("profiles/c.json", "4");
        let all = BTreeSet::from([first, second, third, now()]);
        assert_eq!(all.len(), 4, "{all:?}");
        std::fs::remove_file(directory.join("a.csv")).unwrap();
        assert!(digests(&files, &directory).unwrap_err().to_string().contains("a.csv"));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
