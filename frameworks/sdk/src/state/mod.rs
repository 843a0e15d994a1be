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

/// A change of one entry: it is set or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Key of the entry.
    pub key: String,
    /// New content of the entry; `None` removes it.
    pub value: Option<Vec<u8>>,
}

impl Change {
    /// Returns the change that sets an entry to `value`.
    pub fn set(key: impl Into<String>, value: Vec<u8>) -> Change {
        Change { key: key.into(), value: Some(value) }
    }

    /// Returns the change that removes an entry.
    pub fn gone(key: impl Into<String>) -> Change {
        Change { key: key.into(), value: None }
    }
}

/// An error of a store.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the framework's state in '{place}'")]
pub struct StateError {
    /// Action that failed, such as `read`.
    pub action: &'static str,
    /// File or entry of the error.
    pub place: String,
    /// Error of the underlying storage.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A store of entries that survive the scheduler's process.
///
/// Calls may block until the disk has answered; the driver makes them on a thread of their own.
pub trait State: Send + fmt::Debug {
    /// Reads all entries; a new store has none.
    ///
    /// # Errors
    /// The entries cannot be read.
    fn load(&mut self) -> Result<BTreeMap<String, Vec<u8>>, StateError>;

    /// Makes all these changes in order, or none, and returns when they are durable.
    ///
    /// # Errors
    /// The changes cannot be written. It is then unknown whether they are made.
    fn commit(&mut self, changes: &[Change]) -> Result<(), StateError>;
}
