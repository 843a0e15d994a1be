//! `cargo xtask bench`: runs the benchmarks, each a program that prints its figures.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{binary, cargo, root, steps};

/// A benchmark: its package, its name, and whether it is one of a framework.
type Bench = (String, String, bool);

/// Name that stands for all benchmarks of the frameworks.
const FRAMEWORKS: &str = "frameworks";

/// Runs benchmarks one after the other: those whose name is one of the names in `words`, otherwise those whose name
/// contains one, or all. `frameworks` stands for all of frameworks/*/benches. Flags after the names are passed to the
/// benchmark.
///
/// # Errors
/// A benchmark failed, none has such a name, or flags are given and not exactly one benchmark has such a name.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let (filters, arguments) = split(words);
    let found = benches()?;
    let wanted = |(package, name, framework): &Bench| {
        let exact = |f: &String| found.iter().any(|(_, other, _)| other == f);
        let named = |f: &String| if exact(f) { name == f } else { name.contains(f.as_str()) || package == f };
        let one = |f: &String| named(f) || (*framework && f == FRAMEWORKS);
        filters.is_empty() || filters.iter().any(one)
    };
    let found: Vec<Bench> = found.iter().filter(|bench| wanted(bench)).cloned().collect();
    if found.is_empty() {
        bail!("no benchmark has '{}' in its name", filters.join("' or '"));
    }
    if !arguments.is_empty() && found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|(_, name, _)| name.as_str()).collect();
        let arguments = arguments.join(" ");
        bail!("'{arguments}' is for one benchmark, which must be named: one of {}", names.join(", "));
    }
    // Only the benchmarks of the whole, of the laboratory and of frameworks start the binary.
    if found.iter().any(|(package, _, framework)| package == "tepui" || package == "lab" || *framework) {
        steps::run(&mut cargo(&["build", "--release", "--package", "tepui"]))?;
    }
    let mut steps = steps::Steps::default();
    for (package, name, framework) in &found {
        let step: &'static str = if *framework { format!("{package}: {name}").leak() } else { name.clone().leak() };
        steps.run(step, || {
            let mut command = cargo(&["bench", "--package", package, "--bench", name]);
            if *framework {
                command.arg("--all-features");
            }
            command.arg("--").args(arguments);
            steps::run(command.env("TEPUI", binary()))
        });
    }
    steps.finish()
}

/// Splits words into the names of benchmarks and the arguments of a benchmark, which begin with the first flag or after
/// `--`.
fn split(words: &[String]) -> (&[String], &[String]) {
    let names = words.iter().take_while(|word| !word.starts_with('-')).count();
    let (names, rest) = words.split_at(names);
    match rest {
        [first, rest @ ..] if first == "--" => (names, rest),
        rest => (names, rest),
    }
}

/// Returns the files of all packages' `benches` directories, sorted.
fn benches() -> Result<Vec<Bench>> {
    let mut found = Vec::new();
    for (package, directory) in crate::tidy::packages(&root())? {
        let benches = directory.join("benches");
        for path in rust_files(&benches)? {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((package.clone(), name, directory.starts_with(root().join(FRAMEWORKS))));
        }
    }
    found.sort();
    Ok(found)
}

fn rust_files(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let paths: std::io::Result<Vec<PathBuf>> = entries.map(|e| e.map(|e| e.path())).collect();
    Ok(paths?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "rs")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_what_follows_two_dashes_are_for_the_benchmark() {
        for (line, names, arguments) in [
            ("", "", ""),
            ("decode burst", "decode burst", ""),
            ("truth --truth DIR --model FILE", "truth", "--truth DIR --model FILE"),
            ("core -- failover", "core", "failover"),
            ("truth -- --truth DIR -- x", "truth", "--truth DIR -- x"),
            ("--quick tasks", "", "--quick tasks"),
            ("tasks --", "tasks", ""),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let (left, right) = split(&words);
            assert_eq!((left.join(" "), right.join(" ")), (names.to_owned(), arguments.to_owned()), "{line}");
        }
    }
}
