//! Finds the failed tests in the output of `cargo test`, and decides whether they may be repeated.
//!
//! Only tests with real processes may be repeated: the failure of any other test is an error, however busy the machine
//! is.

use std::sync::{Arc, Mutex};

use crate::steps::lock;

/// Maximum number of failed tests that are repeated; more are not an accident.
const MOST: usize = 5;
/// Source file of the tests with real processes, as cargo prints it.
const REAL: &str = "tests/end_to_end/main.rs";

/// Failures so far. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Failures {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// Whether the tests with real processes are running.
    real: bool,
    failed: Vec<String>,
    /// Failed tests of other programs.
    others: Vec<String>,
    /// Whether something failed that may not be repeated: another test, or a build.
    other: bool,
}

impl Failures {
    /// Reads a line of the output of cargo or of a test program.
    pub(crate) fn see(&self, line: &str) {
        let mut seen = lock(&self.seen);
        let words = line.trim_start();
        if words.starts_with("Running ") || words.starts_with("Doc-tests ") {
            seen.real = words.contains(REAL);
        } else if let Some(name) = failed_test(line) {
            match seen.real {
                true => seen.failed.push(name.to_owned()),
                false => {
                    seen.other = true;
                    seen.others.push(name.to_owned());
                }
            }
        } else if is_other(words) || (seen.real && failures(line).is_some_and(|number| number != seen.failed.len())) {
            seen.other = true;
        }
    }

    /// Returns every failed test, so that none is overlooked in a long log.
    pub(crate) fn all(&self) -> Vec<String> {
        let seen = lock(&self.seen);
        seen.others.iter().chain(&seen.failed).cloned().collect()
    }

    /// Returns the tests to repeat; `None` if there are too many, or something else failed.
    pub(crate) fn to_retry(&self) -> Option<Vec<String>> {
        let seen = lock(&self.seen);
        (!seen.other && (1..=MOST).contains(&seen.failed.len())).then(|| seen.failed.clone())
    }
}

/// Returns the name of a failed test, if no other output is in its line.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Returns the number of failed tests of a program, from its last line: a test whose own line was not recognised must
/// not be lost.
fn failures(line: &str) -> Option<usize> {
    line.strip_prefix("test result: FAILED. ")?.split("; ").find_map(|part| part.strip_suffix(" failed"))?.parse().ok()
}

/// Returns whether cargo reports that something else has failed: a build, another program, or a program that crashed.
fn is_other(words: &str) -> bool {
    let tests = words.starts_with("error: test failed") && !words.contains("--test end_to_end`");
    let others = ["error: could not compile", "error: doctest failed", "process didn't exit successfully"];
    tests || others.iter().any(|beginning| words.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_retry(lines: &[&str]) -> Option<Vec<String>> {
        let failures = Failures::default();
        lines.iter().for_each(|line| failures.see(line));
        failures.to_retry()
    }

    const BEGIN: &str = "     Running tests/end_to_end/main.rs (/t/debug/deps/end_to_end-1)";
    const END: [&str; 2] =
        ["error: test failed, to rerun pass `-p tepui --test end_to_end`", "error: 1 target failed:"];

    #[test]
    fn only_tests_with_real_processes_are_tried_again() {
        let failed = "test containers::roots ... FAILED";
        assert_eq!(
            to_retry(&[BEGIN, failed, "test a ... ok", END[0], END[1]]),
            Some(vec!["containers::roots".to_owned()])
        );
        assert_eq!(to_retry(&[BEGIN, failed, "   Doc-tests base", "test b ... FAILED"]), None);
        assert_eq!(to_retry(&["     Running unittests src/lib.rs (/t/debug/deps/a-1)", failed]), None);
        assert_eq!(to_retry(&[BEGIN, failed, "error: test failed, to rerun pass `-p base --lib`"]), None);
        assert_eq!(to_retry(&[BEGIN, failed, "  process didn't exit successfully: `end_to_end` (signal: 11)"]), None);
        assert_eq!(to_retry(&[BEGIN, failed, "error: could not compile `a` (lib) due to 1 previous error"]), None);
        assert_eq!(to_retry(&[BEGIN, "test a ... ok"]), None);
        let sum = |number: usize| format!("test result: FAILED. 36 passed; {number} failed; 0 ignored; 0 measured");
        assert_eq!(to_retry(&[BEGIN, failed, &sum(1)]), Some(vec!["containers::roots".to_owned()]));
        assert_eq!(to_retry(&[BEGIN, failed, "wordtest video::cut ... FAILED", &sum(2)]), None);
        assert_eq!(to_retry(&[[BEGIN].as_slice(), &[failed; MOST + 1]].concat()), None);
    }

    #[test]
    fn all_that_failed_is_named() {
        let failures = Failures::default();
        let unit = "     Running unittests src/lib.rs (/t/debug/deps/a-1)";
        for line in [unit, "test a::b ... FAILED", "test a::c ... ok", BEGIN, "test containers::roots ... FAILED"] {
            failures.see(line);
        }
        assert_eq!(failures.all(), ["a::b", "containers::roots"]);
    }
}
