//! Checks a task's part of input files against the files, and provides the part as standard input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::Fault;
use super::failed::TaskFailure;
use crate::split::Extent;

/// Checks that every file exists and is long enough. Only the examined part of a file that has grown is used.
///
/// # Errors
/// The first file that has vanished or is shorter.
pub(super) fn check(extents: &[Extent]) -> Result<(), TaskFailure> {
    for extent in extents {
        let path = &extent.path;
        let found = std::fs::metadata(path).map_err(|error| {
            TaskFailure::new(Fault::Input, format!("the input file {path} cannot be read: {error}"))
        })?;
        if found.len() < extent.size {
            let message = format!(
                "the input file {path} had {} bytes when the stage began, and has {}",
                extent.size,
                found.len()
            );
            return Err(TaskFailure::new(Fault::Input, message));
        }
    }
    Ok(())
}

/// The parts of files that a program reads as its standard input, one after the other.
#[derive(Debug)]
pub(super) struct Pieces {
    /// Path of each file, with the offset and the number of bytes.
    parts: Vec<(PathBuf, u64, u64)>,
    /// Whether a newline is added between parts of which the first does not end with one.
    lines: bool,
}

impl Pieces {
    /// Creates the standard input from parts of input files, which consist of lines or not.
    pub(super) fn of_extents(extents: &[Extent], lines: bool) -> Pieces {
        Pieces { parts: extents.iter().map(|e| (PathBuf::from(&e.path), e.offset, e.length)).collect(), lines }
    }

    /// Creates the standard input from all files of a directory, in the order of their names.
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

    /// Copies all parts to `out`. If the reader closes its end early, the copy ends.
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

/// Returns whether the byte before `end` is a newline.
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
