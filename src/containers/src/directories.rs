//! Creates and removes directories in sandboxes, and measures the disk usage of a sandbox.
//!
//! A sandbox belongs to its task's user, who may create symbolic links anywhere in it. So everything here descends from
//! the sandbox name by name and follows no link.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;

use crate::User;

/// An error of an operation on a directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The path is absolute, or leads out of the sandbox.
    #[error("The path '{}' leads out of the sandbox", .0.display())]
    Outside(PathBuf),
    /// The name exists already as something else.
    #[error("'{}' already exists", .0.display())]
    Taken(PathBuf),
    /// A system call failed.
    #[error("Failed to {step} '{}'", path.display())]
    Step {
        /// The operation, such as `open`.
        step: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn failed(step: &'static str, path: &Path) -> impl Fn(Errno) -> DirectoryError {
    let path = path.to_owned();
    move |errno| DirectoryError::Step { step, path: path.clone(), source: errno.into() }
}

const DIR: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// Flags to open a directory for the lookup of names in it, not to read it: this is cheaper.
const PLACE: OFlags = DIR.union(OFlags::PATH);

/// Changes the owner of an existing directory, not of its content.
///
/// # Errors
/// The path is not a directory, or an error of the system. A symbolic link is not a directory.
pub fn chown_directory(path: &Path, owner: &User) -> Result<(), DirectoryError> {
    let directory = rustix::fs::open(path, DIR, Mode::empty()).map_err(failed("open the directory", path))?;
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    rustix::fs::fchown(&directory, Some(uid), Some(gid)).map_err(failed("change the owner of", path))
}

/// Creates the directory `relative` inside `sandbox` unless it exists, for the sandbox's owner.
///
/// # Errors
/// The path leads out of the sandbox, or an error of the system.
pub fn make_inside(sandbox: &Path, relative: &Path) -> Result<(), DirectoryError> {
    if relative.components().all(is_inside) && std::fs::metadata(sandbox.join(relative)).is_ok_and(|m| m.is_dir()) {
        return Ok(());
    }
    open_inside(sandbox, relative, true).map(drop)
}

/// Creates a symbolic link to `target` at `seen` inside `sandbox`. Missing directories are created for the sandbox's
/// owner.
///
/// # Errors
/// The path leads out of the sandbox, the name exists, or an error of the system.
pub fn link_inside(sandbox: &Path, seen: &Path, target: &Path) -> Result<(), DirectoryError> {
    let (directory, name) = split(sandbox, seen, true)?;
    match rustix::fs::symlinkat(target, &directory, name) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) if leads_to(&directory, name, target) => Ok(()),
        Err(Errno::EXIST) => Err(DirectoryError::Taken(seen.to_owned())),
        Err(errno) => Err(failed("link", seen)(errno)),
    }
}

/// Creates the empty file `seen` inside `sandbox` unless the name exists, for the sandbox's owner.
///
/// # Errors
/// The path leads out of the sandbox, or an error of the system.
pub fn make_file_inside(sandbox: &Path, seen: &Path) -> Result<(), DirectoryError> {
    let (directory, name) = split(sandbox, seen, true)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let made = match rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o644)) {
        Ok(made) => made,
        Err(Errno::EXIST) => return Ok(()),
        Err(errno) => return Err(failed("create", seen)(errno)),
    };
    let owner = rustix::fs::fstat(&directory).map_err(failed("look at", seen))?;
    let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    rustix::fs::fchown(&made, Some(uid), Some(gid)).map_err(failed("change the owner of", seen))
}

/// Removes the symbolic link to `target` at `seen`, if it exists.
///
/// # Errors
/// The path leads out of the sandbox, or an error of the system.
pub fn unlink_inside(sandbox: &Path, seen: &Path, target: &Path) -> Result<(), DirectoryError> {
    let (directory, name) = match split(sandbox, seen, false) {
        Ok(found) => found,
        Err(DirectoryError::Step { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !leads_to(&directory, name, target) {
        return Ok(());
    }
    match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed("unlink", seen)(errno)),
    }
}

fn leads_to(directory: &OwnedFd, name: &OsStr, target: &Path) -> bool {
    rustix::fs::readlinkat(directory, name, Vec::new())
        .is_ok_and(|found| found.to_bytes() == target.as_os_str().as_bytes())
}

fn is_inside(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_) | Component::CurDir)
}

/// Opens the parent directory of `seen`. Returns it, and the name in it.
fn split<'a>(sandbox: &Path, seen: &'a Path, make: bool) -> Result<(OwnedFd, &'a OsStr), DirectoryError> {
    let outside = || DirectoryError::Outside(seen.to_owned());
    if !seen.components().all(is_inside) {
        return Err(outside());
    }
    let name = seen.file_name().ok_or_else(outside)?;
    let directory = open_inside(sandbox, seen.parent().unwrap_or(Path::new("")), make)?;
    Ok((directory, name))
}

/// Deletes a file, or a directory with its content. A link is deleted, not its target. No link is followed in a
/// directory of another user, who could have files deleted that are not theirs.
///
/// # Errors
/// An error of the system; a missing file is [`io::ErrorKind::NotFound`].
pub fn remove(path: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let directory = open_directory(above, false)?;
    let inside = descriptor(directory.as_raw_fd()).join(name);
    match std::fs::symlink_metadata(&inside)?.is_dir() {
        true => std::fs::remove_dir_all(&inside),
        false => std::fs::remove_file(&inside),
    }
}

/// Opens the directory `path`. A link is followed only in a directory of this user: in directories of other users it
/// may lead anywhere at any time. With `make`, missing directories are created with the usual mode.
pub(crate) fn open_directory(path: &Path, make: bool) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat2(CWD, path, PLACE, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOENT) if make => {
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::NOENT) };
            make_in(&open_directory(above, true)?, name)
        }
        // The path contains a link, or the kernel cannot tell.
        Err(Errno::LOOP | Errno::NOTDIR | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => walk(path, make),
        outcome => outcome,
    }
}

/// Opens the directory `path` as `open_directory` does, and creates it. Usually its last two names are new: that is
/// tried first, because a failed lookup of a long path costs as much as a successful one.
pub(crate) fn make_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let last = |path: &Path| path.file_name().map(OsStr::to_owned);
    if let (Some(name), Some(above)) = (last(path), path.parent())
        && let (Some(outer), Some(base)) = (last(above), above.parent())
        && let Ok(base) = rustix::fs::openat2(CWD, base, PLACE, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        && let Ok(directory) = make_in(&base, &outer).and_then(|outer| make_in(&outer, &name))
    {
        return Ok(directory);
    }
    open_directory(path, true)
}

/// Opens a directory name by name.
fn walk(path: &Path, make: bool) -> Result<OwnedFd, Errno> {
    let us = rustix::process::geteuid().as_raw();
    let start = if path.is_absolute() { "/" } else { "." };
    let mut directory = rustix::fs::open(start, PLACE, Mode::empty())?;
    for part in path.components() {
        let name = match part {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            Component::ParentDir => OsStr::new(".."),
            Component::Normal(name) => name,
        };
        let ours = rustix::fs::fstat(&directory)?.st_uid == us;
        let flags = if ours { PLACE.difference(OFlags::NOFOLLOW) } else { PLACE };
        directory = match rustix::fs::openat(&directory, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if make => make_in(&directory, name)?,
            outcome => outcome?,
        };
    }
    Ok(directory)
}

fn make_in(directory: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => rustix::fs::openat(directory, name, PLACE, Mode::empty()),
        Err(errno) => Err(errno),
    }
}

/// Opens a directory inside `sandbox`, name by name. With `make`, missing ones are created for the sandbox's owner.
fn open_inside(sandbox: &Path, relative: &Path, make: bool) -> Result<OwnedFd, DirectoryError> {
    let mut directory = open_directory(sandbox, false).map_err(failed("open the directory", sandbox))?;
    let owner = rustix::fs::fstat(&directory).map_err(failed("look at", sandbox))?;
    let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    for part in relative.components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            _ => return Err(DirectoryError::Outside(relative.to_owned())),
        };
        let open = |directory: &OwnedFd| rustix::fs::openat(directory, name, DIR, Mode::empty());
        directory = match open(&directory) {
            Err(Errno::NOENT) if make => {
                match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(failed("create the directory", relative)(errno)),
                }
                let made = open(&directory).map_err(failed("open the directory", relative))?;
                rustix::fs::fchown(&made, Some(uid), Some(gid)).map_err(failed("change the owner of", relative))?;
                made
            }
            outcome => outcome.map_err(failed("open the directory", relative))?,
        };
    }
    Ok(directory)
}

/// Finds the file or directory `relative` below `root`, and returns a path descriptor: nothing is read, no pipe blocks,
/// and later changes of that path do not matter.
///
/// The path to `root` may contain links; links below it are followed as long as they lead to a file below it. `..` is
/// resolved as the kernel does, from the target of the link before it. Returns `None` if the path leads out of `root`.
///
/// # Errors
/// An error of the system.
pub fn find_beneath(root: &Path, relative: &Path) -> io::Result<Option<File>> {
    const HELD: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
    const ATTEMPTS: usize = 128;
    let root = rustix::fs::open(root, HELD, Mode::empty())?;
    if relative.as_os_str().is_empty() {
        return Ok(Some(root.into()));
    }
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // The kernel returns AGAIN for `..` while a file on the host is renamed or mounted.
    let mut attempts = (0..ATTEMPTS).map(|_| rustix::fs::openat2(&root, relative, HELD, Mode::empty(), within));
    match attempts.find(|outcome| !matches!(outcome, Err(Errno::AGAIN))).unwrap_or(Err(Errno::AGAIN)) {
        Ok(found) => return Ok(Some(found.into())),
        // A link with an absolute path may still lead below `root`; an older kernel, or names that change at this
        // moment, are no reason to refuse either.
        Err(Errno::XDEV | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
        Err(Errno::LOOP) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    // The result for a path that leaves `root` does not reveal which files exist there.
    if climbs_out(relative) {
        return Ok(None);
    }
    let found = rustix::fs::openat(&root, relative, HELD, Mode::empty())?;
    let place = |fd: &OwnedFd| std::fs::read_link(descriptor(fd.as_raw_fd()));
    Ok(place(&found)?.starts_with(place(&root)?).then(|| found.into()))
}

/// Returns whether a path has more `..` than names before them, or is absolute.
fn climbs_out(relative: &Path) -> bool {
    let mut depth = 0_usize;
    relative.components().any(|part| match part {
        Component::Normal(_) => {
            depth += 1;
            false
        }
        Component::ParentDir => match depth.checked_sub(1) {
            Some(above) => {
                depth = above;
                false
            }
            None => true,
        },
        Component::CurDir => false,
        Component::RootDir | Component::Prefix(_) => true,
    })
}

/// Opens the file that [`find_beneath`] has found for reading.
///
/// # Errors
/// An error of the system.
pub fn open_found(found: &File) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(descriptor(found.as_raw_fd()), flags, Mode::empty())?.into())
}

/// Returns the path in `/proc` of a descriptor of this process; it leads to the opened file, whatever has its name now.
fn descriptor(fd: RawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{fd}"))
}

/// Returns the disk usage of a directory with its content in bytes, as du(1) counts. Links are not followed, file
/// systems mounted inside are not entered, and unreadable or vanishing files count nothing. A file with several names
/// counts once for each.
pub fn disk_usage(path: &Path) -> u64 {
    /// The unit of `st_blocks`, in bytes.
    const BLOCK: u64 = 512;
    let Ok(own) = std::fs::symlink_metadata(path) else { return 0 };
    let mut bytes = own.blocks() * BLOCK;
    let mut open = vec![path.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.dev() != own.dev() {
                continue;
            }
            bytes += metadata.blocks() * BLOCK;
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tepui-directories-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn links_come_and_go() {
        let sandbox = directory("links");
        let seen = Path::new("./a/b/data");
        link_inside(&sandbox, seen, Path::new("/target")).unwrap();
        link_inside(&sandbox, seen, Path::new("/target")).unwrap();
        assert_eq!(fs::read_link(sandbox.join("a/b/data")).unwrap(), Path::new("/target"));
        assert!(matches!(link_inside(&sandbox, seen, Path::new("/other")), Err(DirectoryError::Taken(_))));
        unlink_inside(&sandbox, seen, Path::new("/other")).unwrap();
        assert!(sandbox.join("a/b/data").symlink_metadata().is_ok());
        unlink_inside(&sandbox, seen, Path::new("/target")).unwrap();
        unlink_inside(&sandbox, Path::new("none/such"), Path::new("/target")).unwrap();
        assert!(sandbox.join("a/b/data").symlink_metadata().is_err());
        fs::remove_dir_all(&sandbox).unwrap();
    }

    #[test]
    fn no_way_out() {
        let (sandbox, outside) = (directory("inside"), directory("outside"));
        for bad in ["../x", "/x", "a/../../x", ""] {
            let error = link_inside(&sandbox, Path::new(bad), Path::new("/t")).unwrap_err();
            assert!(matches!(error, DirectoryError::Outside(_)), "{bad}: {error}");
        }
        std::os::unix::fs::symlink(&outside, sandbox.join("trap")).unwrap();
        assert!(link_inside(&sandbox, Path::new("trap/x"), Path::new("/t")).is_err());
        assert!(make_inside(&sandbox, Path::new("trap/x")).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        // A link to a directory counts as an existing directory.
        make_inside(&sandbox, Path::new("trap")).unwrap();
        make_inside(&sandbox, Path::new("c/d")).unwrap();
        assert!(sandbox.join("c/d").is_dir());
        fs::remove_dir_all(&sandbox).unwrap();
        fs::remove_dir_all(&outside).unwrap();
    }

    #[test]
    fn only_what_is_there_is_deleted() {
        let base = directory("deleted");
        let (sandbox, outside) = (base.join("sandbox"), base.join("outside"));
        for path in [sandbox.join("containers/a/deep"), outside.join("a"), outside.join("b")] {
            fs::create_dir_all(path).unwrap();
        }
        remove(&sandbox.join("containers/a")).unwrap();
        assert_eq!(remove(&sandbox.join("containers/a")).unwrap_err().kind(), io::ErrorKind::NotFound);
        // Only the link is deleted, not its target.
        std::os::unix::fs::symlink(&outside, sandbox.join("containers/b")).unwrap();
        remove(&sandbox.join("containers/b")).unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
        if rustix::process::geteuid().is_root() {
            // The task's user replaces a directory by a link.
            std::os::unix::fs::chown(&sandbox, Some(65_534), Some(65_534)).unwrap();
            fs::rename(sandbox.join("containers"), base.join("aside")).unwrap();
            std::os::unix::fs::symlink(&outside, sandbox.join("containers")).unwrap();
            remove(&sandbox.join("containers/a")).unwrap_err();
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
        }
        remove(&base).unwrap();
        assert!(!base.exists());
    }

    #[test]
    fn disk_usage_counts_files_and_not_what_links_lead_to() {
        let (sandbox, outside) = (directory("full"), directory("elsewhere"));
        let empty = disk_usage(&sandbox);
        fs::create_dir(sandbox.join("sub")).unwrap();
        fs::write(sandbox.join("sub/file"), vec![1; 1 << 20]).unwrap();
        fs::write(outside.join("file"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(&outside, sandbox.join("link")).unwrap();
        let grown = disk_usage(&sandbox) - empty;
        assert!((1 << 20..3 << 19).contains(&grown), "{grown}");
        assert_eq!(disk_usage(&sandbox.join("none")), 0);
        fs::remove_dir_all(&sandbox).unwrap();
        fs::remove_dir_all(&outside).unwrap();
    }
}
