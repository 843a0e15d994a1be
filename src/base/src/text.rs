//! Short immutable texts of which a master handles millions: ids, names of resources, roles.
//!
//! A text of up to 23 bytes is stored in place, a longer one is shared by its copies. So a busy master makes, copies
//! and drops messages without an allocation for each id in them. Ids are checked elsewhere.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use smol_str::SmolStr;

/// An immutable text that is cheap to clone; it dereferences to `str`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(SmolStr);

impl Text {
    /// Creates a text from a literal, without an allocation.
    #[must_use]
    pub const fn of(text: &'static str) -> Text {
        Text(SmolStr::new_static(text))
    }

    /// Returns the text as a `str`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Replaces the text by the empty one.
    pub fn clear(&mut self) {
        *self = Text::default();
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(SmolStr::new(text))
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Text {
        Text(SmolStr::new(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(SmolStr::from(text))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0.into()
    }
}

impl From<fmt::Arguments<'_>> for Text {
    fn from(arguments: fmt::Arguments<'_>) -> Text {
        Text(smol_str::format_smolstr!("{arguments}"))
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other.as_str()
    }
}

impl PartialEq<Text> for str {
    fn eq(&self, other: &Text) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Text> for &str {
    fn eq(&self, other: &Text) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<Text> for String {
    fn eq(&self, other: &Text) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_long_and_known_ones_are_alike() {
        let long = "a text that is longer than what fits in its place";
        for text in ["", "t", "exactly-23-bytes-long-x", long] {
            let made = Text::from(text);
            assert_eq!(made, text);
            assert_eq!(made.clone(), Text::from(text.to_owned()));
            assert_eq!(String::from(made.clone()), text);
            assert_eq!(format!("{made} {made:?}"), format!("{text} {text:?}"));
            assert_eq!(std::collections::BTreeSet::from([made]).get(text).map(Text::as_str), Some(text));
        }
        assert_eq!(Text::of("cpus"), Text::from("cpus"));
        let mut text = Text::from(long);
        text.clear();
        assert!(text.is_empty());
    }
}
