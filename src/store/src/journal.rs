//! A file of blocks that are allocated in advance: what cannot be written where it belongs is written here, in place.
//!
//! Overwriting a file needs no room, no inode and no descriptor that is not open already, so it succeeds on a full disk, over
//! a quota and without descriptors. Nobody else can use its blocks up. A record is durable before [`Journal::append`] returns.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::create::{Access, create_directories};
use crate::error::StoreError;
use crate::replace::{folder_of, sync_folder};
use crate::trouble;

/// The size of the file.
pub(crate) const SIZE: u64 = if cfg!(test) { 1 << 16 } else { 4 << 20 };
/// What the file begins with: the magic number, the generation, and their checksum. Records follow at `RECORDS`.
const MAGIC: u64 = u64::from_le_bytes(*b"tepui-j1");
const RECORDS: u64 = 512;
/// Before each record: its length, its generation, and a checksum over both and the record.
const HEAD: usize = 24;

/// The file, open.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    generation: u64,
    end: u64,
    /// A record after `end` may be whole although its write has failed.
    in_doubt: bool,
}

/// FNV-1a over several parts.
fn checksum(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Three numbers of eight bytes: what files and records begin with.
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

/// Records in the order in which they were added.
type Records = Vec<Vec<u8>>;

impl Journal {
    /// Makes the file with all its blocks, and opens it.
    pub(crate) fn create(path: &Path) -> Result<Journal, StoreError> {
        let temporary = path.with_extension("new");
        let made = Journal::fill(&temporary);
        if made.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        let file = made?;
        fs::rename(&temporary, path).map_err(StoreError::io("replace", path))?;
        sync_folder(folder_of(path))?;
        Ok(Journal { file, generation: 0, end: RECORDS, in_doubt: false })
    }

    fn fill(path: &Path) -> Result<File, StoreError> {
        let folder = folder_of(path);
        create_directories(folder, Access::Owner).map_err(StoreError::io("create the folder", folder))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let mut file = trouble::step().and_then(|()| options.open(path)).map_err(StoreError::io("create", path))?;
        // Zeros are written although fallocate(2) is quicker: a block that it has given may need room when it is first written.
        let zeros = [0; 1 << 16];
        for _ in 0..SIZE / zeros.len() as u64 {
            file.write_all(&zeros).map_err(StoreError::io("allocate", path))?;
        }
        trouble::step().and_then(|()| file.sync_all()).map_err(StoreError::io("sync", path))?;
        Ok(file)
    }

    /// Opens the file of an earlier process: its records, in order. None if there is none, or it is not whole.
    pub(crate) fn open(path: &Path) -> Result<Option<(Journal, Records)>, StoreError> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            outcome => outcome.map_err(StoreError::io("open", path))?,
        };
        let bytes = fs::read(path).map_err(StoreError::io("read", path))?;
        if bytes.len() as u64 != SIZE {
            return Ok(None);
        }
        let is_whole = bytes.starts_with(&head(MAGIC, number(&bytes, 8), &[]));
        let mut journal = Journal { file, generation: number(&bytes, 8), end: RECORDS, in_doubt: false };
        if !is_whole {
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

    /// Adds a record. On an error nothing is promised of it, and it may be tried again; none of the others is touched.
    /// `false` if there is no place for it.
    pub(crate) fn append(&mut self, record: &[u8]) -> std::io::Result<bool> {
        let end = self.end + (HEAD + record.len()) as u64;
        if end > SIZE {
            return Ok(false);
        }
        if self.end == RECORDS {
            self.begin()?;
        }
        let mut bytes = head(record.len() as u64, self.generation, record).to_vec();
        bytes.extend_from_slice(record);
        self.in_doubt = true;
        self.file.write_all_at(&bytes, self.end)?;
        trouble::step()?;
        self.file.sync_data()?;
        self.end = end;
        self.in_doubt = false;
        Ok(true)
    }

    /// All records have got where they belong: they count no more. Durable when it returns.
    pub(crate) fn clear(&mut self) -> std::io::Result<()> {
        if self.end > RECORDS || self.in_doubt {
            self.begin()?;
            self.end = RECORDS;
            self.in_doubt = false;
        }
        Ok(())
    }

    /// Begins a new generation: what the file holds of earlier ones does not count.
    fn begin(&mut self) -> std::io::Result<()> {
        trouble::step()?;
        let next = self.generation.wrapping_add(1);
        self.file.write_all_at(&head(MAGIC, next, &[]), 0)?;
        self.file.sync_data()?;
        self.generation = next;
        Ok(())
    }
}

/// The record at this place, if a whole one of this generation is there.
fn record_at(bytes: &[u8], at: usize, generation: u64) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let length = usize::try_from(number(rest, 0)).ok()?;
    let record = rest.get(HEAD..HEAD.checked_add(length)?)?;
    let is_whole = rest.starts_with(&head(length as u64, generation, record));
    is_whole.then_some(record)
}
