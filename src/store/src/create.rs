//! Creates files and directories with a mode that the caller names.
//!
//! The standard library creates them readable for everyone, unless the umask restricts it. `cargo xtask tidy` finds
//! direct calls of it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The users that have access, besides root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The owner: files have mode 0600, directories 0700.
    Owner,
    /// The owner, and the group reads: 0640 and 0750.
    Group,
    /// The owner, and everyone reads: 0644 and 0755.
    All,
}

impl Access {
    /// The mode of a file.
    pub fn of_file(self) -> u32 {
        match self {
            Access::Owner => 0o600,
            Access::Group => 0o640,
            Access::All => 0o644,
        }
    }

    /// The mode of a directory.
    pub fn of_directory(self) -> u32 {
        match self {
            Access::Owner => 0o700,
            Access::Group => 0o750,
            Access::All => 0o755,
        }
    }

    /// Options that make a file, and open it for writing.
    fn options(self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.write(true).mode(self.of_file());
        options
    }
}

/// Opens a file that is not there yet.
///
/// # Errors
/// What the system refuses; it is there.
pub fn create_new(path: &Path, access: Access) -> io::Result<File> {
    access.options().create_new(true).open(path)
}

/// Opens a file with no content. One that is there keeps its mode.
///
/// # Errors
/// What the system refuses.
pub fn create_file(path: &Path, access: Access) -> io::Result<File> {
    access.options().create(true).truncate(true).open(path)
}

/// Opens a file to add to its end. One that is there keeps its mode.
///
/// # Errors
/// What the system refuses.
pub fn append_file(path: &Path, access: Access) -> io::Result<File> {
    access.options().create(true).append(true).open(path)
}

/// Gives a file this content. One that is there keeps its mode.
///
/// # Errors
/// What the system refuses.
pub fn write_file(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    create_file(path, access)?.write_all(bytes)
}

/// Makes a directory that is not there yet.
///
/// # Errors
/// What the system refuses; it is there.
pub fn create_directory(path: &Path, access: Access) -> io::Result<()> {
    DirBuilder::new().mode(access.of_directory()).create(path)
}

/// Makes a directory unless it is there, and those above it that are missing, all with the same access.
///
/// # Errors
/// What the system refuses.
pub fn create_directories(path: &Path, access: Access) -> io::Result<()> {
    DirBuilder::new().mode(access.of_directory()).recursive(true).create(path)
}

/// Makes a directory that only its owner has access to, also if it is there already. Those above it that are missing
/// are for all.
///
/// # Errors
/// What the system refuses.
pub fn create_private(path: &Path) -> io::Result<()> {
    create_directories(crate::replace::directory_of(path), Access::All)?;
    create_directories(path, Access::Owner)?;
    narrow(path, &fs::symlink_metadata(path)?)
}

/// Takes the access of others away from everything that this process's user owns at `path` and below: what an older
/// version left. Symbolic links are not followed, and what is gone meanwhile is not an error.
///
/// # Errors
/// What the system refuses, and for what path.
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

/// Takes the access of others away from a file or directory of this process's user; owners keep theirs.
fn narrow(path: &Path, found: &fs::Metadata) -> io::Result<()> {
    let mode = found.mode() & 0o7777;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if mode & 0o077 == 0 || found.is_symlink() || !is_ours {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
}
