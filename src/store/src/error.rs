//! Errors of a disk.

use std::io;
use std::path::{Path, PathBuf};

use crate::registry::{EntryError, Loss};

/// An error of the registry or of checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A system call failed.
    #[error("cannot {action} '{}'", path.display())]
    Io {
        /// Action that failed.
        action: &'static str,
        /// Path of the action.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The registry's file cannot be read or written.
    #[error("cannot use the registry '{}'", path.display())]
    Registry {
        /// Path of the file.
        path: PathBuf,
        /// The storage engine's error.
        source: Box<redb::Error>,
    },
    /// The registry is not in a file, and its store cannot be read or written.
    #[error("cannot use the registry in {place}")]
    Elsewhere {
        /// Name of the store, such as etcd.
        place: &'static str,
        /// The error of the store.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The registry's file contains something other than a registry.
    #[error("the registry '{}' is damaged at '{key}'", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Key of the invalid entry.
        key: String,
        /// Error of the entry.
        source: EntryError,
    },
    /// The registry does not contain, or may not contain, the last commit.
    #[error(transparent)]
    Lost(Box<Loss>),
    /// A registry exists already.
    #[error("there is a registry at '{}'", path.display())]
    Exists {
        /// Path of its file.
        path: PathBuf,
    },
    /// Another process has the registry open.
    #[error("the registry '{}' is in use by a master that runs", path.display())]
    InUse {
        /// Path of its file.
        path: PathBuf,
    },
    /// A file of the registry is no longer at its path, so that writes to it are lost with this process.
    #[error("the registry's file is not at '{}' any more: {found}", path.display())]
    NotInPlace {
        /// Path of the file.
        path: PathBuf,
        /// Description of what is at the path now.
        found: &'static str,
    },
}

/// Description of a transient error of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFailure {
    /// The system's message: "No space left on device".
    pub why: String,
    /// Whether the disk has too little space.
    pub lacks_space: bool,
}

impl StoreError {
    /// Returns whether the same call may succeed later without a repair: the disk, a quota or a table of open files is
    /// full, or a device or a file system returns errors for a while.
    ///
    /// Any other error, such as a missing directory or permission, means that something that the process relies on was
    /// changed.
    pub fn is_transient(&self) -> bool {
        self.source_io().is_some_and(is_transient)
    }

    /// Returns whether descriptors are missing.
    pub(crate) fn lacks_descriptors(&self) -> bool {
        use rustix::io::Errno;
        self.code().is_some_and(|code| [Errno::MFILE, Errno::NFILE].iter().any(|errno| errno.raw_os_error() == code))
    }

    fn source_io(&self) -> Option<&io::Error> {
        match self {
            StoreError::Io { source, .. } => Some(source),
            _ => None,
        }
    }

    fn code(&self) -> Option<i32> {
        self.source_io().and_then(io::Error::raw_os_error)
    }

    /// Returns the description of the error.
    pub fn disk_failure(&self) -> DiskFailure {
        use rustix::io::Errno;
        let why = match self {
            StoreError::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        let why = why.split(" (os error").next().unwrap_or_default().to_owned();
        let full = [Errno::NOSPC, Errno::DQUOT];
        let lacks_space = self.code().is_some_and(|code| full.iter().any(|errno| errno.raw_os_error() == code));
        DiskFailure { why, lacks_space }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io { action, path: path.to_owned(), source }
    }
}

/// Returns whether the same system call may succeed later without a repair: see [`StoreError::is_transient`].
pub fn is_transient(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let transient = [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE, Errno::IO, Errno::ROFS, Errno::NOMEM];
    error.raw_os_error().is_some_and(|code| transient.iter().any(|errno| errno.raw_os_error() == code))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn errors_that_pass_and_those_that_room_cures() {
        for (errno, is_transient, lacks_space) in [
            (Errno::NOSPC, true, true),
            (Errno::DQUOT, true, true),
            (Errno::MFILE, true, false),
            (Errno::IO, true, false),
            (Errno::ROFS, true, false),
            (Errno::NOTDIR, false, false),
            (Errno::ACCESS, false, false),
        ] {
            let error = StoreError::io("write", Path::new("/w"))(errno.into());
            assert_eq!(
                (error.is_transient(), error.disk_failure().lacks_space),
                (is_transient, lacks_space),
                "{errno}"
            );
        }
    }
}
