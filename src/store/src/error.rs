//! What can go wrong on a disk.

use std::io;
use std::path::{Path, PathBuf};

use crate::registry::{EntryError, Loss};

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
        /// What is wrong with it.
        source: EntryError,
    },
    /// The registry does not hold, or may not hold, what was committed last.
    #[error(transparent)]
    Lost(Box<Loss>),
    /// A file of the registry is not at its path any more, so that what is written to it is lost with this process.
    #[error("the registry's file is not at '{}' any more: {found}", path.display())]
    NotInPlace {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
}

/// Why a disk refuses for the time being.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What the system says: "No space left on device".
    pub why: String,
    /// Whether there is too little room.
    pub needs_room: bool,
}

impl StoreError {
    /// Whether the same call may succeed later although nobody repairs anything by hand: the disk, a quota or a table of open
    /// files is full, or a device or a file system refuses for the time being.
    ///
    /// Anything else, such as a missing directory or a missing right, means that somebody has changed what the process relies on.
    pub fn is_transient(&self) -> bool {
        use rustix::io::Errno;
        let transient = [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE, Errno::IO, Errno::ROFS, Errno::NOMEM];
        self.code().is_some_and(|code| transient.iter().any(|errno| errno.raw_os_error() == code))
    }

    /// Whether descriptors are missing.
    pub(crate) fn lacks_descriptors(&self) -> bool {
        use rustix::io::Errno;
        self.code().is_some_and(|code| [Errno::MFILE, Errno::NFILE].iter().any(|errno| errno.raw_os_error() == code))
    }

    fn code(&self) -> Option<i32> {
        match self {
            StoreError::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Why the disk is in trouble.
    pub fn trouble(&self) -> Trouble {
        use rustix::io::Errno;
        let why = match self {
            StoreError::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        let why = why.split(" (os error").next().unwrap_or_default().to_owned();
        let full = [Errno::NOSPC, Errno::DQUOT];
        let needs_room = self.code().is_some_and(|code| full.iter().any(|errno| errno.raw_os_error() == code));
        Trouble { why, needs_room }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io { action, path: path.to_owned(), source }
    }
}
