//! Reads a registry's file without changing it: the storage engine opens a copy in memory.
//!
//! The engine writes to every file that it opens. The checks are those of `open.rs`; nothing is repaired or confirmed.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use protos::mesos::internal::Registry;
use redb::backends::InMemoryBackend;
use redb::{Builder, Database, StorageBackend};

use super::confirmation::{Confirmation, Reading, path_of};
use super::file::load;
use super::loss::{Found, Loss};
use super::open::{FLAGS, check_confirmation, contents, not_closed};
use crate::error::StoreError;

/// Maximum length of the file in bytes. A hundred thousand agents take a tenth of it.
const FILE_MAX: u64 = 4 << 30;

/// Reads the registry at `path`. It has the entries of its newest commit, whether that is confirmed or not.
///
/// # Errors
/// Another process has it open. [`StoreError::Lost`] if it does not contain the last confirmed commit.
pub(super) fn read(path: &Path) -> Result<Registry, StoreError> {
    let file = File::open(path).map_err(StoreError::io("open", path))?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => return Err(StoreError::io("lock", path)(source)),
        Ok(()) => {}
    }
    let length = file.metadata().map_err(StoreError::io("read the metadata of", path))?.len();
    if length > FILE_MAX {
        let source =
            std::io::Error::new(std::io::ErrorKind::FileTooLarge, format!("it has more than {FILE_MAX} bytes"));
        return Err(StoreError::io("read", path)(source));
    }
    let bytes = fs::read(path).map_err(StoreError::io("read", path))?;
    let reading = Confirmation::read(&path_of(path))?;
    let confirmed = match &reading {
        Reading::Confirms { confirmed, .. } => Some(*confirmed),
        Reading::Absent | Reading::Damaged => None,
    };
    let lost = |found, source| StoreError::Lost(Box::new(Loss { path: path.to_owned(), found, source }));
    if bytes.is_empty() {
        return Err(lost(Found::Empty(confirmed), None));
    }
    let examined = open(&bytes).and_then(|database| contents(&database).map(|found| (database, found)));
    // In memory only damaged content can cause an error.
    let (database, (commit, content)) =
        examined.map_err(|error| lost(Found::Unreadable(confirmed), Some(Box::new(error))))?;
    check_confirmation(commit.as_ref(), &content, &reading).map_err(|found| lost(found, None))?;
    load(&database, path)
}

/// Opens a copy of a file in memory.
fn open(bytes: &[u8]) -> Result<Database, redb::Error> {
    let memory = InMemoryBackend::new();
    memory.set_len(bytes.len() as u64)?;
    memory.write(0, bytes)?;
    if let Some(flags) = not_closed(bytes) {
        memory.write(FLAGS as u64, &[flags])?;
    }
    Ok(Builder::new().create_with_backend(memory)?)
}
