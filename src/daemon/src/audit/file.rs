//! The file of the audit log. Lines are appended to it; it has the mode 0600, and is rotated by its size: FILE, FILE.1,
//! FILE.2.
//!
//! It is opened again if it was renamed or removed, as logrotate does.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use store::Access;

/// A log file that is rotated by its size.
#[derive(Debug)]
pub(super) struct RotatedFile {
    path: PathBuf,
    file: File,
    size: u64,
    max_size: u64,
    /// Maximum number of files, the current one included; at least 1.
    max_files: u64,
}

impl RotatedFile {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// The file cannot be opened or created.
    pub(super) fn open(path: &Path, max_size: u64, max_files: u64) -> io::Result<RotatedFile> {
        let (file, size) = open(path)?;
        Ok(RotatedFile { path: path.to_owned(), file, size, max_size, max_files })
    }

    /// Opens the file again if another file, or none, is at its path.
    ///
    /// # Errors
    /// The file cannot be opened or created.
    pub(super) fn follow(&mut self) -> io::Result<()> {
        let own = self.file.metadata()?;
        let is_there = fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
        if is_there {
            // The file may have been truncated.
            self.size = own.len();
        } else {
            (self.file, self.size) = open(&self.path)?;
        }
        Ok(())
    }

    /// Writes a line and a line feed. If that fails, no part of it remains.
    ///
    /// # Errors
    /// The file cannot be opened, created or written.
    pub(super) fn write(&mut self, line: &str) -> io::Result<()> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        let length = bytes.len() as u64;
        if self.size > 0 && self.size + length > self.max_size {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(&bytes) {
            let _ = self.file.set_len(self.size);
            return Err(error);
        }
        self.size += length;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |number: u64| {
            let mut name = self.path.clone().into_os_string();
            if number > 0 {
                name.push(format!(".{number}"));
            }
            PathBuf::from(name)
        };
        match self.max_files {
            0 | 1 => fs::remove_file(&self.path)?,
            count => {
                for number in (0..count - 1).rev() {
                    match fs::rename(numbered(number), numbered(number + 1)) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                        _ => {}
                    }
                }
            }
        }
        (self.file, self.size) = open(&self.path)?;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = store::append_file(path, Access::Owner)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if found.mode() & 0o777 != Access::Owner.of_file() {
        file.set_permissions(Permissions::from_mode(Access::Owner.of_file()))?;
    }
    Ok((file, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_file_goes_when_there_are_too_many() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut file = RotatedFile::open(&path, 10, 3).unwrap();
        for line in ["one", "two", "three", "four", "five", "six", "a line longer than a file", "eight"] {
            file.write(line).unwrap();
        }
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).ok();
        assert_eq!(read("audit.log").as_deref(), Some("eight\n"));
        assert_eq!(read("audit.log.1").as_deref(), Some("a line longer than a file\n"));
        assert_eq!(read("audit.log.2").as_deref(), Some("six\n"));
        assert_eq!(read("audit.log.3"), None);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_was_renamed_is_left_and_an_old_one_continued() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        fs::write(&path, "old\n").unwrap();
        let mut file = RotatedFile::open(&path, 1000, 3).unwrap();
        file.write("one").unwrap();
        file.follow().unwrap();
        file.write("two").unwrap();
        fs::rename(&path, directory.path().join("moved")).unwrap();
        file.follow().unwrap();
        file.write("three").unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("moved")).unwrap(), "old\none\ntwo\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        assert_eq!(fs::metadata(directory.path().join("moved")).unwrap().mode() & 0o777, 0o600);
        assert!(RotatedFile::open(directory.path(), 10, 3).is_err());
    }
}
