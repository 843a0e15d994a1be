//! Faults of a job file: their places, and the rules that they break.

use std::fmt;

use serde::Serialize;

/// A place in a job file that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Name of the file, as it was given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Character in that line, from 1.
    pub column: usize,
    /// Rule that is broken, in words.
    pub rule: String,
}

/// Writes the fault as compilers do, so that editors find the place: `jobs.toml:3:8: cpus must be above 0`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.rule)
    }
}

/// All faults of a file, in its order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

/// Writes one line for each fault.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if place > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

/// Collects the faults of one file while it is parsed.
#[derive(Debug)]
pub struct Collector<'a> {
    file: &'a str,
    text: &'a str,
    faults: Vec<(usize, String)>,
}

/// Maximum number of faults that are reported.
const FAULTS_MAX: usize = 50;

impl<'a> Collector<'a> {
    /// Creates a collector for a file with this name and text.
    pub fn new(file: &'a str, text: &'a str) -> Collector<'a> {
        Collector { file, text, faults: Vec::new() }
    }

    /// Records that the rule is broken at this byte of the file.
    pub fn add(&mut self, at: usize, rule: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push((at, rule.into()));
        }
    }

    /// Returns whether further faults are dropped.
    pub fn is_full(&self) -> bool {
        self.faults.len() >= FAULTS_MAX
    }

    /// Returns whether there are no faults so far.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns the number of faults so far.
    pub fn len(&self) -> usize {
        self.faults.len()
    }

    /// Returns the faults in the order of the file as an error, if there are any.
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
