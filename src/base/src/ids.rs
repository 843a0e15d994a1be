//! Ids of agents, frameworks, tasks and so on, each a type of its own.
//!
//! An id is safe as a part of a path: constructors check the rules of docs/mesos/disk.md. They do not generate ids; the
//! cores do.

use std::borrow::Borrow;
use std::fmt;

use crate::Text;

/// An error of the text of an id. The messages are those of Mesos.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The id is empty.
    #[error("ID must not be empty")]
    Empty,
    /// The id is longer than a file name may be.
    #[error("ID must not be greater than {max} characters")]
    TooLong {
        /// The limit, in bytes.
        max: usize,
    },
    /// The id is `.` or `..`.
    #[error("'{0}' is disallowed")]
    Dots(String),
    /// The id has a control character, a slash or a backslash; container ids may have no dot or space either.
    #[error("'{0}' contains invalid characters")]
    Characters(String),
}

/// The longest file name of Linux, in bytes: ids become file names.
const NAME_MAX: usize = 255;
/// The longest container id, in bytes. It is shorter because file names are made from it.
const CONTAINER_MAX: usize = 242;

/// Checks length and bytes of an id. Only ASCII characters are refused; a byte of one is never part of another
/// character in UTF-8.
fn check(text: &str, max: usize, refused: impl Fn(u8) -> bool) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > max {
        return Err(IdError::TooLong { max });
    }
    if text == "." || text == ".." {
        return Err(IdError::Dots(text.to_owned()));
    }
    if text.bytes().any(refused) {
        return Err(IdError::Characters(text.to_owned()));
    }
    Ok(())
}

fn refused_in_name(c: u8) -> bool {
    c.is_ascii_control() || c == b'/' || c == b'\\'
}

fn refused_in_container(c: u8) -> bool {
    refused_in_name(c) || c == b'.' || c == b' '
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $max:expr, $refused:expr) => {
        $(#[$doc])*
        ///
        /// Cheap to clone, and to put into a message.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Text);

        impl $name {
            /// Checks `text` and creates an id from it.
            ///
            /// # Errors
            /// See [`IdError`].
            pub fn new(text: &str) -> Result<$name, IdError> {
                $name::check(text)?;
                Ok($name(text.into()))
            }

            /// Checks the text of a message and creates an id that shares it.
            ///
            /// # Errors
            /// See [`IdError`].
            pub fn of(text: &Text) -> Result<$name, IdError> {
                $name::check(text)?;
                Ok($name(text.clone()))
            }

            /// Checks that `text` is valid, without creating an id.
            ///
            /// # Errors
            /// See [`IdError`].
            pub fn check(text: &str) -> Result<(), IdError> {
                check(text, $max, $refused)
            }

            /// Returns the id's text, as it is on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&$name> for Text {
            fn from(id: &$name) -> Text {
                id.0.clone()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<$name, IdError> {
                $name::new(text)
            }
        }
    };
}

id!(/// A framework: one registered scheduler, over all its connections.
    FrameworkId, NAME_MAX, refused_in_name);
id!(/// An agent, over all its restarts.
    AgentId, NAME_MAX, refused_in_name);
id!(/// One offer of one agent's resources.
    OfferId, NAME_MAX, refused_in_name);
id!(/// A task, unique within its framework.
    TaskId, NAME_MAX, refused_in_name);
id!(/// An executor, unique within its framework and agent.
    ExecutorId, NAME_MAX, refused_in_name);
id!(/// An offer operation that its framework wants to hear about.
    OperationId, NAME_MAX, refused_in_name);
id!(/// One container, named by one path segment (a nested container has a parent besides).
    ContainerId, CONTAINER_MAX, refused_in_container);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good() {
        for text in ["a", "a b", "x.y", "äö", "…", &"n".repeat(255)] {
            assert_eq!(TaskId::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn bad() {
        assert_eq!(TaskId::new(""), Err(IdError::Empty));
        assert_eq!(TaskId::new(&"n".repeat(256)), Err(IdError::TooLong { max: 255 }));
        assert_eq!(TaskId::new(".."), Err(IdError::Dots("..".into())));
        for text in ["a/b", "a\\b", "a\nb", "\u{7f}"] {
            assert_eq!(TaskId::new(text), Err(IdError::Characters(text.into())));
        }
        assert!(ContainerId::new("a.b").is_err());
    }
}
