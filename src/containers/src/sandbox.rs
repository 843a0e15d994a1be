//! Creates sandboxes: the working directories of containers.
//!
//! It does not decide where sandboxes are (docs/mesos/disk.md), and removes none.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::User;
use crate::directories::make_directory;

/// The error when a sandbox could not be created.
#[derive(Debug, thiserror::Error)]
#[error("Failed to {step} sandbox '{}'", path.display())]
pub struct SandboxError {
    /// The step that failed: `create`, `open`, `chmod`, `chown`.
    pub step: &'static str,
    /// Path of the directory.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// Creates the directory `path` with mode 0750 and makes `owner` its owner. Missing parents are created with the usual
/// mode and the caller as their owner. An existing directory is used. Returns the open directory.
///
/// # Errors
/// The step that failed. A symbolic link instead of the directory is an error, and so is one in a directory of another
/// user on the path.
pub fn create_sandbox(path: &Path, owner: Option<&User>) -> Result<OwnedFd, SandboxError> {
    let error = |step: &'static str| {
        let path = path.to_owned();
        move |errno: Errno| SandboxError { step, path, source: errno.into() }
    };
    // A nested container's sandbox is in its parent's, whose user may replace any directory by a link.
    let above = make_directory(path.parent().unwrap_or(Path::new("/"))).map_err(error("create"))?;
    let name = path.file_name().unwrap_or_default();
    match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o750)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(error("create")(errno)),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(&above, name, flags, Mode::empty()).map_err(error("open"))?;
    // Set the mode again, because the umask has restricted the first one.
    rustix::fs::fchmod(&directory, Mode::from_raw_mode(0o750)).map_err(error("chmod"))?;
    if let Some(user) = owner {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        rustix::fs::fchown(&directory, Some(uid), Some(gid)).map_err(error("chown"))?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_link_in_a_users_directory_leads_nowhere() {
        if !rustix::process::geteuid().is_root() {
            println!("needs root, to make directories of two users");
            return;
        }
        let base = std::env::temp_dir().join(format!("tepui-sandbox-{}", std::process::id()));
        let (outer, outside) = (base.join("outer"), base.join("outside"));
        let user = User { uid: 65_534, gid: 65_534, ..User::by_name("nobody").unwrap() };
        create_sandbox(&outer, Some(&user)).unwrap();
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, outer.join("containers")).unwrap();
        let refused = create_sandbox(&outer.join("containers/inner"), Some(&user)).unwrap_err();
        assert_eq!(refused.step, "create");
        assert!(crate::spawn::open_output(&outer.join("containers/stdout"), Some(&user), None).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        // Without the link the directory is created.
        fs::remove_file(outer.join("containers")).unwrap();
        create_sandbox(&outer.join("containers/inner"), Some(&user)).unwrap();
        crate::spawn::open_output(&outer.join("containers/inner/stdout"), Some(&user), None).unwrap();
        // Links of the own user are followed.
        std::os::unix::fs::symlink(&base, base.join("again")).unwrap();
        create_sandbox(&base.join("again/other"), Some(&user)).unwrap();
        assert!(base.join("other").is_dir());
        fs::remove_dir_all(&base).unwrap();
    }
}
