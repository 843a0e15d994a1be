//! An agent's modelled disk: the checkpoints in place, the journals, and temporary refusal of writes.
//!
//! `store::Checkpoints` decides where something is written and what the agent is notified of, as in the daemon.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

use agent::Tree;
use base::Time;
use store::{Change, CheckpointDisk, DiskFailure, Durability, StoreError};

/// Capacity of the journal in bytes of records; so small that the journal fills up.
const JOURNAL_BYTES: usize = 8 << 10;

/// The error with which a disk refuses writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// No space left on the device (ENOSPC).
    NoSpace,
    /// Disk quota exceeded (EDQUOT).
    Quota,
    /// Too many open files (EMFILE).
    Descriptors,
    /// Read-only file system (EROFS).
    ReadOnly,
    /// Input/output error (EIO).
    Io,
}

impl DiskError {
    /// Returns the number of the error on Linux.
    fn code(self) -> i32 {
        match self {
            DiskError::NoSpace => 28,
            DiskError::Quota => 122,
            DiskError::Descriptors => 24,
            DiskError::ReadOnly => 30,
            DiskError::Io => 5,
        }
    }

    /// Returns whether existing files, such as the journal, can still be overwritten.
    fn overwrites(self) -> bool {
        matches!(self, DiskError::NoSpace | DiskError::Quota | DiskError::Descriptors)
    }

    fn refused(self, action: &'static str) -> StoreError {
        StoreError::Io { action, path: PathBuf::from("/w/meta"), source: io::Error::from_raw_os_error(self.code()) }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DiskError::NoSpace => "ENOSPC",
            DiskError::Quota => "EDQUOT",
            DiskError::Descriptors => "EMFILE",
            DiskError::ReadOnly => "EROFS",
            DiskError::Io => "EIO",
        })
    }
}

/// The way in which a disk refuses writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Error of refused writes.
    pub error: DiskError,
    /// Number of old sandboxes and directories of checkpoints whose deletion ends the refusal early; `None` if
    /// deletions do not help.
    pub room: Option<u32>,
    /// Number of changes of a refused write that are made anyway, modulo the length of the write plus one.
    pub partial: u32,
    /// Whether the reserved descriptors are sufficient for writes.
    pub reserve: bool,
}

/// The disk of an agent's host.
#[derive(Debug, Default)]
pub(super) struct Disk {
    pub tree: Tree,
    /// Records of the journal; `None` before it is created.
    journal: Option<Vec<Vec<u8>>>,
    /// Records of the second journal, which is on a tmpfs.
    second: Vec<Vec<u8>>,
    /// Valid lengths of files from which a part of a refused write could not be removed. The process knows them, not
    /// the disk.
    longer: BTreeMap<String, u64>,
    refusal: Option<(Refusal, Time)>,
}

impl Disk {
    /// Makes the disk refuse writes until a time.
    pub fn refuse(&mut self, refusal: Refusal, until: Time) {
        self.refusal = Some((refusal, until));
    }

    /// Ends the refusal of writes.
    pub fn heal(&mut self) {
        self.refusal = None;
    }

    /// Returns the error of writes, if they fail at this time.
    pub fn refuses(&mut self, now: Time) -> Option<DiskError> {
        if self.refusal.is_some_and(|(_, until)| until <= now) {
            self.heal();
        }
        self.refusal.map(|(refusal, _)| refusal.error)
    }

    /// Restarts the host, which loses the content of a tmpfs.
    pub fn host_restarts(&mut self) {
        self.second.clear();
    }

    /// Starts a new process, which has descriptors of its own.
    pub fn process_starts(&mut self) {
        if self.refusal.is_some_and(|(refusal, _)| refusal.error == DiskError::Descriptors) {
            self.heal();
        }
    }

    /// Records that the agent has deleted `count` directories, which may end a refusal.
    pub fn deleted(&mut self, count: usize) {
        let Some((Refusal { room: Some(room), .. }, _)) = &mut self.refusal else { return };
        *room = room.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
        if *room == 0 {
            self.heal();
        }
    }

    /// Removes the journal.
    pub fn lose_journal(&mut self) {
        self.journal = None;
    }

    /// Makes the first `whole` changes, and a half of the next one if it appends, as when a process ends within a
    /// write.
    pub fn tear(&mut self, changes: Vec<Change>, whole: usize) {
        let mut changes = changes.into_iter();
        changes.by_ref().take(whole).for_each(|change| self.make(&change));
        if let Some(Change::Append { path, at, mut bytes }) = changes.next() {
            bytes.truncate(bytes.len() / 2);
            self.make(&Change::Append { path, at, bytes });
        }
    }

    /// Applies a change to the files in place.
    fn make(&mut self, change: &Change) {
        let mut change = change.clone();
        if let Change::Append { path, at, .. } = &mut change {
            *at = at.or_else(|| self.longer.get(path).copied());
        }
        self.tree.take(change);
    }

    /// Makes a part of a refused write: directories and names may exist already, and appended bytes where they cannot
    /// be removed.
    fn make_partly(&mut self, changes: &[Change], refusal: Refusal) {
        let done = refusal.partial as usize % (changes.len() + 1);
        for change in changes.iter().take(done) {
            let Change::Append { path, at, bytes } = change else {
                self.make(change);
                continue;
            };
            if refusal.error.overwrites() {
                continue;
            }
            let length = at.unwrap_or_else(|| self.length(path));
            let part = bytes.len() / (1 + refusal.partial as usize % 2);
            self.make(&Change::Append { path: path.clone(), at: Some(length), bytes: bytes[..part].to_vec() });
            self.longer.entry(path.clone()).or_insert(length);
        }
    }
}

impl CheckpointDisk for Disk {
    fn open_journal(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        self.longer.clear();
        Ok(self.journal.iter().flatten().chain(&self.second).cloned().collect())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<Option<DiskFailure>, StoreError> {
        let mut disk_failure = None;
        if let Some((refusal, _)) = self.refusal {
            let error = refusal.error.refused("write");
            if refusal.error != DiskError::Descriptors || !refusal.reserve {
                self.make_partly(changes, refusal);
                return Err(error);
            }
            disk_failure = Some(error.disk_failure());
        }
        changes.iter().for_each(|change| self.make(change));
        self.longer.clear();
        Ok(disk_failure)
    }

    fn length(&self, path: &str) -> u64 {
        let in_place = || self.tree.files.get(path).map_or(0, |file| file.len() as u64);
        self.longer.get(path).copied().unwrap_or_else(in_place)
    }

    fn append(&mut self, record: &[u8], durability: Durability) -> bool {
        let overwrites = self.refusal.is_none_or(|(refusal, _)| refusal.error.overwrites());
        let first = self.journal.as_mut().filter(|_| overwrites && self.second.is_empty());
        if first.is_some_and(|journal| add(journal, record)) {
            return true;
        }
        durability == Durability::UntilRestart && self.journal.is_some() && add(&mut self.second, record)
    }

    fn clear_journal(&mut self) -> Result<(), StoreError> {
        let in_use = self.journal.as_ref().is_some_and(|journal| !journal.is_empty());
        match self.refusal {
            Some((refusal, _)) if in_use && !refusal.error.overwrites() => return Err(refusal.error.refused("write")),
            _ => self.journal.iter_mut().for_each(Vec::clear),
        }
        self.second.clear();
        Ok(())
    }

    fn restore_reserves(&mut self) -> Result<(), StoreError> {
        if self.journal.is_none() {
            self.probe()?;
            self.journal = Some(Vec::new());
        }
        Ok(())
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        self.refusal.map_or(Ok(()), |(refusal, _)| Err(refusal.error.refused("allocate")))
    }
}

/// Adds a record to a journal, unless it is full. Returns whether it was added.
fn add(journal: &mut Vec<Vec<u8>>, record: &[u8]) -> bool {
    let used: usize = journal.iter().map(Vec::len).sum();
    let fits = used + record.len() <= JOURNAL_BYTES;
    if fits {
        journal.push(record.to_vec());
    }
    fits
}

/// Returns a tree in which the changes are made.
pub(super) fn shown<'a>(tree: Tree, in_journal: impl Iterator<Item = &'a Change>) -> Tree {
    let mut disk = Disk { tree, ..Disk::default() };
    in_journal.for_each(|change| disk.make(change));
    disk.tree
}

#[cfg(test)]
mod tests {
    use store::Checkpoints;

    use super::*;

    fn append(bytes: &[u8]) -> [Change; 1] {
        [Change::Append { path: "updates".to_owned(), at: None, bytes: bytes.to_vec() }]
    }

    #[test]
    fn written_checkpoints_survive_refused_writes() {
        let errors = [DiskError::NoSpace, DiskError::Quota, DiskError::Descriptors, DiskError::ReadOnly, DiskError::Io];
        for (error, partial, reserve) in errors.into_iter().flat_map(|e| (0..4).map(move |n| (e, n, n % 2 == 0))) {
            let case = format!("{error} {partial} {reserve}");
            let mut checkpoints = Checkpoints::new(Disk::default());
            checkpoints.recover().unwrap();
            checkpoints.complete_pending().unwrap();
            checkpoints.write(&append(b"one ")).unwrap();
            let refusal = Refusal { error, room: None, partial, reserve };
            checkpoints.disk_mut().refuse(refusal, Time::from_secs(1));
            let first = checkpoints.write(&append(b"two "));
            assert!(first.is_ok(), "{case}");
            assert!(checkpoints.disk_failure().is_some() && checkpoints.complete_pending().is_err(), "{case}");
            let reservation = Change::Replace { path: "resources/info".to_owned(), bytes: Vec::new() };
            assert_eq!(checkpoints.write(&[reservation]).is_ok(), error.overwrites(), "{case}");
            checkpoints.recover().unwrap();
            assert_eq!(checkpoints.disk_mut().refuses(Time::from_secs(1)), None);
            checkpoints.recover().unwrap();
            checkpoints.write(&append(b"three")).unwrap();
            checkpoints.complete_pending().unwrap();
            assert_eq!(checkpoints.disk().tree.files["updates"], b"one two three", "{case}");
        }
    }
}
