//! The meta directory as a disk of checkpoints: batches in place, the journal, and descriptors in reserve.
//!
//! It decides nothing about when something is written where. Descriptors are kept in reserve for the time when the process
//! has none.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cores::Change;

use crate::batch::Batch;
use crate::checkpoints::CheckpointDisk;
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

/// A meta directory on the disk of this host.
#[derive(Debug)]
pub struct MetaDirectory {
    root: PathBuf,
    journal: Option<Journal>,
    /// How much of a file counts, where a part of a failed try could not be cut off.
    longer: BTreeMap<String, u64>,
    spare: Vec<File>,
    /// Called with the name of each step of a write.
    on_step: fn(&str),
}

impl MetaDirectory {
    pub(crate) fn new(root: &Path) -> MetaDirectory {
        MetaDirectory {
            root: root.to_owned(),
            journal: None,
            longer: BTreeMap::new(),
            spare: Vec::new(),
            on_step: |_| {},
        }
    }

    pub(crate) fn on_step(&mut self, hear: fn(&str)) {
        self.on_step = hear;
    }

    /// Reads what is in place, and shows changes that are not as if they were.
    pub(crate) fn read<'a>(&self, aside: impl Iterator<Item = &'a Change>) -> Result<MetaTree, StoreError> {
        let mut tree = read_meta(&self.root)?;
        aside.for_each(|change| tree.apply(&self.root, change));
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

    fn take_spare(&mut self) -> std::io::Result<()> {
        while self.spare.len() < SPARE {
            self.spare.push(trouble::step().and_then(|()| File::open("/dev/null"))?);
        }
        Ok(())
    }
}

impl CheckpointDisk for MetaDirectory {
    fn open_journal(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        let _ = self.take_spare();
        self.longer.clear();
        self.journal = None;
        let Some((journal, records)) = Journal::open(&self.root.join(JOURNAL))? else { return Ok(Vec::new()) };
        self.journal = Some(journal);
        Ok(records)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<Option<Trouble>, StoreError> {
        match self.apply_once(changes) {
            Err(error) if error.lacks_descriptors() && !self.spare.is_empty() => {
                self.spare.clear();
                let outcome = self.apply_once(changes);
                let _ = self.take_spare();
                outcome.map(|()| Some(error.trouble()))
            }
            outcome => outcome.map(|()| None),
        }
    }

    fn length(&self, path: &str) -> u64 {
        let in_place = || fs::metadata(self.root.join(path)).map_or(0, |found| found.len());
        self.longer.get(path).copied().unwrap_or_else(in_place)
    }

    fn append(&mut self, record: &[u8]) -> bool {
        self.journal.as_mut().is_some_and(|journal| journal.append(record).unwrap_or(false))
    }

    fn clear_journal(&mut self) -> Result<(), StoreError> {
        let path = self.root.join(JOURNAL);
        self.journal.as_mut().map_or(Ok(()), Journal::clear).map_err(StoreError::io("write", &path))
    }

    fn restock(&mut self) -> Result<(), StoreError> {
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
}
