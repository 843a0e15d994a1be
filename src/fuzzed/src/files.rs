//! Directories for targets that read files. They are in memory where the system has such a file system, since a fuzzer
//! makes thousands a second.

use std::path::Path;

use store::Access;
use tempfile::TempDir;

/// Creates an empty directory, which is deleted when it is dropped.
///
/// # Panics
/// Panics if the directory cannot be created.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("tepui-fuzzed-").tempdir_in(parent).expect("a directory")
}

/// Writes a file of such a directory.
///
/// # Panics
/// Panics if the file cannot be written.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    store::write_file(path, bytes, Access::Owner).expect("a file");
}
