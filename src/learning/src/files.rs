//! Access to files that settings name, which the caller provides. This module opens no file.

use std::path::PathBuf;

use lab::bundled::Catalog;

/// Reads files that settings name.
pub trait Files {
    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// Returns the system's error, or an error if the file is too large.
    fn read(&self, name: &str) -> std::io::Result<Vec<u8>>;

    /// Returns the directory of a file, in which files beside it are searched.
    fn directory(&self, name: &str) -> PathBuf;

    /// Returns the bundled frameworks that scenarios may name.
    fn catalog(&self) -> Catalog;
}

/// An implementation of [`Files`] without any files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn directory(&self, _: &str) -> PathBuf {
        PathBuf::new()
    }

    fn catalog(&self) -> Catalog {
        Catalog::default()
    }
}
