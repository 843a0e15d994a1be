//! Resource names: the five common ones without a string, all others with a shared one.

use std::fmt;
use std::sync::Arc;

use protos::Text;

/// The name of a resource. Order: cpus, mem, disk, gpus, ports, then all others by their text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// CPU cores; scalar.
    Cpus,
    /// Megabytes of memory; scalar.
    Mem,
    /// Megabytes of disk; scalar.
    Disk,
    /// Whole GPUs; scalar.
    Gpus,
    /// Ports of the agent's host; ranges.
    Ports,
    /// Any other name, which an operator chose. It is never one of the above: create names with `Name::from`.
    Other(Arc<str>),
}

impl Name {
    /// Scalar names that every agent and every `/state` object has, in the order of [`crate::Quantities`].
    pub const COMMON: [Self; 4] = [Self::Cpus, Self::Mem, Self::Disk, Self::Gpus];

    /// Returns the name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cpus => "cpus",
            Self::Mem => "mem",
            Self::Disk => "disk",
            Self::Gpus => "gpus",
            Self::Ports => "ports",
            Self::Other(text) => text,
        }
    }

    /// Returns the name as a text for messages.
    #[must_use]
    pub fn text(&self) -> Text {
        match self {
            Self::Cpus => Text::of("cpus"),
            Self::Mem => Text::of("mem"),
            Self::Disk => Text::of("disk"),
            Self::Gpus => Text::of("gpus"),
            Self::Ports => Text::of("ports"),
            Self::Other(text) => (&**text).into(),
        }
    }

    /// Returns the index in [`Name::COMMON`], if it is one of them.
    #[must_use]
    pub const fn common_index(&self) -> Option<usize> {
        match self {
            Self::Cpus => Some(0),
            Self::Mem => Some(1),
            Self::Disk => Some(2),
            Self::Gpus => Some(3),
            Self::Ports | Self::Other(_) => None,
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        match text {
            "cpus" => Self::Cpus,
            "mem" => Self::Mem,
            "disk" => Self::Disk,
            "gpus" => Self::Gpus,
            "ports" => Self::Ports,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_text() {
        for text in ["cpus", "mem", "disk", "gpus", "ports", "bananas", "CPUS", ""] {
            assert_eq!(Name::from(text).as_str(), text);
        }
        assert!(matches!(Name::from("cpu"), Name::Other(_)));
    }
}
