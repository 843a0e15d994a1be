//! Spare directories: those of containers that have ended, reused for the records of further ones, so that short tasks
//! need no new inodes.
//!
//! Only directories that contain nothing but the agent's name are kept. Containers never have access to them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use store::{Access, create_directories};

use base::lock;

/// Maximum number of spare directories: about as many containers as end in the time that it takes to start one.
const SPARES_MAX: usize = 64;

/// Directories that can be used again. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Spares {
    /// Directory of the spare directories, `<runtime_dir>/spares`.
    root: PathBuf,
    /// Name of the only file in a spare directory.
    file: &'static str,
    kept: Arc<Mutex<Vec<PathBuf>>>,
    /// Counter that makes the names of spare directories unique.
    count: Arc<AtomicU32>,
}

impl Spares {
    pub(crate) fn new(root: PathBuf, file: &'static str) -> Spares {
        Spares { root, file, kept: Arc::default(), count: Arc::default() }
    }

    /// Deletes the spare directories of a previous agent process with this name.
    pub(crate) fn delete_left_overs(&self, owner: &str) {
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if std::fs::read_to_string(entry.path().join(self.file)).is_ok_and(|text| text == owner) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Renames a spare directory to this path. Returns `false` if there is none, or the path exists.
    pub(crate) fn take(&self, path: &Path) -> bool {
        let Some(spare) = lock(&self.kept).pop() else { return false };
        match std::fs::rename(&spare, path) {
            Ok(()) => true,
            // A program that cleans up temporary files has deleted it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(_) => {
                lock(&self.kept).push(spare);
                false
            }
        }
    }

    /// Moves a directory away from its path, and deletes it unless it can be used again.
    ///
    /// # Errors
    /// If the directory cannot be deleted, or does not exist.
    pub(crate) fn put(&self, path: &Path) -> io::Result<()> {
        if lock(&self.kept).len() >= SPARES_MAX {
            return std::fs::remove_dir_all(path);
        }
        let spare = self.root.join(format!("{}-{}", std::process::id(), self.count.fetch_add(1, Ordering::Relaxed)));
        if std::fs::rename(path, &spare).is_err() {
            create_directories(&self.root, Access::Owner)?;
            if std::fs::rename(path, &spare).is_err() {
                return std::fs::remove_dir_all(path);
            }
        }
        // After the rename nothing can be added to the directory any more.
        if !self.is_bare(&spare) {
            return std::fs::remove_dir_all(&spare);
        }
        lock(&self.kept).push(spare);
        Ok(())
    }

    /// Returns whether a directory contains its file and nothing else.
    fn is_bare(&self, directory: &Path) -> bool {
        let Ok(entries) = std::fs::read_dir(directory) else { return false };
        let mut names = entries.map(|entry| entry.ok().map(|entry| entry.file_name()));
        names.next().flatten().is_some_and(|name| name == self.file) && names.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn only_what_holds_nothing_else_is_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let spares = Spares::new(directory.path().join("spares"), "agent");
        let at = |name: &str| directory.path().join(name);
        let make = |name: &str| {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("agent"), "us").unwrap();
            fs::metadata(at(name)).unwrap().ino()
        };
        assert!(!spares.take(&at("a")));
        let inode = make("a");
        spares.put(&at("a")).unwrap();
        assert!(!at("a").exists());
        make("b");
        fs::write(at("b").join("pid"), "1").unwrap();
        spares.put(&at("b")).unwrap();
        fs::create_dir(at("c")).unwrap();
        spares.put(&at("c")).unwrap();
        assert_eq!(fs::read_dir(at("spares")).unwrap().count(), 1);
        // An existing directory is not replaced.
        make("d");
        assert!(!spares.take(&at("d")));
        assert!(spares.take(&at("e")) && !spares.take(&at("f")));
        assert_eq!(fs::metadata(at("e")).unwrap().ino(), inode);
        assert_eq!(spares.put(&at("f")).unwrap_err().kind(), io::ErrorKind::NotFound);
        spares.put(&at("e")).unwrap();
        spares.delete_left_overs("others");
        assert_eq!(fs::read_dir(at("spares")).unwrap().count(), 1);
        spares.delete_left_overs("us");
        assert_eq!(fs::read_dir(at("spares")).unwrap().count(), 0);
    }

    #[test]
    fn no_more_than_a_limit_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let spares = Spares::new(directory.path().join("spares"), "agent");
        for number in 0..SPARES_MAX + 3 {
            let path = directory.path().join(number.to_string());
            fs::create_dir(&path).unwrap();
            fs::write(path.join("agent"), "us").unwrap();
            spares.put(&path).unwrap();
            assert!(!path.exists());
        }
        assert_eq!(fs::read_dir(directory.path().join("spares")).unwrap().count(), SPARES_MAX);
    }
}
