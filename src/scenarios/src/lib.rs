//! Golden scenarios: text files of inputs with the expected outputs of a core.
//!
//! A crate's test passes a function to [`check`] that runs one file. The crate defines the meaning of the lines.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// Name of the environment variable that makes [`check`] rewrite the files with the actual outputs.
pub const UPDATE: &str = "UPDATE_SCENARIOS";

/// Runs every file of `directory` and compares the result with the file. `play` returns the inputs of a scenario with
/// their actual outputs.
///
/// # Panics
/// Panics if a file differs, with the first different line, or if there are fewer than `least` files.
pub fn check(directory: impl AsRef<Path>, least: usize, play: impl Fn(&str) -> String) {
    let directory = directory.as_ref();
    let files = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let files = files.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = files.iter().map(fs::DirEntry::path).collect();
    files.sort();
    assert!(files.len() >= least, "{} has {} scenarios, not {least}", directory.display(), files.len());
    let wrong: Vec<String> = files.iter().filter_map(|file| check_one(file, &play)).collect();
    assert!(wrong.is_empty(), "set {UPDATE} if this is right:\n{}", wrong.join("\n"));
}

/// Runs one file. Returns the difference, unless there is none or the file is rewritten.
fn check_one(file: &Path, play: &impl Fn(&str) -> String) -> Option<String> {
    let expected = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let actual = play(&expected);
    let difference = difference(&expected, &actual)?;
    if std::env::var_os(UPDATE).is_none() {
        return Some(format!("{}, {difference}", file.display()));
    }
    fs::write(file, actual).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    None
}

/// Returns the first line in which two texts differ, with the two lines above it; `None` if they are equal.
fn difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let same = expected.lines().zip(actual.lines()).take_while(|(a, b)| a == b).count();
    let above = expected.lines().take(same).skip(same.saturating_sub(2)).map(|line| format!("            {line}\n"));
    let line = |text: &str| text.lines().nth(same).unwrap_or("the end of the file").to_owned();
    Some(format!(
        "line {}:\n{}  expected: {}\n  actual:   {}",
        same + 1,
        above.collect::<String>(),
        line(expected),
        line(actual)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_different_line_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let found = difference("a\nb\nc\nd\n", "a\nb\nc\nx\n").unwrap();
        assert_eq!(found, "line 4:\n            b\n            c\n  expected: d\n  actual:   x");
        assert!(difference("a\nb\n", "a\n").unwrap().ends_with("expected: b\n  actual:   the end of the file"));
    }
}
