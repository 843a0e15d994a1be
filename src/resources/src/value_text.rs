//! Parses one value of a flag: `12.5`, `[1-5,7-9]`, `{a,b}`, or any other word.

use crate::{ItemSet, Ranges};

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    /// A number, not yet rounded to thousandths.
    Number(f64),
    /// Intervals, not yet coalesced: one may be inverted.
    Ranges(Vec<(u64, u64)>),
    /// A set of words.
    Set(ItemSet),
    /// Any other text, without its blanks.
    Text(String),
}

/// An error of a text that is not a value. The messages are Mesos's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueTextError {
    /// The text is empty or contains only blanks.
    #[error("Expecting non-empty string")]
    Empty,
    /// A bracket is not balanced.
    #[error("Mismatched brackets")]
    Brackets,
    /// The ranges have an odd number of ends.
    #[error("Expecting one or more \"ranges\"")]
    OddRanges,
    /// An end of a range is not a whole number, or too large for 64 bits.
    #[error("Expecting non-negative integers in '{0}'")]
    NotANumber(String),
    /// A word contains a bracket.
    #[error("Unexpected '{0}' found")]
    Unexpected(char),
}

/// Parses a value. Blanks are ignored everywhere.
pub(crate) fn read(text: &str) -> Result<Written, ValueTextError> {
    let text: String = text.chars().filter(|c| *c != ' ').collect();
    let text = text.trim();
    if text.is_empty() {
        return Err(ValueTextError::Empty);
    }
    if [('{', '}'), ('[', ']'), ('(', ')')].into_iter().any(|(open, close)| !balanced(text, open, close)) {
        return Err(ValueTextError::Brackets);
    }
    match (text.find('['), text.find('{')) {
        (Some(0), _) => read_ranges(text).map(Written::Ranges),
        (Some(_), _) => Err(ValueTextError::Unexpected('[')),
        (None, Some(0)) => {
            let words = text.split(['{', '}', ',', '\n']).filter(|word| !word.is_empty());
            Ok(Written::Set(ItemSet::new(words)))
        }
        (None, Some(_)) => Err(ValueTextError::Unexpected('{')),
        (None, None) => Ok(read_number(text).map_or_else(|| Written::Text(text.to_owned()), Written::Number)),
    }
}

/// Returns whether there are as many closing as opening brackets, and none is closed before it is opened.
fn balanced(text: &str, open: char, close: char) -> bool {
    let mut depth = 0_usize;
    for c in text.chars() {
        if c == open {
            depth += 1;
        } else if c == close {
            let Some(less) = depth.checked_sub(1) else { return false };
            depth = less;
        }
    }
    depth == 0
}

fn read_ranges(text: &str) -> Result<Vec<(u64, u64)>, ValueTextError> {
    let words: Vec<&str> = text.split(['[', ']', '-', ',', '\n']).filter(|word| !word.is_empty()).collect();
    if !words.len().is_multiple_of(2) {
        return Err(ValueTextError::OddRanges);
    }
    let number = |word: &str| match word.parse::<u64>() {
        Ok(number) if word.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
        _ => Err(ValueTextError::NotANumber(word.to_owned())),
    };
    words.chunks_exact(2).map(|ends| Ok((number(ends[0])?, number(ends[1])?))).collect()
}

/// Parses a decimal number. `inf` and `nan` are words.
fn read_number(text: &str) -> Option<f64> {
    let numeric = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    if numeric { text.parse().ok() } else { None }
}

/// Formats ranges without blanks, as [`read`] parses them and flags show them.
pub(crate) fn tight(ranges: &Ranges) -> String {
    ranges.to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads() {
        let ranges = |pairs: &[(u64, u64)]| Written::Ranges(pairs.to_vec());
        for (text, value) in [
            (" 12.5 ", Written::Number(12.5)),
            ("1 2", Written::Number(12.0)),
            ("1e3", Written::Number(1000.0)),
            ("-1", Written::Number(-1.0)),
            ("[1-5, 7-9]", ranges(&[(1, 5), (7, 9)])),
            ("[]", ranges(&[])),
            ("[5-1]", ranges(&[(5, 1)])),
            ("[0-18446744073709551615]", ranges(&[(0, u64::MAX)])),
            ("{b, a}", Written::Set(ItemSet::new(["a", "b"]))),
            ("{}", Written::Set(ItemSet::default())),
            ("r 1", Written::Text("r1".into())),
            ("nan", Written::Text("nan".into())),
            ("1-2", Written::Text("1-2".into())),
        ] {
            assert_eq!(read(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn refuses() {
        for (text, why) in [
            ("", "Expecting non-empty string"),
            ("   ", "Expecting non-empty string"),
            ("[1-2", "Mismatched brackets"),
            ("]1-2[", "Mismatched brackets"),
            ("{a", "Mismatched brackets"),
            ("(", "Mismatched brackets"),
            ("[1]", "Expecting one or more \"ranges\""),
            ("[a-b]", "Expecting non-negative integers in 'a'"),
            ("[1-18446744073709551616]", "Expecting non-negative integers in '18446744073709551616'"),
            ("[+1-2]", "Expecting non-negative integers in '+1'"),
            ("x[1-2]", "Unexpected '[' found"),
            ("x{a}", "Unexpected '{' found"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), why, "{text}");
        }
    }
}
