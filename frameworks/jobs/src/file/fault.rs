//! What is wrong with a job file: where, and which rule it breaks.

use std::fmt;

use serde::Serialize;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The file's name, as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// The rule, in words.
    pub rule: String,
}

/// As compilers write it, so that editors find the place: `jobs.toml:3:8: cpus must be above 0`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.rule)
    }
}

/// Everything that is wrong with a file, in its order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

/// One line a fault.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if place > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

/// Collects faults of one file while it is read.
#[derive(Debug)]
pub struct Collector<'a> {
    file: &'a str,
    text: &'a str,
    faults: Vec<(usize, String)>,
}

/// Number of faults that are reported.
const FAULTS_MAX: usize = 50;

impl<'a> Collector<'a> {
    /// For this file, with this text.
    pub fn new(file: &'a str, text: &'a str) -> Collector<'a> {
        Collector { file, text, faults: Vec::new() }
    }

    /// Notes that the rule is broken at this byte of the file.
    pub fn add(&mut self, at: usize, rule: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push((at, rule.into()));
        }
    }

    /// Whether no more are noted.
    pub fn is_full(&self) -> bool {
        self.faults.len() >= FAULTS_MAX
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// How many there are so far.
    pub fn len(&self) -> usize {
        self.faults.len()
    }

    /// The faults in the order of the file, if there are any.
    pub fn finish(mut self) -> Result<(), Faults> {
        if self.faults.is_empty() {
            return Ok(());
        }
        self.faults.sort_by_key(|(at, _)| *at);
        Err(Faults(self.faults.iter().map(|(at, rule)| self.fault(*at, rule)).collect()))
    }

    fn fault(&self, at: usize, rule: &str) -> Fault {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |place| place + 1);
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        let column = 1 + String::from_utf8_lossy(&before[line_start..]).chars().count();
        Fault { file: self.file.to_owned(), line, column, rule: rule.to_owned() }
    }
}
