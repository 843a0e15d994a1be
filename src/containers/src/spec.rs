//! The description of a process to start, which [`Launcher::spawn`](crate::Launcher::spawn) receives.
//!
//! Creating these values checks nothing; `spawn` returns the errors.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use crate::isolation::Isolation;
use crate::{ProgramFile, User};

/// The program of a [`Spec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A script, run as `/bin/sh -c <script>`.
    Shell(OsString),
    /// A program file and its whole argv, `argv[0]` included. A file without a slash is looked up along the `PATH` of
    /// the new environment. With an empty argv, the file is `argv[0]`.
    Argv {
        /// Path or name of the program file.
        file: OsString,
        /// All arguments, the zeroth included.
        argv: Vec<OsString>,
    },
    /// An open program file (no script) and its whole argv, used as it is.
    Open {
        /// The open program file.
        file: ProgramFile,
        /// All arguments, the zeroth included; there must be at least that one.
        argv: Vec<OsString>,
    },
}

/// The destination of an output stream of the new process.
#[derive(Clone, Debug, Default)]
pub enum Output {
    /// Discards the output (`/dev/null`).
    #[default]
    Null,
    /// Inherits the caller's stream.
    Inherit,
    /// Appends to this file, which is created with mode 0644 (for [`Spec::user`]) if it is missing. A symbolic link
    /// instead of the file is rejected: the directory may belong to the task's user.
    File(PathBuf),
    /// Writes to an open file or pipe.
    Fd(Arc<OwnedFd>),
}

/// The resource of a limit, with the names of `RLimitInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RlimitKind {
    As,
    Core,
    Cpu,
    Data,
    Fsize,
    Locks,
    Memlock,
    Msgqueue,
    Nice,
    Nofile,
    Nproc,
    Rss,
    Rtprio,
    Rttime,
    Sigpending,
    Stack,
}

impl RlimitKind {
    /// All kinds, each at the index of its number.
    pub(crate) const ALL: [RlimitKind; 16] = [
        RlimitKind::As,
        RlimitKind::Core,
        RlimitKind::Cpu,
        RlimitKind::Data,
        RlimitKind::Fsize,
        RlimitKind::Locks,
        RlimitKind::Memlock,
        RlimitKind::Msgqueue,
        RlimitKind::Nice,
        RlimitKind::Nofile,
        RlimitKind::Nproc,
        RlimitKind::Rss,
        RlimitKind::Rtprio,
        RlimitKind::Rttime,
        RlimitKind::Sigpending,
        RlimitKind::Stack,
    ];
}

/// A resource limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rlimit {
    /// The limited resource.
    pub kind: RlimitKind,
    /// The limit in force, in the unit of `setrlimit(2)`.
    pub soft: Option<u64>,
    /// The maximum to which the process may raise the limit.
    pub hard: Option<u64>,
}

/// An open directory, and the path by which it was opened.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Path of the directory.
    pub path: PathBuf,
    /// Descriptor of the directory.
    pub fd: Arc<OwnedFd>,
}

/// The description of a new process. The process inherits only what is listed here: other open files and variables of
/// the caller are not inherited.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The program to run.
    pub program: Program,
    /// The whole environment; of two variables with one name the later one applies.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory, as a path in the process's own root; entered before the user is switched. `None`: the
    /// caller's.
    pub working_dir: Option<PathBuf>,
    /// An open directory of the caller. If it is the `working_dir` and that of the output files, it saves a lookup.
    pub directory: Option<Directory>,
    /// Standard input; `None`: `/dev/null`.
    pub stdin: Option<Arc<OwnedFd>>,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// The user to switch to, with all groups. `None`: the caller's user. Only root can switch to another.
    pub user: Option<User>,
    /// Whether the process leads a session, and so a process group, of its own: then all its members can be found.
    pub new_session: bool,
    /// Whether the process receives SIGKILL when the thread that starts it ends: it must not outlive a parent that dies
    /// unexpectedly. Its own children are not affected.
    pub die_with_parent: bool,
    /// Resource limits, set before the user is switched.
    pub rlimits: Vec<Rlimit>,
    /// Namespaces, mounts, cgroup and rights of the process.
    pub isolation: Isolation,
}

impl Spec {
    /// Creates a spec for `program` in a session of its own, with an empty environment, streams at `/dev/null`, and the
    /// caller's user and directory.
    pub fn new(program: Program) -> Spec {
        Spec {
            program,
            environment: Vec::new(),
            working_dir: None,
            directory: None,
            stdin: None,
            stdout: Output::Null,
            stderr: Output::Null,
            user: None,
            new_session: true,
            die_with_parent: false,
            rlimits: Vec::new(),
            isolation: Isolation::default(),
        }
    }
}
