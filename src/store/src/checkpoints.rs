//! Writes an agent's checkpoints to a disk that may be full, or return errors for a while.
//!
//! A batch of changes is written in place. If the disk returns an error, the partial write is rolled back and the batch
//! is written to a journal, with all batches that follow it, until they can be written in place. A batch counts as
//! written in either case. [`MetaDirectory`] implements the disk; a model of one can replace it.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use cores::{Change, Tree};

use crate::change::{decode, encode};
use crate::error::{DiskFailure, StoreError};
use crate::meta::JOURNAL;
use crate::meta_directory::MetaDirectory;

/// Place to which a batch was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// In place.
    InPlace,
    /// Into the journal.
    InJournal,
}

/// Durability that a record of a journal requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The record must survive the end of this process. After a restart of the host, when no container runs, the
    /// checkpoints may lack the record.
    UntilRestart,
    /// The record must survive restarts of the host, too.
    Always,
}

impl Durability {
    /// Returns the durability that changes require. Reservations and persistent volumes outlive restarts of the host;
    /// executors and tasks do not.
    fn of(changes: &[Change]) -> Durability {
        match changes.iter().any(|change| is_within(change.path(), "resources")) {
            true => Durability::Always,
            false => Durability::UntilRestart,
        }
    }
}

/// The disk of [`Checkpoints`]: files, links and directories in place, and a journal that needs no further space.
pub trait CheckpointDisk {
    /// Opens the journal of an earlier process, if there is one, and returns its records, in order.
    ///
    /// # Errors
    /// The journal exists and cannot be opened or read.
    fn open_journal(&mut self) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Makes changes in place durable. After an error everything is unchanged, as far as a later attempt depends on it.
    /// If the changes were made with reserved descriptors, returns the trouble that required these.
    ///
    /// # Errors
    /// An error of the disk.
    fn apply(&mut self, changes: &[Change]) -> Result<Option<DiskFailure>, StoreError>;

    /// Returns the number of valid bytes of a file in place; 0 if it does not exist.
    fn length(&self, path: &str) -> u64;

    /// Appends a record to a journal; it is durable on return. Returns `false` if no journal of the required durability
    /// accepts it.
    fn append(&mut self, record: &[u8], durability: Durability) -> bool;

    /// Discards the records of the journal, which are in place now. This is durable on return.
    ///
    /// # Errors
    /// An error of the disk.
    fn clear_journal(&mut self) -> Result<(), StoreError>;

    /// Creates the journal and fills the reserve of descriptors, if something is missing.
    ///
    /// # Errors
    /// An error of the disk.
    fn restore_reserves(&mut self) -> Result<(), StoreError>;

    /// Checks that there is space, an inode and a descriptor for a file.
    ///
    /// # Errors
    /// What is missing.
    fn probe(&mut self) -> Result<(), StoreError>;
}

/// The checkpoints on one disk.
#[derive(Debug)]
pub struct Checkpoints<D = MetaDirectory> {
    disk: D,
    /// Changes that are in the journal and not in place yet, in order.
    in_journal: VecDeque<Vec<Change>>,
    /// Lengths that files will have when these changes are in place.
    ahead: Lengths,
    /// Error of the disk's last use; `None` if it succeeded.
    disk_failure: Option<DiskFailure>,
}

/// Lengths of files after changes that are not in place yet.
#[derive(Clone, Debug, Default)]
struct Lengths {
    known: BTreeMap<String, u64>,
    removed: Vec<String>,
}

impl Lengths {
    fn get(&self, path: &str) -> Option<u64> {
        let is_gone = || self.removed.iter().any(|removed| is_within(path, removed));
        self.known.get(path).copied().or_else(|| is_gone().then_some(0))
    }

    fn note(&mut self, change: &Change) {
        match change {
            Change::Append { path, at: Some(at), bytes } => {
                self.known.insert(path.clone(), at + bytes.len() as u64);
            }
            Change::Replace { path, bytes } => {
                self.known.insert(path.clone(), bytes.len() as u64);
            }
            Change::Remove { path } => {
                self.known.retain(|known, _| !is_within(known, path));
                self.removed.push(path.clone());
            }
            Change::Append { at: None, .. } | Change::Directory { .. } | Change::Link { .. } => {}
        }
    }
}

/// Returns whether `path` is this file or directory, or is below it.
fn is_within(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Checkpoints {
    /// Opens the checkpoints below `root`, which need not exist yet. Records in the journals of an earlier process are
    /// written in place, if the disk accepts them now. The second journal is in `runtime`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn open(root: &Path, runtime: &Path) -> Result<Checkpoints, StoreError> {
        let mut checkpoints = Checkpoints::new(MetaDirectory::new(root, runtime));
        checkpoints.recover()?;
        Ok(checkpoints)
    }

    /// Reads the checkpoints, in place or in the journal.
    ///
    /// # Errors
    /// A file exists and cannot be read.
    pub fn read(&self) -> Result<Tree, StoreError> {
        self.disk.read(self.in_journal())
    }

    /// Sets a function that is called with the name of each step of a write: a test may end the process there.
    pub fn on_step(&mut self, hear: fn(&str)) {
        self.disk.on_step(hear);
    }
}

impl<D: CheckpointDisk> Checkpoints<D> {
    /// Creates checkpoints on this disk. [`Checkpoints::recover`] must be called next.
    pub fn new(disk: D) -> Checkpoints<D> {
        Checkpoints { disk, in_journal: VecDeque::new(), ahead: Lengths::default(), disk_failure: None }
    }

    /// Recovers the state from the disk, as a new process does. Records in the journal of an earlier process are
    /// written in place, if that is possible now.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn recover(&mut self) -> Result<(), StoreError> {
        self.in_journal.clear();
        (self.ahead, self.disk_failure) = (Lengths::default(), None);
        for record in self.disk.open_journal()? {
            let damaged = || std::io::Error::from(std::io::ErrorKind::InvalidData);
            let changes = decode(&record).ok_or_else(|| StoreError::io("read", Path::new(JOURNAL))(damaged()))?;
            changes.iter().for_each(|change| self.ahead.note(change));
            self.in_journal.push_back(changes);
        }
        match self.catch_up() {
            Err(error) if !error.is_transient() => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes changes durable, all of them or none.
    ///
    /// # Errors
    /// The changes cannot be made durable. If the error [is transient](StoreError::is_transient), the same changes can
    /// be written again.
    pub fn write(&mut self, changes: &[Change]) -> Result<Written, StoreError> {
        if self.in_journal.is_empty() {
            match self.apply(changes).and_then(|()| self.disk.clear_journal()) {
                Ok(()) => return Ok(Written::InPlace),
                Err(error) if !error.is_transient() => return Err(error),
                Err(error) => self.disk_failure = Some(error.disk_failure()),
            }
        }
        let changes = self.with_lengths(changes);
        if !self.disk.append(&encode(&changes), Durability::of(&changes)) {
            self.catch_up().and_then(|()| self.apply(&changes)).and_then(|()| self.disk.clear_journal())?;
            return Ok(Written::InPlace);
        }
        changes.iter().for_each(|change| self.ahead.note(change));
        self.in_journal.push_back(changes);
        Ok(Written::InJournal)
    }

    /// Completes the work that the disk did not allow before: writes the records of the journal in place, creates the
    /// journal, and after trouble checks whether there is space again.
    ///
    /// # Errors
    /// The part that is still not possible.
    pub fn complete_pending(&mut self) -> Result<(), StoreError> {
        let outcome = self.catch_up().and_then(|()| self.disk.restore_reserves());
        let outcome = outcome.and_then(|()| if self.disk_failure.is_some() { self.disk.probe() } else { Ok(()) });
        self.disk_failure = outcome.as_ref().err().map(StoreError::disk_failure);
        outcome
    }

    /// Returns the error of the disk's last use; `None` if that succeeded.
    pub fn disk_failure(&self) -> Option<&DiskFailure> {
        self.disk_failure.as_ref()
    }

    /// Returns the changes that are in the journal and not in place yet, in order.
    pub fn in_journal(&self) -> impl Iterator<Item = &Change> {
        self.in_journal.iter().flatten()
    }

    /// Returns the disk.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Returns a mutable reference to the disk; tests use it to inject errors.
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Writes the changes in the journal in place.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        if !self.in_journal.is_empty() {
            let changes: Vec<Change> = self.in_journal().cloned().collect();
            self.apply(&changes)?;
        }
        self.disk.clear_journal()?;
        self.in_journal.clear();
        self.ahead = Lengths::default();
        Ok(())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        if let Some(disk_failure) = self.disk.apply(changes)? {
            self.disk_failure = Some(disk_failure);
        }
        Ok(())
    }

    /// Returns the changes with the valid length of each file before them.
    fn with_lengths(&self, changes: &[Change]) -> Vec<Change> {
        let mut ahead = self.ahead.clone();
        let complete = |change: &Change| {
            let mut change = change.clone();
            if let Change::Append { path, at: at @ None, .. } = &mut change {
                *at = ahead.get(path).or_else(|| Some(self.disk.length(path)));
            }
            ahead.note(&change);
            change
        };
        changes.iter().map(complete).collect()
    }
}

#[cfg(test)]
#[path = "checkpoints_tests.rs"]
mod tests;
