//! What a process is kept apart by: namespaces, control groups, mounts, rights. Part of a [`Spec`](crate::Spec).
//!
//! A value of these types promises nothing; what the system refuses is found out when the process is started.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cgroups::Entry;

/// Namespaces, each separately.
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
    /// Whether there is any.
    pub fn any(self) -> bool {
        self != Namespaces::default()
    }

    /// Their flags of clone(2), one by one.
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

/// A directory or file, by its place below one that can be trusted. `inside` is relative, and none of its parts may be
/// a symbolic link: its owner could lead a mount anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What can be trusted.
    pub base: PathBuf,
    /// Below it; empty for the base itself.
    pub inside: PathBuf,
}

impl Place {
    /// A path that can be trusted as a whole.
    pub fn trusted(path: impl Into<PathBuf>) -> Place {
        Place { base: path.into(), inside: PathBuf::new() }
    }

    /// An absolute path that must not contain links.
    pub fn without_links(path: impl AsRef<Path>) -> Place {
        let path = path.as_ref();
        Place { base: PathBuf::from("/"), inside: path.strip_prefix("/").unwrap_or(path).to_owned() }
    }

    /// Whether this is another place, or one below it.
    pub fn is_within(&self, other: &Place) -> bool {
        self.base == other.base && self.inside.starts_with(&other.inside)
    }
}

/// One mount in the process's own mount namespace; they are made in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mount {
    /// `source`, with what is mounted in it, is seen at `target`, which must be there.
    Bind {
        /// What is seen.
        source: Place,
        /// The mount point.
        target: Place,
        /// Whether it cannot be written to there.
        read_only: bool,
    },
    /// An empty file system in memory.
    Memory {
        /// The mount point.
        target: PathBuf,
        /// As for mount(8), for example `size=64m,mode=1777`.
        options: String,
    },
    /// Terminals of its own.
    Terminals {
        /// Where: `/dev/pts`, or that of a root to be.
        target: PathBuf,
    },
    /// The processes of the process's own pid namespace.
    Processes {
        /// Where: `/proc`, or that of a root to be.
        target: PathBuf,
    },
    /// Layers on top of each other, the lowest one first, with a directory for changes.
    Overlay {
        /// The mount point.
        target: PathBuf,
        /// As for mount(8): `lowerdir=...,upperdir=...,workdir=...`.
        options: String,
    },
    /// The same on kernels that have aufs.
    Aufs {
        /// The mount point.
        target: PathBuf,
        /// As for mount(8): `br:...=rw:...=ro`.
        options: String,
    },
}

/// Which capabilities a process has: bit sets of `capabilities(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What it can ever get.
    pub bounding: u64,
    /// What it has, and its children inherit; `None` leaves that to the user that it becomes.
    pub effective: Option<u64>,
}

/// One instruction of a seccomp filter, as in linux/filter.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct FilterStep {
    pub code: u16,
    pub if_true: u8,
    pub if_false: u8,
    pub value: u32,
}

/// Everything that a process is kept apart by. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Isolation {
    /// The namespaces of this process (a pidfd) are entered first, and those of `enter_which` only.
    pub enter: Option<Arc<OwnedFd>>,
    /// The namespaces to enter.
    pub enter_which: Namespaces,
    /// New ones.
    pub namespaces: Namespaces,
    /// A network namespace that is there already.
    pub network: Option<Arc<OwnedFd>>,
    /// The control group.
    pub cgroup: Option<Entry>,
    /// A file that a process enters a group of another kind by, with a zero.
    pub tasks: Option<Arc<OwnedFd>>,
    /// Mounts; a mount namespace of its own is needed.
    pub mounts: Vec<Mount>,
    /// The directory that becomes the root after `mounts`.
    pub root: Option<PathBuf>,
    /// The host's name, in a namespace of its own.
    pub hostname: Option<String>,
    /// Capabilities.
    pub capabilities: Option<Capabilities>,
    /// Whether no program can give it rights that it does not have.
    pub no_new_privileges: bool,
    /// System calls are checked by these programs, installed in order.
    pub seccomp: Vec<Arc<[FilterStep]>>,
    /// Whether standard input, a terminal, becomes the terminal of the session.
    pub terminal: bool,
    /// `oom_score_adj`, -1000 to 1000.
    pub oom_score: Option<i32>,
}
