//! Errors of unpacking: archives and layers that break a rule, and errors of the system.

use std::io;
use std::path::PathBuf;

use crate::confine::ConfineError;

/// Reason why an archive was not, or not completely, unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// An error of the system, or damaged bytes.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The thread that unpacks cannot be confined to the target directory.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// A library panicked while it read the archive.
    #[error("it cannot be read")]
    Panicked,
    /// The archive cannot be opened.
    #[error("cannot open the archive")]
    Open(#[source] io::Error),
    /// The file cannot be unpacked.
    #[error("cannot unpack it")]
    Unpack(#[source] Box<ArchiveError>),
    /// The zip archive cannot be unpacked.
    #[error("cannot unpack it: {0}")]
    Zip(zip::result::ZipError),
    /// The bytes are not a tar archive.
    #[error("it is not an archive")]
    Malformed(#[source] io::Error),
    /// The archive has more entries than this limit.
    #[error("it has more than {0} entries")]
    Entries(usize),
    /// The files have more bytes together than this limit.
    #[error("its files have more than {0} bytes")]
    Bytes(u64),
    /// An entry breaks a rule, or an error of the system.
    #[error("'{}'", path.display())]
    Entry {
        /// Path of the entry.
        path: PathBuf,
        /// Cause of the error.
        source: Box<ArchiveError>,
    },
    /// The path of the entry has `..`.
    #[error("it leads out of the image")]
    Outside,
    /// A directory of the entry's path is a link or a file.
    #[error("its directory '{}' cannot be entered", directory.display())]
    Directory {
        /// Name of the directory.
        directory: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A link has no target.
    #[error("it has no target")]
    NoTarget,
    /// A hard link has the root as its target.
    #[error("its target is the root")]
    RootTarget,
    /// A file has the path of a directory with entries.
    #[error("it takes a directory's place")]
    Occupied(#[source] io::Error),
}
