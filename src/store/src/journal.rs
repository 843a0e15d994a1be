//! The journal of checkpoints that cannot be written in place: records in a file of a fixed size.
//!
//! The journal in the meta directory has all its blocks allocated in advance. Overwriting them needs no space, no inode
//! and no new descriptor, so it succeeds on a full disk, over a quota and without descriptors. A record is durable
//! before [`Journal::append`] returns.
//!
//! The second journal, in the runtime directory, is used when the first one fails, too. It is sparse, and lasts as long
//! as that directory does: on a tmpfs until the host restarts. Its name contains the id of the first journal.
//!
//! This module does not interpret records.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::create::{Access, create_directories};
use crate::error::{StoreError, is_transient};
use crate::fault_injection;
use crate::replace::{directory_of, sync_directory};

/// Size of the journal in the meta directory, in bytes.
pub(crate) const SIZE: u64 = if cfg!(test) { 1 << 16 } else { 4 << 20 };
/// Size of the journal in the runtime directory, in bytes.
pub(crate) const RUNTIME_SIZE: u64 = if cfg!(test) { 1 << 16 } else { 16 << 20 };
/// Magic number at the start of the file, followed by the generation, and their checksum. Records follow at `RECORDS`.
const MAGIC: u64 = u64::from_le_bytes(*b"tepui-j1");
/// Magic number before the id, which is at `HEAD` in the same form.
const ID_MAGIC: u64 = u64::from_le_bytes(*b"tepui-id");
const RECORDS: u64 = 512;
/// Size of a record's head: its length, its generation, and a checksum over both and the record.
const HEAD: usize = 24;

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// Whether `file` is open for writing. A journal on a read-only file system is opened again before the first write.
    is_writable: bool,
    size: u64,
    /// Random number that no other journal has; `None` if a journal of an older version could not be given one.
    id: Option<u64>,
    generation: u64,
    end: u64,
    /// Whether a record after `end` may be complete although its write has failed.
    in_doubt: bool,
}

/// Returns the FNV-1a hash of several parts.
fn checksum(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the head of a file or a record: three numbers of eight bytes.
fn head(first: u64, second: u64, rest: &[u8]) -> [u8; HEAD] {
    let (first, second) = (first.to_le_bytes(), second.to_le_bytes());
    let sum = checksum(&[&first, &second, rest]).to_le_bytes();
    let mut bytes = [0; HEAD];
    for (part, at) in [first, second, sum].into_iter().zip([0, 8, 16]) {
        bytes[at..at + 8].copy_from_slice(&part);
    }
    bytes
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|part| part.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Records in the order in which they were appended.
type Records = Vec<Vec<u8>>;

impl Journal {
    /// Creates the journal of a meta directory, with all its blocks.
    pub(crate) fn create(path: &Path) -> Result<Journal, StoreError> {
        let temporary = path.with_extension("new");
        let made = Journal::fill(&temporary);
        if made.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        let file = made?;
        fs::rename(&temporary, path).map_err(StoreError::io("replace", path))?;
        sync_directory(directory_of(path))?;
        let mut journal = Journal::empty(path, file, SIZE);
        journal.assign_id();
        Ok(journal)
    }

    fn fill(path: &Path) -> Result<File, StoreError> {
        let mut file = Journal::make(path)?;
        // Zeros are written although fallocate(2) is faster: a block that it allocates may need space when it is first
        // written.
        let zeros = [0; 1 << 16];
        for _ in 0..SIZE / zeros.len() as u64 {
            file.write_all(&zeros).map_err(StoreError::io("allocate", path))?;
        }
        fault_injection::step().and_then(|()| file.sync_all()).map_err(StoreError::io("sync", path))?;
        Ok(file)
    }

    /// Creates a journal without blocks.
    pub(crate) fn create_sparse(path: &Path) -> Result<Journal, StoreError> {
        let file = Journal::make(path)?;
        file.set_len(RUNTIME_SIZE).map_err(StoreError::io("allocate", path))?;
        Ok(Journal::empty(path, file, RUNTIME_SIZE))
    }

    fn make(path: &Path) -> Result<File, StoreError> {
        let directory = directory_of(path);
        create_directories(directory, Access::Owner).map_err(StoreError::io("create the directory", directory))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        fault_injection::step().and_then(|()| options.open(path)).map_err(StoreError::io("create", path))
    }

    fn empty(path: &Path, file: File, size: u64) -> Journal {
        let path = path.to_owned();
        Journal { path, file, is_writable: true, size, id: None, generation: 0, end: RECORDS, in_doubt: false }
    }

    /// Opens the journal of an earlier process and reads its records, in order. `None` if it is missing or has another
    /// size.
    pub(crate) fn open(path: &Path, size: u64) -> Result<Option<(Journal, Records)>, StoreError> {
        let (file, is_writable) = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if is_transient(&error) => (File::open(path).map_err(StoreError::io("open", path))?, false),
            Err(error) => return Err(StoreError::io("open", path)(error)),
        };
        let bytes = fs::read(path).map_err(StoreError::io("read", path))?;
        if bytes.len() as u64 != size {
            return Ok(None);
        }
        let generation = number(&bytes, 8);
        let mut journal = Journal { is_writable, generation, ..Journal::empty(path, file, size) };
        let id = number(&bytes, HEAD + 8);
        match bytes[HEAD..].starts_with(&head(ID_MAGIC, id, &[])) {
            true => journal.id = Some(id),
            false => journal.assign_id(),
        }
        if !bytes.starts_with(&head(MAGIC, generation, &[])) {
            journal.generation = number(&bytes, RECORDS as usize + 8);
            return Ok(Some((journal, Vec::new())));
        }
        let mut records = Vec::new();
        while let Some(record) = record_at(&bytes, journal.end as usize, journal.generation) {
            records.push(record.to_vec());
            journal.end += (HEAD + record.len()) as u64;
        }
        Ok(Some((journal, records)))
    }

    /// Returns the journal's id, a number that no other journal has; `None` if it has none.
    pub(crate) fn id(&self) -> Option<u64> {
        self.id
    }

    /// Returns the time of the file's last write, since 1970.
    pub(crate) fn written(&self) -> Option<Duration> {
        self.file.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()
    }

    /// Assigns an id to the journal, if the disk allows it.
    fn assign_id(&mut self) {
        let Ok(id) = getrandom::u64() else { return };
        let write = self.writable().and_then(|file| {
            file.write_all_at(&head(ID_MAGIC, id, &[]), HEAD as u64)?;
            file.sync_data()
        });
        self.id = write.ok().map(|()| id);
    }

    /// Returns the file, open for writing.
    fn writable(&mut self) -> std::io::Result<&File> {
        if !self.is_writable {
            self.file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            self.is_writable = true;
        }
        Ok(&self.file)
    }

    /// Appends a record. Returns `false` if there is no space for it. After an error the record may or may not be read
    /// later, and can be appended again; earlier records are intact.
    pub(crate) fn append(&mut self, record: &[u8]) -> std::io::Result<bool> {
        let end = self.end + (HEAD + record.len()) as u64;
        if end > self.size {
            return Ok(false);
        }
        if self.end == RECORDS {
            self.begin()?;
        }
        let mut bytes = head(record.len() as u64, self.generation, record).to_vec();
        bytes.extend_from_slice(record);
        self.in_doubt = true;
        let at = self.end;
        let file = self.writable()?;
        file.write_all_at(&bytes, at)?;
        fault_injection::step()?;
        file.sync_data()?;
        self.end = end;
        self.in_doubt = false;
        Ok(true)
    }

    /// Discards all records. This is durable on return.
    pub(crate) fn clear(&mut self) -> std::io::Result<()> {
        if self.end > RECORDS || self.in_doubt {
            self.begin()?;
            self.end = RECORDS;
            self.in_doubt = false;
        }
        Ok(())
    }

    /// Starts a new generation, which invalidates the records of earlier ones.
    fn begin(&mut self) -> std::io::Result<()> {
        fault_injection::step()?;
        let next = self.generation.wrapping_add(1);
        let file = self.writable()?;
        file.write_all_at(&head(MAGIC, next, &[]), 0)?;
        file.sync_data()?;
        self.generation = next;
        Ok(())
    }
}

/// Returns the record at this offset, if a complete one of this generation is there.
fn record_at(bytes: &[u8], at: usize, generation: u64) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let length = usize::try_from(number(rest, 0)).ok()?;
    let record = rest.get(HEAD..HEAD.checked_add(length)?)?;
    let is_whole = rest.starts_with(&head(length as u64, generation, record));
    is_whole.then_some(record)
}
