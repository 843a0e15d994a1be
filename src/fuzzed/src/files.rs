//! Directories for what is read from files. They are in memory where the system has such a file system, since a fuzzer
//! makes thousands a second.

use std::path::Path;

use store::Access;
use tempfile::TempDir;

/// An empty directory, deleted when it is dropped.
///
/// # Panics
/// The system has no room for one.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("tepui-fuzzed-").tempdir_in(parent).expect("a directory")
}

/// Writes a file of such a directory.
///
/// # Panics
/// The system has no room for it.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    store::write_file(path, bytes, Access::Owner).expect("a file");
}
