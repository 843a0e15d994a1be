//! Starts processes: the [`Launcher`].
//!
//! `prepare.rs` turns a [`Spec`] into plain C data, `start.rs` creates the process, `stage.rs` runs in it before the
//! program does; `same.rs` creates a process that continues with the running program. Nothing here waits for the end of
//! a process.

mod clone;
mod mounts;
mod prepare;
mod rights;
mod same;
mod stage;
mod start;

pub use prepare::open_for_output;
#[cfg(test)]
pub(crate) use prepare::open_output;
pub(crate) use prepare::{Prepared, Streams, null_input, working_directory};
pub(crate) use same::{Copied, copy_of_this, settle_copy};
pub(crate) use stage::note_signals;
use start::Started;
pub(crate) use start::pause;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Child, Spec};

/// The step at which a new process failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// Creating the process.
    Clone = 1,
    /// Creating a session of its own.
    Session = 2,
    /// Setting a resource limit.
    Rlimit = 3,
    /// Setting up standard input, output and error.
    Streams = 4,
    /// Entering the working directory.
    Chdir = 5,
    /// Switching to the user.
    User = 6,
    /// Executing the program.
    Exec = 7,
    /// Entering the control group.
    Cgroup = 8,
    /// Entering namespaces of another process.
    Enter = 9,
    /// Making the mounts.
    Mount = 10,
    /// Changing the root directory.
    Root = 11,
    /// Setting the capabilities.
    Capabilities = 12,
    /// Installing the seccomp filters.
    Seccomp = 13,
    /// Setting the controlling terminal.
    Terminal = 14,
}

impl Step {
    const ALL: [Step; 14] = [
        Step::Clone,
        Step::Session,
        Step::Rlimit,
        Step::Streams,
        Step::Chdir,
        Step::User,
        Step::Exec,
        Step::Cgroup,
        Step::Enter,
        Step::Mount,
        Step::Root,
        Step::Capabilities,
        Step::Seccomp,
        Step::Terminal,
    ];

    pub(crate) fn from_number(number: u32) -> Step {
        Step::ALL.into_iter().find(|step| *step as u32 == number).unwrap_or(Step::Exec)
    }

    fn words(self) -> &'static str {
        match self {
            Step::Clone => "clone the process for",
            Step::Session => "create a session for",
            Step::Rlimit => "set a resource limit of",
            Step::Streams => "set up the standard streams of",
            Step::Chdir => "enter the working directory of",
            Step::User => "switch the user of",
            Step::Exec => "execute",
            Step::Cgroup => "enter the control group for",
            Step::Enter => "enter the container's namespaces for",
            Step::Mount => "make the mounts for",
            Step::Root => "change the root directory for",
            Step::Capabilities => "set the capabilities of",
            Step::Seccomp => "filter the system calls of",
            Step::Terminal => "take the terminal for",
        }
    }
}

/// The error when a process could not be started. No process is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A text of the spec contains a NUL byte, which C strings cannot have.
    #[error("The {item} contains a NUL byte")]
    Nul {
        /// The kind of the text, such as `environment`.
        item: &'static str,
    },
    /// An output file could not be opened.
    #[error("Failed to open '{}'", path.display())]
    Output {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A step between the creation of the process and its program failed.
    #[error("Failed to {} '{program}'", step.words())]
    Failed {
        /// The step that failed.
        step: Step,
        /// The program that was to run.
        program: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Number of tries if the program file is busy. A program file that has just been written is busy while a process that
/// another thread started meanwhile has a copy of the open file: until its execve. That takes microseconds, or a time
/// slice on a busy machine, so the launcher tries again.
const BUSY_TRIES: u32 = 500;
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// A launcher of processes: in process groups and sessions, and in the namespaces and control groups of their spec.
///
/// Several threads may use it at the same time.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Launcher {}

impl Launcher {
    /// Returns the launcher that starts processes by the calls of POSIX and Linux.
    pub const fn posix() -> Launcher {
        Launcher {}
    }

    /// Starts a process. When this returns `Ok`, the program is running (execve has succeeded).
    ///
    /// Costs about as much as `posix_spawn(3)`: the process shares this one's memory until it runs its program, so the
    /// size of this process does not matter. A spec with another user costs a fork in addition: a process that shares
    /// an administrator's memory must never belong to another user, who could stop or inspect it.
    ///
    /// # Errors
    /// See [`SpawnError`]; its source is the system's error.
    pub fn spawn(&self, spec: &Spec) -> Result<Child, SpawnError> {
        let mut prepared = prepare::Prepared::new(spec)?;
        let Started { pid, pidfd } = self.start(&mut prepared, true)?;
        let opened = pidfd.map_or_else(|| crate::child::open_pidfd(pid), Ok);
        let failed = |source| SpawnError::Failed { step: Step::Clone, program: prepared.program, source };
        Ok(Child::new(pid, opened.map_err(failed)?))
    }

    /// Starts a process as [`Launcher::spawn`] does, without a pidfd: for a small process that waits for all its
    /// children ([`ChildSignals`](crate::ChildSignals)). Returns the pid, which is not reused until
    /// [`reap`](crate::reap) has returned the exit status.
    ///
    /// # Errors
    /// As [`Launcher::spawn`].
    pub fn spawn_unwatched(&self, spec: &Spec) -> Result<i32, SpawnError> {
        self.start(&mut prepare::Prepared::new(spec)?, false).map(|started| started.pid)
    }

    fn start(&self, prepared: &mut Prepared, watched: bool) -> Result<Started, SpawnError> {
        let mut result = start::start(prepared, watched);
        for _ in 0..BUSY_TRIES {
            if !matches!(&result, Err(SpawnError::Failed { source, .. }) if source.kind() == io::ErrorKind::ExecutableFileBusy)
            {
                break;
            }
            start::pause(BUSY_PAUSE);
            result = start::start(prepared, watched);
        }
        result
    }
}
