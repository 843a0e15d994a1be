//! An agent's checkpoints on a disk that may be full, or refuse for a while.
//!
//! A batch of changes is written where it belongs. If the disk refuses, what was half done is taken back and the batch goes
//! into the [journal](crate::journal), with all that come after it, until they can be written where they belong. A batch
//! counts as written in either place. Descriptors are kept in reserve for the time when the process has none.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::batch::Batch;
use crate::change::{Change, decode, encode};
use crate::error::{StoreError, Trouble};
use crate::journal::Journal;
use crate::meta::{JOURNAL, MetaTree, read_meta};
use crate::trouble;

/// How many descriptors are kept in reserve: as many as a batch has open at most, nearly always.
const SPARE: usize = 16;
/// The room that there must be before the disk counts as well again.
const ROOM: u64 = 1 << 20;
/// The file that is made, and removed, to see whether there is room.
const PROBE: &str = "checkpoints.probe";

/// Where a batch was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Where it belongs.
    InPlace,
    /// Into the journal.
    Aside,
}

/// The checkpoints below one meta directory.
#[derive(Debug)]
pub struct Checkpoints {
    root: PathBuf,
    journal: Option<Journal>,
    /// What is in the journal and not yet where it belongs, in order.
    aside: VecDeque<Vec<Change>>,
    /// The lengths that files will have once that is done.
    ahead: Lengths,
    /// How much of a file counts, where a part of a failed try could not be cut off.
    longer: BTreeMap<String, u64>,
    /// Why the disk was not well when it was last used.
    trouble: Option<Trouble>,
    spare: Vec<File>,
    /// Hears of each step of a write, by name.
    on_step: fn(&str),
}

/// The lengths of files after changes that are not yet where they belong.
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
            Change::Append { at: None, .. } | Change::Folder { .. } | Change::Link { .. } => {}
        }
    }
}

/// Whether it is this file or directory, or lies below it.
pub(crate) fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Checkpoints {
    /// The checkpoints below `root`, which need not be there yet. What an earlier process had to put aside is written where it
    /// belongs, if that can be done now.
    ///
    /// # Errors
    /// When what is there cannot be read.
    pub fn open(root: &Path) -> Result<Checkpoints, StoreError> {
        let mut checkpoints = Checkpoints {
            root: root.to_owned(),
            journal: None,
            aside: VecDeque::new(),
            ahead: Lengths::default(),
            longer: BTreeMap::new(),
            trouble: None,
            spare: Vec::new(),
            on_step: |_| {},
        };
        let _ = checkpoints.take_spare();
        let path = root.join(JOURNAL);
        if let Some((journal, records)) = Journal::open(&path)? {
            checkpoints.journal = Some(journal);
            for record in records {
                let damaged = || std::io::Error::from(std::io::ErrorKind::InvalidData);
                let changes = decode(&record).ok_or_else(|| StoreError::io("read", &path)(damaged()))?;
                changes.iter().for_each(|change| checkpoints.ahead.note(change));
                checkpoints.aside.push_back(changes);
            }
        }
        match checkpoints.catch_up() {
            Err(error) if !error.is_transient() => Err(error),
            _ => Ok(checkpoints),
        }
    }

    /// Reads what has been written, wherever it is.
    ///
    /// # Errors
    /// When something that is there cannot be read.
    pub fn read(&self) -> Result<MetaTree, StoreError> {
        let mut tree = read_meta(&self.root)?;
        for change in self.aside.iter().flatten() {
            tree.apply(&self.root, change);
        }
        Ok(tree)
    }

    /// Makes changes durable, all of them or none.
    ///
    /// # Errors
    /// When that cannot be done. If the error [is transient](StoreError::is_transient), the same changes can be written again.
    pub fn write(&mut self, changes: &[Change]) -> Result<Written, StoreError> {
        if self.aside.is_empty() {
            match self.apply(changes).and_then(|()| self.clear()) {
                Ok(()) => return Ok(Written::InPlace),
                Err(error) if !error.is_transient() => return Err(error),
                Err(error) => self.trouble = Some(error.trouble()),
            }
        }
        let changes = self.with_lengths(changes);
        let kept = match &mut self.journal {
            Some(journal) => journal.append(&encode(&changes)).unwrap_or(false),
            None => false,
        };
        if !kept {
            // The journal is full, or refuses too.
            self.catch_up().and_then(|()| self.apply(&changes)).and_then(|()| self.clear())?;
            return Ok(Written::InPlace);
        }
        changes.iter().for_each(|change| self.ahead.note(change));
        self.aside.push_back(changes);
        Ok(Written::Aside)
    }

    /// Does what was left undone while the disk refused: writes what is aside where it belongs, makes the journal, and after
    /// trouble looks whether there is room again.
    ///
    /// # Errors
    /// What still cannot be done.
    pub fn tend(&mut self) -> Result<(), StoreError> {
        let outcome = self.catch_up().and_then(|()| self.restock());
        self.trouble = outcome.as_ref().err().map(StoreError::trouble);
        outcome
    }

    /// What the disk said, if it was not well when it was last used and nothing has shown since that it is.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Has this called with the name of each step of a write: a test may end the process there.
    pub fn on_step(&mut self, hear: fn(&str)) {
        self.on_step = hear;
    }

    fn restock(&mut self) -> Result<(), StoreError> {
        self.take_spare().map_err(StoreError::io("open", Path::new("/dev/null")))?;
        if self.journal.is_none() {
            self.journal = Some(Journal::create(&self.root.join(JOURNAL))?);
        }
        if self.trouble.is_some() {
            self.probe()?;
        }
        Ok(())
    }

    /// Whether there is room, an inode and a descriptor for a file.
    fn probe(&self) -> Result<(), StoreError> {
        let path = self.root.join(PROBE);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let allocated = trouble::step().and_then(|()| options.open(&path)).and_then(|file| {
            let flags = rustix::fs::FallocateFlags::empty();
            match rustix::fs::fallocate(&file, flags, 0, ROOM) {
                // Not every file system can.
                Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
                outcome => outcome.map_err(std::io::Error::from),
            }
        });
        let _ = fs::remove_file(&path);
        allocated.map_err(StoreError::io("allocate", &path))
    }

    /// Writes what is aside where it belongs.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        if !self.aside.is_empty() {
            let changes: Vec<Change> = self.aside.iter().flatten().cloned().collect();
            self.apply(&changes)?;
        }
        self.clear()?;
        self.aside.clear();
        self.ahead = Lengths::default();
        Ok(())
    }

    /// All that is in the journal is where it belongs.
    fn clear(&mut self) -> Result<(), StoreError> {
        let path = self.root.join(JOURNAL);
        self.journal.as_mut().map_or(Ok(()), Journal::clear).map_err(StoreError::io("write", &path))
    }

    /// Writes changes where they belong; if that fails, all is as it was, as far as a later try depends on it.
    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        match self.apply_once(changes) {
            Err(error) if error.lacks_descriptors() && !self.spare.is_empty() => {
                self.trouble = Some(error.trouble());
                self.spare.clear();
                let outcome = self.apply_once(changes);
                let _ = self.take_spare();
                outcome
            }
            outcome => outcome,
        }
    }

    fn apply_once(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut batch = Batch::new(&self.root);
        let mut write = || {
            for change in changes {
                (self.on_step)("before an entry");
                match change {
                    Change::Replace { path, bytes } => batch.replace(path, bytes)?,
                    Change::Append { path, at, bytes } => {
                        batch.append_at(path, at.or_else(|| self.longer.get(path).copied()), bytes)?;
                    }
                    Change::Folder { path } => batch.folder(path)?,
                    Change::Link { path, target } => batch.link(path, target)?,
                    Change::Remove { path } => batch.remove(path)?,
                }
            }
            (self.on_step)("before the entries are durable");
            batch.commit()?;
            (self.on_step)("after the entries are durable");
            Ok(())
        };
        let outcome = write();
        match outcome {
            Ok(()) => self.longer.clear(),
            Err(_) => self.longer.extend(batch.roll_back()),
        }
        outcome
    }

    /// The same changes, each of which says how much of its file counts before it.
    fn with_lengths(&self, changes: &[Change]) -> Vec<Change> {
        let mut ahead = self.ahead.clone();
        let complete = |change: &Change| {
            let mut change = change.clone();
            if let Change::Append { path, at: at @ None, .. } = &mut change {
                let known = ahead.get(path).or_else(|| self.longer.get(path).copied());
                *at = known.or_else(|| Some(fs::metadata(self.root.join(path)).map_or(0, |found| found.len())));
            }
            ahead.note(&change);
            change
        };
        changes.iter().map(complete).collect()
    }

    fn take_spare(&mut self) -> std::io::Result<()> {
        while self.spare.len() < SPARE {
            self.spare.push(trouble::step().and_then(|()| File::open("/dev/null"))?);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "checkpoints_tests.rs"]
mod tests;
