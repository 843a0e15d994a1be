//! One line of a script: a command, its arguments, and `name=value` options.

use std::time::Duration;

/// A line taken apart at blanks.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    /// Takes a line apart.
    pub fn new(line: &'a str) -> Words<'a> {
        Words { words: line.split_whitespace().collect() }
    }

    /// The argument at that position, the command being at 0; options do not count. Empty if missing.
    pub fn at(&self, index: usize) -> &'a str {
        self.plain().nth(index).unwrap_or_default()
    }

    /// The arguments from that place on.
    pub fn from(&self, index: usize) -> Vec<&'a str> {
        self.plain().skip(index).collect()
    }

    fn plain(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.words.iter().copied().filter(|word| !word.contains('='))
    }

    /// An option's value.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
    }

    /// All options, in the order of the line.
    pub fn options(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        self.words.iter().filter_map(|word| word.split_once('='))
    }

    /// An option's values, parted by commas.
    pub fn list(&self, name: &str) -> Vec<&'a str> {
        self.get(name).map(|text| text.split(',').filter(|item| !item.is_empty()).collect()).unwrap_or_default()
    }

    /// An option that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(|text| text.parse().ok())
    }

    /// Whether the bare word is there.
    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
}

/// Reads a duration such as `15secs`; nothing else is a duration here.
pub(super) fn duration(text: &str) -> Option<Duration> {
    base::parse_duration(text).ok()
}
