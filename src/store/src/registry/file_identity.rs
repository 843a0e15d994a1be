//! Checks whether an open file is still the one at its path.
//!
//! A process can write to a file that was removed, and to one whose directory was removed: the system reports no error,
//! and the next start does not find it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::StoreError;

/// A path, and the identity of the file that was opened there. The file must stay open, so that no other one gets its
/// inode number.
#[derive(Debug)]
pub(super) struct FileIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Returns the place of an open file.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub(super) fn of(path: &Path, file: &File) -> Result<FileIdentity, StoreError> {
        let metadata = file.metadata().map_err(StoreError::io("read the metadata of", path))?;
        Ok(FileIdentity { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino() })
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's metadata if it is still at its path. It costs one `stat(2)`.
    ///
    /// # Errors
    /// The path does not exist, is another file, or cannot be followed.
    pub(super) fn check(&self) -> Result<Metadata, StoreError> {
        match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => Ok(found),
            Ok(_) => Err(StoreError::NotInPlace { path: self.path.clone(), found: "another file is there" }),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(StoreError::NotInPlace { path: self.path.clone(), found: "no file is there" })
            }
            Err(error) => Err(StoreError::io("read the metadata of", &self.path)(error)),
        }
    }

    /// Returns the time of the file's last write.
    ///
    /// # Errors
    /// As [`check`](FileIdentity::check).
    pub(super) fn modified(&self) -> Result<SystemTime, StoreError> {
        self.check()?.modified().map_err(StoreError::io("read the metadata of", &self.path))
    }
}
