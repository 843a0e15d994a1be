//! What can go wrong on a disk.

use std::io;
use std::path::{Path, PathBuf};

/// A disk did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A system call failed.
    #[error("cannot {action} '{}'", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The registry's file cannot be read or written.
    #[error("cannot use the registry '{}'", path.display())]
    Registry {
        /// The file.
        path: PathBuf,
        /// What the storage engine says.
        source: Box<redb::Error>,
    },
    /// The registry is not in a file, and where it is it cannot be read or written.
    #[error("cannot use the registry in {place}")]
    Elsewhere {
        /// Where.
        place: &'static str,
        /// What is said there.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The registry's file holds something else than a registry.
    #[error("the registry '{}' is damaged at '{key}'", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The entry.
        key: String,
        /// What the decoder says.
        source: prost::DecodeError,
    },
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io { action, path: path.to_owned(), source }
    }
}
