//! Creates files and directories with a mode that the caller chooses.
//!
//! The standard library creates them readable for everyone, unless the umask restricts it. `cargo xtask tidy` finds
//! direct calls of it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Users that have access to a file or directory, besides root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The owner: files have mode 0600, directories 0700.
    Owner,
    /// The owner; the group reads: 0640 and 0750.
    Group,
    /// The owner; everyone reads: 0644 and 0755.
    All,
}

impl Access {
    /// Returns the mode of a file.
    pub fn of_file(self) -> u32 {
        match self {
            Access::Owner => 0o600,
            Access::Group => 0o640,
            Access::All => 0o644,
        }
    }

    /// Returns the mode of a directory.
    pub fn of_directory(self) -> u32 {
        match self {
            Access::Owner => 0o700,
            Access::Group => 0o750,
            Access::All => 0o755,
        }
    }

    /// Returns options that create a file, and open it for writing.
    fn options(self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.write(true).mode(self.of_file());
        options
    }
}

/// Creates a file and opens it for writing.
///
/// # Errors
/// The file exists, or an error of the system.
pub fn create_new(path: &Path, access: Access) -> io::Result<File> {
    access.options().create_new(true).open(path)
}

/// Opens a file for writing, and creates or truncates it. An existing file keeps its mode.
///
/// # Errors
/// An error of the system.
pub fn create_file(path: &Path, access: Access) -> io::Result<File> {
    access.options().create(true).truncate(true).open(path)
}

/// Opens a file for appending, and creates it if it is missing. An existing file keeps its mode.
///
/// # Errors
/// An error of the system.
pub fn append_file(path: &Path, access: Access) -> io::Result<File> {
    access.options().create(true).append(true).open(path)
}

/// Writes the content of a file. An existing file keeps its mode.
///
/// # Errors
/// An error of the system.
pub fn write_file(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    create_file(path, access)?.write_all(bytes)
}

/// Creates a directory.
///
/// # Errors
/// The directory exists, or an error of the system.
pub fn create_directory(path: &Path, access: Access) -> io::Result<()> {
    DirBuilder::new().mode(access.of_directory()).create(path)
}

/// Creates a directory if it is missing, and its missing parents, all with the same access.
///
/// # Errors
/// An error of the system.
pub fn create_directories(path: &Path, access: Access) -> io::Result<()> {
    DirBuilder::new().mode(access.of_directory()).recursive(true).create(path)
}

/// Creates a directory that only its owner has access to, and restricts the access of an existing one. Missing parents
/// are created for everyone.
///
/// # Errors
/// An error of the system.
pub fn create_private(path: &Path) -> io::Result<()> {
    create_directories(crate::replace::directory_of(path), Access::All)?;
    create_directories(path, Access::Owner)?;
    narrow(path, &fs::symlink_metadata(path)?)
}

/// Removes the access of other users from everything that this process's user owns at `path` and below, which an older
/// version may have created. Symbolic links are not followed, and files that are deleted meanwhile are not an error.
///
/// # Errors
/// An error of the system, with the path.
pub fn make_private(path: &Path) -> io::Result<()> {
    let at = |error: io::Error| io::Error::new(error.kind(), format!("'{}': {error}", path.display()));
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(at)?,
    };
    narrow(path, &found)
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(at(error)) })?;
    if !found.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(at)? {
        make_private(&entry.map_err(at)?.path())?;
    }
    Ok(())
}

/// Removes the access of other users from a file or directory of this process's user; owners keep theirs.
fn narrow(path: &Path, found: &fs::Metadata) -> io::Result<()> {
    let mode = found.mode() & 0o7777;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if mode & 0o077 == 0 || found.is_symlink() || !is_ours {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
}
