//! A task's part of input files: whether the files are still as they were, and the part as standard input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::Fault;
use super::failed::Failed;
use crate::split::Extent;

/// Checks that every file is there and long enough. A file that has grown is used as far as it was examined.
///
/// # Errors
/// The first file that has vanished or is shorter.
pub(super) fn check(extents: &[Extent]) -> Result<(), Failed> {
    for extent in extents {
        let path = &extent.path;
        let found = std::fs::metadata(path)
            .map_err(|error| Failed::new(Fault::Input, format!("the input file {path} cannot be read: {error}")))?;
        if found.len() < extent.size {
            let message = format!(
                "the input file {path} had {} bytes when the stage began, and has {}",
                extent.size,
                found.len()
            );
            return Err(Failed::new(Fault::Input, message));
        }
    }
    Ok(())
}

/// What a program reads as its standard input, piece after piece.
#[derive(Debug)]
pub(super) struct Pieces(Vec<(PathBuf, u64, u64)>);

impl Pieces {
    /// Parts of input files.
    pub(super) fn of_extents(extents: &[Extent]) -> Pieces {
        Pieces(extents.iter().map(|e| (PathBuf::from(&e.path), e.offset, e.length)).collect())
    }

    /// Whole files of a directory, in the order of their names.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(super) fn of_directory(directory: &Path) -> io::Result<Pieces> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            files.push((entry?.path(), 0, u64::MAX));
        }
        files.sort();
        Ok(Pieces(files))
    }

    /// Copies all of it. A reader that closes its end early ends the copy.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn copy(&self, mut out: impl Write) -> io::Result<()> {
        for (path, offset, length) in &self.0 {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(*offset))?;
            match io::copy(&mut file.take(*length), &mut out) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                copied => copied?,
            };
        }
        match out.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}
