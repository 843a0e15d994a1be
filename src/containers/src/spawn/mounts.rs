//! Mounts of a new process, in its own namespace: prepared in the parent, made in the child.
//!
//! The system calls with descriptors (open_tree, move_mount; Linux 5.12) are used because the owner of a path may
//! change it between check and use. The code that runs in the child does not allocate.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{SpawnError, Step};
use crate::isolation::{Mount, MountPath};

/// A [`MountPath`], prepared for the child.
pub(super) struct PreparedPath {
    base: CString,
    inside: Option<CString>,
}

/// A [`Mount`], prepared for the child.
pub(super) enum Prepared {
    Bind { source: PreparedPath, target: PreparedPath, read_only: bool },
    Other { kind: CString, target: CString, options: CString },
}

fn text(path: &Path) -> Result<CString, SpawnError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| SpawnError::Nul { item: "path of a mount" })
}

fn prepare_path(place: &MountPath) -> Result<PreparedPath, SpawnError> {
    let inside = (!place.inside.as_os_str().is_empty()).then(|| text(&place.inside)).transpose()?;
    Ok(PreparedPath { base: text(&place.base)?, inside })
}

pub(super) fn prepare(mounts: &[Mount]) -> Result<Vec<Prepared>, SpawnError> {
    let other = |kind: &str, target: &Path, options: &str| {
        Ok(Prepared::Other { kind: text(Path::new(kind))?, target: text(target)?, options: text(Path::new(options))? })
    };
    let one = |mount: &Mount| match mount {
        Mount::Bind { source, target, read_only } => {
            Ok(Prepared::Bind { source: prepare_path(source)?, target: prepare_path(target)?, read_only: *read_only })
        }
        Mount::Memory { target, options } => other("tmpfs", target, options),
        Mount::Terminals { target } => other("devpts", target, "newinstance,ptmxmode=0666,mode=0620"),
        Mount::Processes { target } => other("proc", target, ""),
        Mount::Overlay { target, options } => other("overlay", target, options),
        Mount::Aufs { target, options } => other("aufs", target, options),
    };
    mounts.iter().map(one).collect()
}

/// `struct open_how`
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// `struct mount_attr`
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const RESOLVE_NO_SYMLINKS: u64 = 0x04;
const RESOLVE_BENEATH: u64 = 0x08;
const OPEN_TREE_CLONE: u32 = 1;
const AT_RECURSIVE: u32 = 0x8000;
const MOVE_FROM_DESCRIPTOR: u32 = 0x04;
const MOVE_TO_DESCRIPTOR: u32 = 0x40;
const READ_ONLY: u64 = 0x01;

/// Opens a place. Returns a descriptor, or a negative number with errno set.
///
/// # Safety
/// As `run_stage`.
unsafe fn open(path: &PreparedPath) -> RawFd {
    // SAFETY: C strings that the parent keeps; the structure is the kernel's, with its size.
    unsafe {
        let base = libc::open(path.base.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        let Some(inside) = path.inside.as_ref().filter(|_| base >= 0) else { return base };
        let how = OpenHow {
            flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
            mode: 0,
            resolve: RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
        };
        let opened = libc::syscall(libc::SYS_openat2, base, inside.as_ptr(), &raw const how, size_of::<OpenHow>());
        libc::close(base);
        opened as RawFd
    }
}

/// Bind-mounts `source` at `target`. Returns a negative number with errno set if that fails.
///
/// # Safety
/// As `run_stage`.
unsafe fn bind(source: &PreparedPath, target: &PreparedPath, read_only: bool) -> i64 {
    // SAFETY: descriptors that have just been opened, and structures of the kernel's layout.
    unsafe {
        let source = open(source);
        if source < 0 {
            return -1;
        }
        let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::O_CLOEXEC as u32 | libc::AT_EMPTY_PATH as u32;
        let tree = libc::syscall(libc::SYS_open_tree, source, c"".as_ptr(), flags);
        libc::close(source);
        if tree < 0 {
            return -1;
        }
        if read_only {
            let attributes = MountAttributes { set: READ_ONLY, clear: 0, propagation: 0, user_namespace: 0 };
            let flags = AT_RECURSIVE | libc::AT_EMPTY_PATH as u32;
            let size = size_of::<MountAttributes>();
            let set = libc::syscall(libc::SYS_mount_setattr, tree, c"".as_ptr(), flags, &raw const attributes, size);
            if set < 0 {
                return -1;
            }
        }
        let target = open(target);
        if target < 0 {
            return -1;
        }
        let flags = MOVE_FROM_DESCRIPTOR | MOVE_TO_DESCRIPTOR;
        let moved = libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), target, c"".as_ptr(), flags);
        libc::close(target);
        libc::close(tree as RawFd);
        moved
    }
}

/// Makes the mounts and changes the root. An error is the step that failed, with errno set.
///
/// # Safety
/// As `run_stage`, in a mount namespace of the process's own.
pub(super) unsafe fn make(mounts: &[Prepared], root: Option<&CString>) -> Result<(), Step> {
    let check = |result: i64, step| if result < 0 { Err(step) } else { Ok(()) };
    // SAFETY: only system calls, on C strings that the parent keeps.
    unsafe {
        // Mounts that are made here are not visible outside; later mounts outside are visible here.
        let slave = libc::MS_REC | libc::MS_SLAVE;
        let none = std::ptr::null();
        check(libc::mount(none, c"/".as_ptr(), none, slave, none.cast()).into(), Step::Mount)?;
        for mount in mounts {
            let made = match mount {
                Prepared::Bind { source, target, read_only } => bind(source, target, *read_only),
                Prepared::Other { kind, target, options } => {
                    let flags = match kind.as_bytes() {
                        b"overlay" | b"aufs" => 0,
                        // The terminals are devices, so `nodev` is left out.
                        b"devpts" => libc::MS_NOSUID,
                        _ => libc::MS_NOSUID | libc::MS_NODEV,
                    };
                    let options = options.as_ptr().cast();
                    libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options).into()
                }
            };
            check(made, Step::Mount)?;
        }
        if let Some(root) = root {
            check(libc::chdir(root.as_ptr()).into(), Step::Root)?;
            // The old root is mounted on top of the new one, and is unmounted (see pivot_root(2)).
            check(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()), Step::Root)?;
            check(libc::umount2(c".".as_ptr(), libc::MNT_DETACH).into(), Step::Root)?;
            check(libc::chdir(c"/".as_ptr()).into(), Step::Root)?;
        }
    }
    Ok(())
}
