//! State that must survive a scheduler's process: the trait, and a store in memory.
//!
//! A store contains keys and bytes without interpreting them. The one on disk is `File` (feature `state`).

#[cfg(feature = "state")]
mod file;
mod memory;

use std::collections::BTreeMap;
use std::fmt;

#[cfg(feature = "state")]
pub use file::File;
pub use memory::Memory;

/// One entry that is set, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which entry.
    pub key: String,
    /// Its new content; none if it goes.
    pub value: Option<Vec<u8>>,
}

impl Change {
    /// The entry will have this content.
    pub fn set(key: impl Into<String>, value: Vec<u8>) -> Change {
        Change { key: key.into(), value: Some(value) }
    }

    /// The entry will be gone.
    pub fn gone(key: impl Into<String>) -> Change {
        Change { key: key.into(), value: None }
    }
}

/// A store failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the framework's state in '{place}'")]
pub struct StateError {
    /// What was tried, such as `read`.
    pub action: &'static str,
    /// The file or the entry.
    pub place: String,
    /// The store's error.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Where entries of key and bytes survive.
///
/// Calls may block until the disk has answered: the driver makes them where that holds nothing else up.
pub trait State: Send + fmt::Debug {
    /// All entries; a new store has none.
    ///
    /// # Errors
    /// When they cannot be read.
    fn load(&mut self) -> Result<BTreeMap<String, Vec<u8>>, StateError>;

    /// Makes all these changes in their order, or none, and returns when they are durable.
    ///
    /// # Errors
    /// When they cannot be written: then it is unknown whether they are made.
    fn commit(&mut self, changes: &[Change]) -> Result<(), StateError>;
}
