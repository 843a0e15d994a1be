//! Errors of unpacking: archives and layers that break a rule, and what the system refuses.

use std::io;
use std::path::PathBuf;

use crate::confine::ConfineError;

/// An archive that was not, or not completely, unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The system refuses, or the bytes are damaged.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The thread that unpacks cannot be confined to the target directory.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// A library panicked.
    #[error("it cannot be read")]
    Panicked,
    /// The archive cannot be opened.
    #[error("cannot open the archive")]
    Open(#[source] io::Error),
    /// The file is not unpacked.
    #[error("cannot unpack it")]
    Unpack(#[source] Box<ArchiveError>),
    /// The zip archive is not unpacked.
    #[error("cannot unpack it: {0}")]
    Zip(zip::result::ZipError),
    /// The bytes are not a tar archive.
    #[error("it is not an archive")]
    Malformed(#[source] io::Error),
    /// Limit of entries.
    #[error("it has more than {0} entries")]
    Entries(usize),
    /// Limit of bytes of all files.
    #[error("its files have more than {0} bytes")]
    Bytes(u64),
    /// An entry breaks a rule, or the system refuses it.
    #[error("'{}'", path.display())]
    Entry {
        /// The entry.
        path: PathBuf,
        /// The cause.
        source: Box<ArchiveError>,
    },
    /// The path has `..`.
    #[error("it leads out of the image")]
    Outside,
    /// A directory of the path is a link or a file.
    #[error("its directory '{}' cannot be entered", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A link without a target.
    #[error("it has no target")]
    NoTarget,
    /// A hard link to the root.
    #[error("its target is the root")]
    RootTarget,
    /// A file with the path of a directory that has entries.
    #[error("it takes a directory's place")]
    Occupied(#[source] io::Error),
}
