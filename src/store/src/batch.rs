//! A batch of changes below one directory that becomes durable at once.
//!
//! Contents are written under temporary names, or appended to files; `commit` makes all contents durable, then gives
//! them their names in order, then makes the names durable. A crash leaves each file in its old or its new state; an
//! appended file may have a part of the addition. After `commit` all of it is there. Files belong to the owner alone:
//! checkpoints contain the environment of tasks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::create::{Access, append_file, create_directory};
use crate::error::StoreError;
use crate::fault_injection;
use crate::replace::{directory_of, sync_directory, temporary_file, temporary_link};

/// Number of files and directories from which one syncfs(2) is cheaper than a sync of each.
const SYNC_EACH_MAX: usize = 6;

/// Changes that become durable together. Dropped without `commit`, it leaves at most temporary and appended bytes.
#[derive(Debug)]
pub struct Batch {
    root: PathBuf,
    /// Names that are set at the end: (temporary, final), in order.
    names: VecDeque<(PathBuf, PathBuf)>,
    /// Files with new content, by final path.
    replaced: BTreeMap<PathBuf, File>,
    /// Files that were appended to, by path.
    appended: BTreeMap<PathBuf, File>,
    /// Directories with new or removed entries.
    directories: BTreeSet<PathBuf>,
    /// Directories that are known to exist.
    known: BTreeSet<PathBuf>,
    /// Lengths of files before they were appended to; `None` for new files.
    lengths: BTreeMap<PathBuf, Option<u64>>,
}

impl Batch {
    /// Creates an empty batch; all its paths are below `root`.
    pub fn new(root: &Path) -> Batch {
        Batch {
            root: root.to_owned(),
            names: VecDeque::new(),
            replaced: BTreeMap::new(),
            appended: BTreeMap::new(),
            directories: BTreeSet::new(),
            known: BTreeSet::new(),
            lengths: BTreeMap::new(),
        }
    }

    /// Replaces the content of a file.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn replace(&mut self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.root.join(path);
        let directory = directory_of(&path).to_owned();
        self.make_directory(&directory)?;
        let (temporary, mut file) = temporary_file(&directory)?;
        self.names.push_back((temporary.clone(), path.clone()));
        fault_injection::write_all(&mut file, bytes).map_err(StoreError::io("write", &temporary))?;
        self.appended.remove(&path);
        self.replaced.insert(path, file);
        self.directories.insert(directory);
        Ok(())
    }

    /// Appends bytes to a file.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn append(&mut self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.append_at(path, None, bytes)
    }

    /// Returns whether the batch replaces this file or appends to it.
    pub(crate) fn writes(&self, path: &str) -> bool {
        let path = self.root.join(path);
        self.replaced.contains_key(&path) || self.appended.contains_key(&path)
    }

    /// Appends bytes to a file of which at most the first `at` bytes are valid, if that is known. Bytes after them
    /// remain from an earlier attempt, or from the same record in another journal.
    ///
    /// # Errors
    /// An error of the disk.
    pub(crate) fn append_at(&mut self, path: &str, at: Option<u64>, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.root.join(path);
        if let Some(file) = self.replaced.get_mut(&path).or(self.appended.get_mut(&path)) {
            if let Some(at) = at {
                shorten(file, at).map_err(StoreError::io("shorten", &path))?;
            }
            return fault_injection::write_all(file, bytes).map_err(StoreError::io("append to", &path));
        }
        let directory = directory_of(&path).to_owned();
        self.make_directory(&directory)?;
        let mut file = match OpenOptions::new().append(true).open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.directories.insert(directory);
                self.lengths.entry(path.clone()).or_insert(None);
                append_file(&path, Access::Owner)
            }
            outcome => outcome,
        }
        .map_err(StoreError::io("open", &path))?;
        let length = file.metadata().map_err(StoreError::io("look at", &path))?.len();
        let known = at.map_or(length, |at| at.min(length));
        self.lengths.entry(path.clone()).or_insert(Some(known));
        if known < length {
            fault_injection::step().and_then(|()| file.set_len(known)).map_err(StoreError::io("shorten", &path))?;
        }
        fault_injection::write_all(&mut file, bytes).map_err(StoreError::io("append to", &path))?;
        self.appended.insert(path, file);
        Ok(())
    }

    /// Creates a directory with its parents.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn directory(&mut self, path: &str) -> Result<(), StoreError> {
        let path = self.root.join(path);
        self.make_directory(&path)
    }

    /// Creates or replaces a symbolic link to `target`.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn link(&mut self, path: &str, target: &str) -> Result<(), StoreError> {
        let path = self.root.join(path);
        let directory = directory_of(&path).to_owned();
        self.make_directory(&directory)?;
        self.names.push_back((temporary_link(&path, Path::new(target))?, path));
        self.directories.insert(directory);
        Ok(())
    }

    /// Deletes a file, a link, or a directory with its content. Earlier changes become durable first.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn remove(&mut self, path: &str) -> Result<(), StoreError> {
        self.flush()?;
        let path = self.root.join(path);
        let gone = match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => fault_injection::step().and_then(|()| fs::remove_dir_all(&path)),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        self.known.clear();
        match gone {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            outcome => outcome.map_err(StoreError::io("remove", &path))?,
        }
        self.directories.insert(directory_of(&path).to_owned());
        Ok(())
    }

    /// Makes all changes durable.
    ///
    /// # Errors
    /// An error of the disk; it is then unknown which changes of this batch are durable.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        self.flush()
    }

    /// Rolls back uncommitted changes, as far as a later attempt depends on it: temporary names are removed, and files
    /// that were appended to get their former length. Returns the lengths of those that could not be shortened, by path
    /// below the root.
    pub(crate) fn roll_back(mut self) -> BTreeMap<String, u64> {
        for (temporary, _) in std::mem::take(&mut self.names) {
            let _ = fs::remove_file(temporary);
        }
        let mut longer = BTreeMap::new();
        for (path, length) in std::mem::take(&mut self.lengths) {
            let shorten = |length| match self.appended.get(&path) {
                Some(file) => file.set_len(length),
                None => OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(length)),
            };
            let outcome = fault_injection::step().and_then(|()| match length {
                Some(length) => shorten(length),
                None => fs::remove_file(&path),
            });
            let is_as_before = outcome.is_ok() || !path.exists();
            if let (false, Ok(below)) = (is_as_before, path.strip_prefix(&self.root)) {
                longer.insert(below.to_string_lossy().into_owned(), length.unwrap_or(0));
            }
        }
        longer
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let contents = self.replaced.len() + self.appended.len();
        if contents > SYNC_EACH_MAX {
            self.sync_all()?;
        } else {
            for (path, file) in self.replaced.iter().chain(&self.appended) {
                fault_injection::step().and_then(|()| file.sync_data()).map_err(StoreError::io("sync", path))?;
            }
        }
        self.replaced.clear();
        self.appended.clear();
        while let Some((temporary, path)) = self.names.front() {
            let renamed = fault_injection::step().and_then(|()| fs::rename(temporary, path));
            renamed.map_err(StoreError::io("replace", path))?;
            self.names.pop_front();
        }
        let directories = std::mem::take(&mut self.directories);
        if directories.len() > SYNC_EACH_MAX {
            return self.sync_all();
        }
        directories.iter().try_for_each(|directory| sync_directory(directory))
    }

    fn sync_all(&self) -> Result<(), StoreError> {
        let root = fault_injection::step()
            .and_then(|()| File::open(&self.root))
            .map_err(StoreError::io("open", &self.root))?;
        rustix::fs::syncfs(&root).map_err(|error| StoreError::io("sync the file system of", &self.root)(error.into()))
    }

    /// Creates a directory and its parents; directories with new names are recorded.
    fn make_directory(&mut self, directory: &Path) -> Result<(), StoreError> {
        if self.known.contains(directory) {
            return Ok(());
        }
        match fault_injection::step().and_then(|()| create_directory(directory, Access::Owner)) {
            Ok(()) => {
                self.directories.insert(directory_of(directory).to_owned());
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && directory != directory_of(directory) => {
                self.make_directory(directory_of(directory))?;
                return self.make_directory(directory);
            }
            Err(error) => return Err(StoreError::io("create the directory", directory)(error)),
        }
        self.known.insert(directory.to_owned());
        Ok(())
    }
}

/// Truncates a file to this length if it is longer.
fn shorten(file: &mut File, length: u64) -> io::Result<()> {
    if file.metadata()?.len() > length {
        fault_injection::step()?;
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
    }
    Ok(())
}
