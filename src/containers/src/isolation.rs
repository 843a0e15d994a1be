//! The isolation of a process: namespaces, control groups, mounts, rights. Part of a [`Spec`](crate::Spec).
//!
//! Creating these values checks nothing; errors of the system occur when the process is started.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cgroups::Entry;

/// A set of namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Namespaces {
    pub mount: bool,
    pub pid: bool,
    pub ipc: bool,
    pub uts: bool,
    pub network: bool,
}

impl Namespaces {
    /// Returns whether the set has any namespace.
    pub fn any(self) -> bool {
        self != Namespaces::default()
    }

    /// Returns the flags of clone(2) of the namespaces, one by one.
    pub fn each(self) -> Vec<libc::c_int> {
        self.all().into_iter().filter(|flag| *flag != 0).collect()
    }

    pub(crate) fn flags(self) -> libc::c_int {
        self.all().into_iter().fold(0, |all, flag| all | flag)
    }

    fn all(self) -> [libc::c_int; 5] {
        let flag = |set: bool, flag: libc::c_int| if set { flag } else { 0 };
        [
            flag(self.mount, libc::CLONE_NEWNS),
            flag(self.pid, libc::CLONE_NEWPID),
            flag(self.ipc, libc::CLONE_NEWIPC),
            flag(self.uts, libc::CLONE_NEWUTS),
            flag(self.network, libc::CLONE_NEWNET),
        ]
    }
}

/// A directory or file, by its path below a trusted one. `inside` is relative, and none of its parts may be a symbolic
/// link: its owner could lead a mount anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPath {
    /// A path that is trusted.
    pub base: PathBuf,
    /// The path below `base`; empty for the base itself.
    pub inside: PathBuf,
}

impl MountPath {
    /// Creates a place from a path that is trusted as a whole.
    pub fn trusted(path: impl Into<PathBuf>) -> MountPath {
        MountPath { base: path.into(), inside: PathBuf::new() }
    }

    /// Creates a place from an absolute path that must not contain links.
    pub fn without_links(path: impl AsRef<Path>) -> MountPath {
        let path = path.as_ref();
        MountPath { base: PathBuf::from("/"), inside: path.strip_prefix("/").unwrap_or(path).to_owned() }
    }

    /// Returns whether this place is `other` or below it.
    pub fn is_within(&self, other: &MountPath) -> bool {
        self.base == other.base && self.inside.starts_with(&other.inside)
    }
}

/// A mount in the process's own mount namespace. Mounts are made in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mount {
    /// Mounts `source`, with its own mounts, at `target`, which must exist.
    Bind {
        /// The directory or file that is mounted.
        source: MountPath,
        /// The mount point.
        target: MountPath,
        /// Whether the mount is read-only.
        read_only: bool,
    },
    /// Mounts an empty file system in memory (tmpfs).
    Memory {
        /// The mount point.
        target: PathBuf,
        /// Options as for mount(8), for example `size=64m,mode=1777`.
        options: String,
    },
    /// Mounts a new instance of devpts: terminals of the process's own.
    Terminals {
        /// The mount point: `/dev/pts`, or that of the later root.
        target: PathBuf,
    },
    /// Mounts proc for the process's own pid namespace.
    Processes {
        /// The mount point: `/proc`, or that of the later root.
        target: PathBuf,
    },
    /// Mounts an overlay of several layers, with a directory for changes.
    Overlay {
        /// The mount point.
        target: PathBuf,
        /// Options as for mount(8): `lowerdir=...,upperdir=...,workdir=...`.
        options: String,
    },
    /// Mounts layers by aufs, on kernels that have it.
    Aufs {
        /// The mount point.
        target: PathBuf,
        /// Options as for mount(8): `br:...=rw:...=ro`.
        options: String,
    },
}

/// The capabilities of a process: bit sets of `capabilities(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The bounding set: the capabilities that the process can ever have.
    pub bounding: u64,
    /// The capabilities that the process has and its children inherit; `None` leaves them to the user that it becomes.
    pub effective: Option<u64>,
}

/// An instruction of a seccomp filter, as in linux/filter.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct FilterStep {
    pub code: u16,
    pub if_true: u8,
    pub if_false: u8,
    pub value: u32,
}

/// The isolation of a process. The default is none.
#[derive(Clone, Debug, Default)]
pub struct Isolation {
    /// A process (a pidfd) whose namespaces are entered first, only those of `enter_which`.
    pub enter: Option<Arc<OwnedFd>>,
    /// The namespaces of `enter` to enter.
    pub enter_which: Namespaces,
    /// Namespaces to create.
    pub namespaces: Namespaces,
    /// An existing network namespace to enter.
    pub network: Option<Arc<OwnedFd>>,
    /// The control group to enter.
    pub cgroup: Option<Entry>,
    /// A file through which the process enters a group of another kind, by writing a zero.
    pub tasks: Option<Arc<OwnedFd>>,
    /// Mounts to make; they need a mount namespace of the process's own.
    pub mounts: Vec<Mount>,
    /// Directory that becomes the root after `mounts`.
    pub root: Option<PathBuf>,
    /// Host name, in a UTS namespace of the process's own.
    pub hostname: Option<String>,
    /// Capabilities of the process; `None` leaves them unchanged.
    pub capabilities: Option<Capabilities>,
    /// Whether programs that the process executes cannot give it rights that it does not have.
    pub no_new_privileges: bool,
    /// Seccomp filters that check system calls, installed in order.
    pub seccomp: Vec<Arc<[FilterStep]>>,
    /// Whether standard input, a terminal, becomes the controlling terminal of the session.
    pub terminal: bool,
    /// Value of `oom_score_adj`, -1000 to 1000.
    pub oom_score: Option<i32>,
}
