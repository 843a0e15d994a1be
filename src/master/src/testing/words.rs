//! One line of a script: a command, its arguments, and `name=value` options.

use std::time::Duration;

/// A line split at blanks.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    /// Splits a line at blanks.
    pub fn new(line: &'a str) -> Words<'a> {
        Words { words: line.split_whitespace().collect() }
    }

    /// Returns the argument at an index, with the command at 0; options do not count. Empty if it is missing.
    pub fn at(&self, index: usize) -> &'a str {
        self.plain().nth(index).unwrap_or_default()
    }

    /// Returns the arguments from an index on.
    pub fn from(&self, index: usize) -> Vec<&'a str> {
        self.plain().skip(index).collect()
    }

    fn plain(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.words.iter().copied().filter(|word| !word.contains('='))
    }

    /// Returns the value of an option.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
    }

    /// Returns all options, in the order of the line.
    pub fn options(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        self.words.iter().filter_map(|word| word.split_once('='))
    }

    /// Returns the values of an option, which are separated by commas.
    pub fn list(&self, name: &str) -> Vec<&'a str> {
        self.get(name).map(|text| text.split(',').filter(|item| !item.is_empty()).collect()).unwrap_or_default()
    }

    /// Returns the value of an option as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(|text| text.parse().ok())
    }

    /// Returns whether the line contains a word without a value.
    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
}

/// Parses a duration such as `15secs`; no other form is valid here.
pub(super) fn duration(text: &str) -> Option<Duration> {
    base::parse_duration(text).ok()
}
