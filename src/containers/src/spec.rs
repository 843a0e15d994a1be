//! What to start: the description that [`Launcher::spawn`](crate::Launcher::spawn) takes.
//!
//! A value of these types promises nothing about the machine; what is wrong with it is found out by `spawn`.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use crate::isolation::Isolation;
use crate::{ProgramFile, User};

/// The program of a [`Spec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A script: run as `/bin/sh -c <script>`.
    Shell(OsString),
    /// A program file and its whole argv, `argv[0]` included. A file without a slash is looked for along the
    /// `PATH` of the new environment. An empty argv stands for the file itself as `argv[0]`.
    Argv {
        /// Path or name of the program file.
        file: OsString,
        /// All arguments, the zeroth included.
        argv: Vec<OsString>,
    },
    /// An open program file (no script) and its whole argv, as it is given.
    Open {
        /// The program.
        file: ProgramFile,
        /// All arguments, the zeroth included; it must be there.
        argv: Vec<OsString>,
    },
}

/// Where a standard stream of the new process goes.
#[derive(Clone, Debug, Default)]
pub enum Output {
    /// `/dev/null`.
    #[default]
    Null,
    /// The same as the caller's.
    Inherit,
    /// Appends to this file, which is created with mode 0644 (for [`Spec::user`]) if it is missing. A symbolic link in
    /// its place is rejected: the directory may belong to the task's user.
    File(PathBuf),
    /// An open file or pipe.
    Fd(Arc<OwnedFd>),
}

/// What a limit limits: the names of `RLimitInfo`.
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
    /// All, each at the place of its number.
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

/// One resource limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rlimit {
    /// What is limited.
    pub kind: RlimitKind,
    /// The limit in force, in the unit of `setrlimit(2)`.
    pub soft: Option<u64>,
    /// How far the process may raise it.
    pub hard: Option<u64>,
}

/// An open directory, and the path by which it was opened.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Where it is.
    pub path: PathBuf,
    /// What it was opened as.
    pub fd: Arc<OwnedFd>,
}

/// The description of a new process. Only what is listed here is inherited, open files included.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What is run.
    pub program: Program,
    /// The whole environment; of two variables with one name the later one counts.
    pub environment: Vec<(OsString, OsString)>,
    /// The current directory, as it is named in the process's own root; entered before the user is switched. `None`:
    /// the caller's.
    pub working_dir: Option<PathBuf>,
    /// An open directory of the caller, best the `working_dir` and that of the outputs, which saves a lookup.
    pub directory: Option<Directory>,
    /// Standard input; `None`: `/dev/null`.
    pub stdin: Option<Arc<OwnedFd>>,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// The user, with all his groups, to become. `None`: stay. Only root can become another.
    pub user: Option<User>,
    /// Whether the process leads a session, and so a process group, of its own: the whole of it can then be found.
    pub new_session: bool,
    /// Whether the process gets SIGKILL when the thread that starts it ends: it must not outlive a parent that dies
    /// unexpectedly. Its own children are not concerned.
    pub die_with_parent: bool,
    /// Limits, set before the user is switched.
    pub rlimits: Vec<Rlimit>,
    /// Namespaces, mounts, cgroup and rights of the process.
    pub isolation: Isolation,
}

impl Spec {
    /// A spec for `program` in a session of its own, with an empty environment, streams at `/dev/null`, and the
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
