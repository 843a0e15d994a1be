//! An agent's modelled disk: the checkpoints in place, the journals, and the refusal of writes for a while.
//!
//! `store::Checkpoints` decides where something is written and what the agent is told, as in the daemon.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

use agent::Tree;
use base::Time;
use store::{Change, CheckpointDisk, Lasting, StoreError, Trouble};

/// How many bytes of records the journal holds: so few that it fills up.
const JOURNAL_BYTES: usize = 8 << 10;

/// Why a disk refuses writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// ENOSPC.
    NoSpace,
    /// EDQUOT.
    Quota,
    /// EMFILE.
    Descriptors,
    /// EROFS.
    ReadOnly,
    /// EIO.
    Io,
}

impl DiskError {
    /// The number of the error on Linux.
    fn code(self) -> i32 {
        match self {
            DiskError::NoSpace => 28,
            DiskError::Quota => 122,
            DiskError::Descriptors => 24,
            DiskError::ReadOnly => 30,
            DiskError::Io => 5,
        }
    }

    /// Whether files that are there, such as the journal, can still be overwritten.
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

/// How a disk refuses writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error.
    pub error: DiskError,
    /// It ends before its time once the agent has deleted this many old sandboxes and directories of checkpoints.
    pub room: Option<u32>,
    /// How much of a refused write is done anyway, modulo the length of the write.
    pub partial: u32,
    /// Whether the descriptors in reserve are enough.
    pub reserve: bool,
}

/// The disk of an agent's host.
#[derive(Debug, Default)]
pub(super) struct Disk {
    pub tree: Tree,
    /// Records of the journal; none before it is made.
    journal: Option<Vec<Vec<u8>>>,
    /// Records of the second journal, which is on a tmpfs.
    second: Vec<Vec<u8>>,
    /// How many bytes of a file count, where a part of a refused write could not be cut off. The process knows it, not
    /// the disk.
    longer: BTreeMap<String, u64>,
    refusal: Option<(Refusal, Time)>,
}

impl Disk {
    /// Refuses writes until then.
    pub fn refuse(&mut self, refusal: Refusal, until: Time) {
        self.refusal = Some((refusal, until));
    }

    /// Takes writes again.
    pub fn heal(&mut self) {
        self.refusal = None;
    }

    /// The error of writes, if they fail at this time.
    pub fn refuses(&mut self, now: Time) -> Option<DiskError> {
        if self.refusal.is_some_and(|(_, until)| until <= now) {
            self.heal();
        }
        self.refusal.map(|(refusal, _)| refusal.error)
    }

    /// The host restarts: what is on a tmpfs is lost.
    pub fn host_restarts(&mut self) {
        self.second.clear();
    }

    /// A new process uses it, with descriptors of its own.
    pub fn process_starts(&mut self) {
        if self.refusal.is_some_and(|(refusal, _)| refusal.error == DiskError::Descriptors) {
            self.heal();
        }
    }

    /// The agent has deleted something that took room.
    pub fn deleted(&mut self, count: usize) {
        let Some((Refusal { room: Some(room), .. }, _)) = &mut self.refusal else { return };
        *room = room.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
        if *room == 0 {
            self.heal();
        }
    }

    /// The journal is gone.
    pub fn lose_journal(&mut self) {
        self.journal = None;
    }

    /// Makes the first changes and a half of the next one, if that appends: a process ends within a write.
    pub fn tear(&mut self, changes: Vec<Change>, whole: usize) {
        let mut changes = changes.into_iter();
        changes.by_ref().take(whole).for_each(|change| self.make(&change));
        if let Some(Change::Append { path, at, mut bytes }) = changes.next() {
            bytes.truncate(bytes.len() / 2);
            self.make(&Change::Append { path, at, bytes });
        }
    }

    /// Makes a change in place.
    fn make(&mut self, change: &Change) {
        let mut change = change.clone();
        if let Change::Append { path, at, .. } = &mut change {
            *at = at.or_else(|| self.longer.get(path).copied());
        }
        self.tree.take(change);
    }

    /// A refused write: directories and names may be there already, and appended bytes where they cannot be cut off.
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

    fn apply(&mut self, changes: &[Change]) -> Result<Option<Trouble>, StoreError> {
        let mut trouble = None;
        if let Some((refusal, _)) = self.refusal {
            let error = refusal.error.refused("write");
            if refusal.error != DiskError::Descriptors || !refusal.reserve {
                self.make_partly(changes, refusal);
                return Err(error);
            }
            trouble = Some(error.trouble());
        }
        changes.iter().for_each(|change| self.make(change));
        self.longer.clear();
        Ok(trouble)
    }

    fn length(&self, path: &str) -> u64 {
        let in_place = || self.tree.files.get(path).map_or(0, |file| file.len() as u64);
        self.longer.get(path).copied().unwrap_or_else(in_place)
    }

    fn append(&mut self, record: &[u8], lasting: Lasting) -> bool {
        let overwrites = self.refusal.is_none_or(|(refusal, _)| refusal.error.overwrites());
        let first = self.journal.as_mut().filter(|_| overwrites && self.second.is_empty());
        if first.is_some_and(|journal| add(journal, record)) {
            return true;
        }
        lasting == Lasting::UntilRestart && self.journal.is_some() && add(&mut self.second, record)
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

    fn restock(&mut self) -> Result<(), StoreError> {
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

/// Adds a record to a journal, unless it is full.
fn add(journal: &mut Vec<Vec<u8>>, record: &[u8]) -> bool {
    let used: usize = journal.iter().map(Vec::len).sum();
    let fits = used + record.len() <= JOURNAL_BYTES;
    if fits {
        journal.push(record.to_vec());
    }
    fits
}

/// A tree with changes as if they were in place.
pub(super) fn shown<'a>(tree: Tree, aside: impl Iterator<Item = &'a Change>) -> Tree {
    let mut disk = Disk { tree, ..Disk::default() };
    aside.for_each(|change| disk.make(change));
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
    fn what_was_written_is_there_whatever_the_disk_refuses() {
        let errors = [DiskError::NoSpace, DiskError::Quota, DiskError::Descriptors, DiskError::ReadOnly, DiskError::Io];
        for (error, partial, reserve) in errors.into_iter().flat_map(|e| (0..4).map(move |n| (e, n, n % 2 == 0))) {
            let case = format!("{error} {partial} {reserve}");
            let mut checkpoints = Checkpoints::new(Disk::default());
            checkpoints.recover().unwrap();
            checkpoints.tend().unwrap();
            checkpoints.write(&append(b"one ")).unwrap();
            let refusal = Refusal { error, room: None, partial, reserve };
            checkpoints.disk_mut().refuse(refusal, Time::from_secs(1));
            let first = checkpoints.write(&append(b"two "));
            assert!(first.is_ok(), "{case}");
            assert!(checkpoints.trouble().is_some() && checkpoints.tend().is_err(), "{case}");
            let reservation = Change::Replace { path: "resources/info".to_owned(), bytes: Vec::new() };
            assert_eq!(checkpoints.write(&[reservation]).is_ok(), error.overwrites(), "{case}");
            checkpoints.recover().unwrap();
            assert_eq!(checkpoints.disk_mut().refuses(Time::from_secs(1)), None);
            checkpoints.recover().unwrap();
            checkpoints.write(&append(b"three")).unwrap();
            checkpoints.tend().unwrap();
            assert_eq!(checkpoints.disk().tree.files["updates"], b"one two three", "{case}");
        }
    }
}
