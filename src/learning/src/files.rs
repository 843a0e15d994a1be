//! Files that settings name: the caller reads them. There is no file access here.

use std::path::PathBuf;

use lab::bundled::Catalog;

/// Reads files that settings name.
pub trait Files {
    /// The bytes of a file.
    ///
    /// # Errors
    /// The system's error, or that the file is too large.
    fn read(&self, name: &str) -> std::io::Result<Vec<u8>>;

    /// Where files beside this one are looked for.
    fn directory(&self, name: &str) -> PathBuf;

    /// The bundled frameworks that scenarios may name.
    fn catalog(&self) -> Catalog;
}

/// There are no files.
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
