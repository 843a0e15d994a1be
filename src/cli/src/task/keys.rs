//! Detects the keys that detach from a terminal and leave its task running.
//!
//! Typed keys that may belong to the sequence are held back until it is clear whether they do.

use std::str::FromStr;

/// A sequence of keys, and the number of them that have been typed. The default is empty, which is never typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    sequence: Vec<u8>,
    typed: usize,
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Keys, String> {
        let key = |word: &str| {
            let control = word.strip_prefix("ctrl-");
            match control.unwrap_or(word).as_bytes() {
                [letter @ (b'a'..=b'z' | b'@'..=b'_')] if control.is_some() => Ok(letter & 0x1f),
                [letter @ b'!'..=b'~'] if control.is_none() => Ok(*letter),
                _ => Err(format!(
                    "'{word}' is not a key: must be a character, or ctrl- and a letter; separate keys by commas"
                )),
            }
        };
        let words = text.split(',').filter(|_| !text.is_empty());
        Ok(Keys { sequence: words.map(key).collect::<Result<_, _>>()?, typed: 0 })
    }
}

impl Keys {
    /// Returns the bytes to pass on, and whether the whole sequence has been typed; bytes after it are dropped.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (Vec<u8>, bool) {
        let mut passed = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            while self.typed > 0 && self.sequence.get(self.typed) != Some(&byte) {
                self.give_back(&mut passed);
            }
            if self.sequence.get(self.typed) != Some(&byte) {
                passed.push(byte);
                continue;
            }
            self.typed += 1;
            if self.typed == self.sequence.len() {
                return (passed, true);
            }
        }
        (passed, false)
    }

    /// Passes on as few of the held-back keys as possible, so that the rest may still be a beginning of the sequence.
    fn give_back(&mut self, passed: &mut Vec<u8>) {
        let held = &self.sequence[..self.typed];
        let rest = (0..self.typed).rev().find(|&rest| held.ends_with(&self.sequence[..rest])).unwrap_or(0);
        passed.extend_from_slice(&held[..self.typed - rest]);
        self.typed = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(keys: &str, pieces: &[&str]) -> (String, bool) {
        let mut keys: Keys = keys.parse().unwrap();
        let mut passed = Vec::new();
        for piece in pieces {
            let (more, end) = keys.take(piece.as_bytes());
            passed.extend(more);
            if end {
                return (String::from_utf8(passed).unwrap(), true);
            }
        }
        (String::from_utf8(passed).unwrap(), false)
    }

    #[test]
    fn keys_are_found_among_others() {
        assert_eq!(take("ctrl-p,ctrl-q", &["ab\x10", "\x11cd"]), ("ab".into(), true));
        assert_eq!(take("ctrl-p,ctrl-q", &["\x10", "x\x11"]), ("\x10x\x11".into(), false));
        assert_eq!(take("ctrl-p,ctrl-q", &["\x10\x10\x11"]), ("\x10".into(), true));
        assert_eq!(take("a,a,b", &["aa", "ab"]), ("a".into(), true));
        assert_eq!(take("", &["a\x10\x11"]), ("a\x10\x11".into(), false));
    }

    #[test]
    fn what_is_no_key() {
        for text in ["ctrl-", "ctrl-1", "ab", "a,,b", "\u{e4}"] {
            assert!(text.parse::<Keys>().is_err(), "{text}");
        }
    }
}
