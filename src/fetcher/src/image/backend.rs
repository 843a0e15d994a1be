//! Chooses how containers' roots are made of layers on this host: mounted on top of each other (overlay, aufs), one
//! layer as it is (bind), or copied (AGT-122).
//!
//! The features of a file system are tested where the store and the roots are. Nothing is mounted here.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs as sys;
use rustix::io::Errno;

use super::layer::OPAQUE_ATTRIBUTE;

/// The way in which the root of a container is made of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Layers are shared by an overlay mount; a container writes to a directory above them.
    Overlay,
    /// Layers are shared by an aufs mount, which only some distributions support.
    Aufs,
    /// The only layer is the root, read-only.
    Bind,
    /// Each container has a copy of the layers.
    Copy,
}

/// Reason why a backend cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// There is no backend with this name.
    #[error("'{0}' is none of 'auto', 'overlay', 'aufs', 'bind' and 'copy'")]
    Unknown(String),
    /// The named backend cannot be used on this host.
    #[error("'{name}' cannot be used here: {why}")]
    Unusable {
        /// Name of the backend.
        name: &'static str,
        /// Feature that the host lacks.
        why: MissingFeature,
    },
}

/// A feature that a backend needs and this host lacks.
#[derive(Debug, thiserror::Error)]
pub enum MissingFeature {
    /// The kernel does not support this file system.
    #[error("the kernel has no file system '{0}'")]
    Kernel(&'static str),
    /// A directory cannot be created or examined.
    #[error("'{}': {error}", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// Cause of the error.
        error: io::Error,
    },
    /// The directory's file system cannot be a part of the backend's.
    #[error("'{}' is on the file system {found}, which {kind} cannot use", path.display())]
    Union {
        /// Path of the directory.
        path: PathBuf,
        /// File system of the directory.
        found: &'static str,
        /// File system of the backend.
        kind: &'static str,
    },
    /// The directory's file system does not support what the backend writes.
    #[error("the file system of '{}' has {mark}", path.display())]
    Whiteout {
        /// Path of the directory.
        path: PathBuf,
        /// Feature that is not supported.
        mark: WhiteoutError,
    },
}

/// A feature that a file system does not support.
#[derive(Debug, thiserror::Error)]
pub enum WhiteoutError {
    /// Devices 0/0, which mark a deleted file.
    #[error("no whiteout devices: {0}")]
    Device(Errno),
    /// Attributes, which mark a directory whose lower entries are deleted.
    #[error("no trusted attributes: {0}")]
    Attribute(Errno),
    /// Types of a directory's entries.
    #[error("directories without the types of their entries (d_type)")]
    Kinds,
    /// Reading of a directory's entries.
    #[error("directories that cannot be read: {0}")]
    Reading(Errno),
}

/// File systems that cannot be the writable part of a union mount, whatever other features they have.
const UNIONS: [(i64, &str); 5] =
    [(0x794c_7630, "overlay"), (0x6175_6673, "aufs"), (0xf15f, "ecryptfs"), (0x6969, "nfs"), (0x6573_5546, "fuse")];
/// A further such file system for aufs.
const BTRFS: (i64, &str) = (0x9123_683e, "btrfs");

impl Backend {
    /// Returns whether there is a backend with this name, on any host.
    pub fn is_name(name: &str) -> bool {
        pick(name, &|_| Ok(())).is_ok()
    }

    /// Returns the backend with this name, if this host supports it. With `auto` it returns the best supported one, and
    /// why better ones are not supported.
    ///
    /// # Errors
    /// The rule that the name breaks.
    pub fn choose(name: &str, store: &Path, roots: &Path) -> Result<(Backend, Vec<MissingFeature>), BackendError> {
        pick(name, &|backend| match backend {
            Backend::Overlay => {
                is_in_kernel("overlay")?;
                can_be_upper(roots, "overlay", &[])?;
                supports_whiteouts(roots)?;
                supports_whiteouts(store)
            }
            Backend::Aufs => {
                is_in_kernel("aufs")?;
                can_be_upper(roots, "aufs", &[BTRFS])?;
                can_be_upper(store, "aufs", &[BTRFS])
            }
            Backend::Bind | Backend::Copy => Ok(()),
        })
    }
}

fn pick(
    name: &str,
    check: &dyn Fn(Backend) -> Result<(), MissingFeature>,
) -> Result<(Backend, Vec<MissingFeature>), BackendError> {
    let named = |backend, name| match check(backend) {
        Ok(()) => Ok((&[][..], backend)),
        Err(why) => Err(BackendError::Unusable { name, why }),
    };
    let (all, last): (&[Backend], Backend) = match name {
        "auto" | "" => (&[Backend::Overlay, Backend::Aufs], Backend::Copy),
        "overlay" => named(Backend::Overlay, "overlay")?,
        "aufs" => named(Backend::Aufs, "aufs")?,
        "bind" => (&[], Backend::Bind),
        "copy" => (&[], Backend::Copy),
        _ => return Err(BackendError::Unknown(name.to_owned())),
    };
    let mut reasons = Vec::new();
    for backend in all {
        match check(*backend) {
            Ok(()) => return Ok((*backend, reasons)),
            Err(why) => reasons.push(why),
        }
    }
    Ok((last, reasons))
}

/// Checks that the kernel supports the file system, or has a module for it, which it loads for the first mount.
fn is_in_kernel(kind: &'static str) -> Result<(), MissingFeature> {
    let listed = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let directory = if kind == "overlay" { "overlayfs" } else { kind };
    let modules = Path::new("/lib/modules").join(release.trim()).join("kernel/fs").join(directory);
    // An agent in a container may not see the modules; then the first mount shows whether there is one.
    let unseen = !Path::new("/lib/modules").is_dir() && kind == "overlay";
    match unseen || listed.lines().any(|line| line.trim_start_matches("nodev").trim() == kind) || modules.is_dir() {
        true => Ok(()),
        false => Err(MissingFeature::Kernel(kind)),
    }
}

/// Checks that `directory` can be the writable part of a mount.
fn can_be_upper(directory: &Path, kind: &'static str, more: &[(i64, &'static str)]) -> Result<(), MissingFeature> {
    let path = directory.to_owned();
    let at = |error: io::Error| MissingFeature::Directory { path: directory.to_owned(), error };
    ::store::create_directories(directory, ::store::Access::All).map_err(at)?;
    let magic = sys::statfs(directory).map_err(|errno| at(errno.into()))?.f_type;
    match UNIONS.iter().chain(more).find(|(other, _)| i128::from(*other) == i128::from(magic)) {
        Some((_, found)) => Err(MissingFeature::Union { path, found, kind }),
        None => Ok(()),
    }
}

/// Checks that the file system of `directory` supports whiteouts, and reports the types of directory entries.
fn supports_whiteouts(directory: &Path) -> Result<(), MissingFeature> {
    let probe = directory.join(format!(".probe-{}", std::process::id()));
    match ::store::create_directories(&probe, ::store::Access::Owner) {
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => return Ok(()),
        made => made.map_err(|error| MissingFeature::Directory { path: probe.clone(), error })?,
    }
    let tried = try_whiteouts(&probe).map_err(|mark| MissingFeature::Whiteout { path: directory.to_owned(), mark });
    // At most two empty directories remain.
    let _ = fs::remove_dir_all(&probe);
    tried
}

/// Ignores an error of a full disk, which is not evidence against the file system.
fn may(tried: Result<(), Errno>) -> Result<(), Errno> {
    tried.or_else(|errno| if matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::IO) { Ok(()) } else { Err(errno) })
}

fn try_whiteouts(probe: &Path) -> Result<(), WhiteoutError> {
    let made = sys::mknodat(sys::CWD, probe.join("gone"), sys::FileType::CharacterDevice, sys::Mode::empty(), 0);
    may(made).map_err(WhiteoutError::Device)?;
    let set = sys::setxattr(probe, OPAQUE_ATTRIBUTE, b"y", sys::XattrFlags::empty());
    may(set).map_err(WhiteoutError::Attribute)?;
    let kinds = || {
        let opened = sys::open(probe, sys::OFlags::DIRECTORY | sys::OFlags::CLOEXEC, sys::Mode::empty())?;
        let entries: Result<Vec<_>, _> = sys::Dir::new(opened)?.collect();
        entries.map(|entries| entries.iter().all(|entry| entry.file_type() != sys::FileType::Unknown))
    };
    match kinds() {
        Ok(true) => Ok(()),
        Ok(false) => Err(WhiteoutError::Kinds),
        Err(errno) => Err(WhiteoutError::Reading(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_one_that_the_host_can_do() {
        let only = |able: &'static [Backend]| {
            move |backend: Backend| able.contains(&backend).then_some(()).ok_or(MissingFeature::Kernel("some"))
        };
        let pick = |name: &str, able: &dyn Fn(Backend) -> Result<(), MissingFeature>| {
            pick(name, able).map(|(backend, lacks)| (backend, lacks.len())).map_err(|why| why.to_string())
        };
        let all = only(&[Backend::Overlay, Backend::Aufs]);
        assert_eq!(pick("auto", &all), Ok((Backend::Overlay, 0)));
        assert_eq!(pick("", &only(&[Backend::Aufs])), Ok((Backend::Aufs, 1)));
        let none = only(&[]);
        assert_eq!(pick("auto", &none), Ok((Backend::Copy, 2)));
        assert_eq!(pick("bind", &none), Ok((Backend::Bind, 0)));
        assert_eq!(pick("copy", &all), Ok((Backend::Copy, 0)));
        let why = "'aufs' cannot be used here: the kernel has no file system 'some'";
        assert_eq!(pick("aufs", &none), Err(why.to_owned()));
        assert!(pick("zfs", &all).unwrap_err().starts_with("'zfs' is none of"));
    }

    #[test]
    fn a_file_system_without_marks() {
        assert_eq!(is_in_kernel("nothing").unwrap_err().to_string(), "the kernel has no file system 'nothing'");
        // Directories cannot be created there.
        assert!(supports_whiteouts(Path::new("/proc")).unwrap_err().to_string().starts_with("'/proc/.probe-"));
        let directory = std::env::temp_dir().join(format!("tepui-backend-{}", std::process::id()));
        can_be_upper(&directory, "overlay", &[]).unwrap();
        if rustix::process::geteuid().is_root() {
            supports_whiteouts(&directory).unwrap();
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir_all(&directory).unwrap();
    }
}
