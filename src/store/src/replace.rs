//! Replaces one file or link so that a crash leaves the old or the new one.
//!
//! For several changes at once a [`Batch`](crate::Batch) is cheaper.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::create::{Access, create_directories, create_new};
use crate::error::StoreError;
use crate::fault_injection;

/// Counter that makes temporary names differ within this process.
static COUNTER: AtomicU32 = AtomicU32::new(0);

/// Writes the content of a file durably. Missing directories are created; they and the file are accessible to the owner
/// only.
///
/// # Errors
/// An error of the disk; the file is then unchanged.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let directory = directory_of(path);
    create_directories(directory, Access::Owner).map_err(StoreError::io("create the directory", directory))?;
    let (temporary, mut file) = temporary_file(directory)?;
    file.write_all(bytes).map_err(StoreError::io("write", &temporary))?;
    file.sync_all().map_err(StoreError::io("sync", &temporary))?;
    fs::rename(&temporary, path).map_err(StoreError::io("replace", path))?;
    sync_directory(directory)
}

/// Creates a symbolic link to `target`, or replaces an existing one. It is not synced, since a link can be created
/// again.
///
/// # Errors
/// An error of the disk; the link is then unchanged.
pub fn replace_link(path: &Path, target: &Path) -> Result<(), StoreError> {
    // Most links are new.
    if symlink(target, path).is_ok() {
        return Ok(());
    }
    let temporary = temporary_link(path, target)?;
    fs::rename(&temporary, path).map_err(StoreError::io("replace", path))
}

/// Creates a link under a temporary name beside `path`.
pub(crate) fn temporary_link(path: &Path, target: &Path) -> Result<PathBuf, StoreError> {
    let directory = directory_of(path);
    loop {
        let temporary = directory.join(temporary_name());
        match fault_injection::step().and_then(|()| symlink(target, &temporary)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            outcome => {
                return outcome.map(|()| temporary.clone()).map_err(StoreError::io("create the link", &temporary));
            }
        }
    }
}

/// Creates a file under a temporary name.
pub(crate) fn temporary_file(directory: &Path) -> Result<(PathBuf, File), StoreError> {
    loop {
        let temporary = directory.join(temporary_name());
        match fault_injection::step().and_then(|()| create_new(&temporary, Access::Owner)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            outcome => {
                return outcome.map(|file| (temporary.clone(), file)).map_err(StoreError::io("create", &temporary));
            }
        }
    }
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), StoreError> {
    let open =
        fault_injection::step().and_then(|()| File::open(directory)).map_err(StoreError::io("open", directory))?;
    fault_injection::step().and_then(|()| open.sync_all()).map_err(StoreError::io("sync", directory))
}

/// Returns the directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns six characters, as in Mesos's names of temporary files; names that a crash has left are skipped.
fn temporary_name() -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number = COUNTER.fetch_add(1, Ordering::Relaxed) ^ std::process::id().rotate_left(16);
    let mut name = String::with_capacity(6);
    for _ in 0..6 {
        name.push(char::from(LETTERS[(number % 62) as usize]));
        number /= 62;
    }
    name
}
