//! Making a sandbox: the folder that a container finds itself in.
//!
//! It does not decide where sandboxes are (wire/disk.md 2), and removes none.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid};

use crate::User;

/// A sandbox could not be made.
#[derive(Debug, thiserror::Error)]
#[error("Failed to {step} sandbox '{}'", path.display())]
pub struct SandboxError {
    /// What was being done: `create`, `open`, `chmod`, `chown`.
    pub step: &'static str,
    /// The folder.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Makes the folder `path` with mode 0750 and gives it to `owner`; folders above it are made as needed, with the usual mode
/// and the caller as their owner. A folder that is there already is taken over.
///
/// # Errors
/// Names the step that failed. A symbolic link in the place of the folder is an error.
pub fn create_sandbox(path: &Path, owner: Option<&User>) -> Result<(), SandboxError> {
    let error = |step, source: io::Error| SandboxError { step, path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|e| error("create", e))?;
    }
    match fs::DirBuilder::new().mode(0o750).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(error("create", e)),
        _ => {}
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| error("open", e.into()))?;
    // Once more, because the umask took its part from the first.
    rustix::fs::fchmod(&folder, Mode::from_raw_mode(0o750)).map_err(|e| error("chmod", e.into()))?;
    if let Some(user) = owner {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        rustix::fs::fchown(&folder, Some(uid), Some(gid)).map_err(|e| error("chown", e.into()))?;
    }
    Ok(())
}
