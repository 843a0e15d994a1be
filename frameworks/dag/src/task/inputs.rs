//! A task's part of input files: whether the files are still as they were, and the part as standard input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;
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
pub(super) struct Pieces {
    /// Files with the first byte and the number of bytes.
    parts: Vec<(PathBuf, u64, u64)>,
    /// Whether a part that does not end with a line end gets one before the next.
    lines: bool,
}

impl Pieces {
    /// Parts of input files, which are lines or not.
    pub(super) fn of_extents(extents: &[Extent], lines: bool) -> Pieces {
        Pieces { parts: extents.iter().map(|e| (PathBuf::from(&e.path), e.offset, e.length)).collect(), lines }
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
        Ok(Pieces { parts: files, lines: false })
    }

    /// Copies all of it. A reader that closes its end early ends the copy.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn copy(&self, out: impl Write) -> io::Result<()> {
        match self.copy_all(out) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    fn copy_all(&self, mut out: impl Write) -> io::Result<()> {
        let mut line_is_open = false;
        for (path, offset, length) in self.parts.iter().filter(|(_, _, length)| *length > 0) {
            if line_is_open {
                out.write_all(b"\n")?;
            }
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(*offset))?;
            io::copy(&mut (&file).take(*length), &mut out)?;
            line_is_open = self.lines && !ends_line(&file, offset + length)?;
        }
        out.flush()
    }
}

/// Whether the byte before `end` is a line end.
fn ends_line(file: &File, end: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, end - 1)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(texts: &[&str], lines: bool) -> String {
        let directory = std::env::temp_dir().join(format!("tepui-inputs-{lines}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let extents: Vec<Extent> = (0..)
            .zip(texts)
            .map(|(place, text)| {
                let path = directory.join(format!("{place}"));
                std::fs::write(&path, text).unwrap();
                let size = text.len() as u64;
                Extent { path: path.display().to_string(), offset: 0, length: size, size }
            })
            .collect();
        let mut out = Vec::new();
        Pieces::of_extents(&extents, lines).copy(&mut out).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_last_line_of_a_file_is_not_joined_with_the_first_of_the_next() {
        assert_eq!(copied(&["a\nb", "c\n", "", "d"], true), "a\nb\nc\nd");
        assert_eq!(copied(&["a\nb", "c\n", "", "d"], false), "a\nbc\nd", "whole files are copied as they are");
    }
}
