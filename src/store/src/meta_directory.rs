//! The meta directory as a disk of checkpoints: batches in place, two journals, and reserved descriptors.
//!
//! It does not decide when something is written where. The reserve is used when the process has no free descriptors.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base::Time;
use cores::{Change, Tree};

use crate::batch::Batch;
use crate::checkpoints::{CheckpointDisk, Durability};
use crate::error::{DiskFailure, StoreError};
use crate::fault_injection;
use crate::journal::{Journal, RUNTIME_SIZE, SIZE};
use crate::meta::{self, JOURNAL, read_meta};

/// Maximum number of reserved descriptors: almost every batch has at most as many files open.
const SPARE: usize = 16;
/// Space in bytes that must be free before the disk counts as healthy again.
const ROOM: u64 = 1 << 20;
/// Name of the file that is created and deleted to check for space.
const PROBE: &str = "checkpoints.probe";

/// A meta directory on the disk of this host.
#[derive(Debug)]
pub struct MetaDirectory {
    root: PathBuf,
    /// Directory of the second journal, on another file system, usually a tmpfs.
    runtime: PathBuf,
    journal: Option<Journal>,
    /// Second journal, whose records follow those of `journal`; `None` as long as the disk accepts the first one.
    second: Option<Journal>,
    /// Numbers of valid bytes of files from which a part of a failed write could not be removed.
    longer: BTreeMap<String, u64>,
    spare: Vec<File>,
    /// Function that is called with the name of each step of a write.
    on_step: fn(&str),
}

impl MetaDirectory {
    pub(crate) fn new(root: &Path, runtime: &Path) -> MetaDirectory {
        MetaDirectory {
            root: root.to_owned(),
            runtime: runtime.to_owned(),
            journal: None,
            second: None,
            longer: BTreeMap::new(),
            spare: Vec::new(),
            on_step: |_| {},
        }
    }

    pub(crate) fn on_step(&mut self, hear: fn(&str)) {
        self.on_step = hear;
    }

    /// Reads the checkpoints in place, with the changes of the journals applied.
    pub(crate) fn read<'a>(&self, in_journal: impl Iterator<Item = &'a Change>) -> Result<Tree, StoreError> {
        let mut tree = read_meta(&self.root)?;
        let journals = self.journal.iter().chain(&self.second);
        let written = journals.filter_map(Journal::written).max().unwrap_or_default();
        let written = Time::from_epoch(written);
        in_journal.for_each(|change| meta::apply(&mut tree, &self.root, change, written));
        Ok(tree)
    }

    fn apply_once(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut batch = Batch::new(&self.root);
        let mut write = || {
            for change in changes {
                (self.on_step)("before an entry");
                match change {
                    Change::Replace { path, bytes } => batch.replace(path, bytes)?,
                    Change::Append { path, at, bytes } => {
                        let left = || self.longer.get(path).copied().filter(|_| !batch.writes(path));
                        batch.append_at(path, at.or_else(left), bytes)?;
                    }
                    Change::Directory { path } => batch.directory(path)?,
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

    /// Returns the path of the second journal. It belongs to the first one: a new meta directory at the same path has
    /// another id.
    fn second_path(&self) -> Option<PathBuf> {
        let id = self.journal.as_ref()?.id()?;
        Some(self.runtime.join(format!("checkpoints-{id:016x}.journal")))
    }

    fn append_to_second(&mut self, record: &[u8]) -> bool {
        if self.second.is_none() {
            self.second = self.second_path().and_then(|path| Journal::create_sparse(&path).ok());
        }
        self.second.as_mut().is_some_and(|journal| journal.append(record).unwrap_or(false))
    }

    fn take_spare(&mut self) -> std::io::Result<()> {
        while self.spare.len() < SPARE {
            self.spare.push(fault_injection::step().and_then(|()| File::open("/dev/null"))?);
        }
        Ok(())
    }
}

impl CheckpointDisk for MetaDirectory {
    fn open_journal(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        let _ = self.take_spare();
        self.longer.clear();
        (self.journal, self.second) = (None, None);
        let Some((journal, mut records)) = Journal::open(&self.root.join(JOURNAL), SIZE)? else {
            return Ok(Vec::new());
        };
        self.journal = Some(journal);
        if let Some(path) = self.second_path()
            && let Some((second, later)) = Journal::open(&path, RUNTIME_SIZE)?
        {
            self.second = Some(second);
            records.extend(later);
        }
        Ok(records)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<Option<DiskFailure>, StoreError> {
        match self.apply_once(changes) {
            Err(error) if error.lacks_descriptors() && !self.spare.is_empty() => {
                self.spare.clear();
                let outcome = self.apply_once(changes);
                let _ = self.take_spare();
                outcome.map(|()| Some(error.disk_failure()))
            }
            outcome => outcome.map(|()| None),
        }
    }

    fn length(&self, path: &str) -> u64 {
        let in_place = || fs::metadata(self.root.join(path)).map_or(0, |found| found.len());
        self.longer.get(path).copied().unwrap_or_else(in_place)
    }

    fn append(&mut self, record: &[u8], durability: Durability) -> bool {
        // The records of the second journal follow all of the first one.
        let first = if self.second.is_none() { self.journal.as_mut() } else { None };
        first.is_some_and(|journal| journal.append(record).unwrap_or(false))
            || durability == Durability::UntilRestart && self.append_to_second(record)
    }

    fn clear_journal(&mut self) -> Result<(), StoreError> {
        let path = self.root.join(JOURNAL);
        self.journal.as_mut().map_or(Ok(()), Journal::clear).map_err(StoreError::io("write", &path))?;
        // The second journal is removed last: its records are the newest, so applying them alone once more changes
        // nothing.
        if let Some(path) = self.second.as_ref().and_then(|_| self.second_path()) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::io("delete", &path)(error));
                }
                _ => self.second = None,
            }
        }
        Ok(())
    }

    fn restore_reserves(&mut self) -> Result<(), StoreError> {
        self.take_spare().map_err(StoreError::io("open", Path::new("/dev/null")))?;
        if self.journal.is_none() {
            self.journal = Some(Journal::create(&self.root.join(JOURNAL))?);
        }
        Ok(())
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        let path = self.root.join(PROBE);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let allocated = fault_injection::step().and_then(|()| options.open(&path)).and_then(|file| {
            let flags = rustix::fs::FallocateFlags::empty();
            match rustix::fs::fallocate(&file, flags, 0, ROOM) {
                // Not every file system supports it.
                Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
                outcome => outcome.map_err(std::io::Error::from),
            }
        });
        let _ = fs::remove_file(&path);
        allocated.map_err(StoreError::io("allocate", &path))
    }
}
