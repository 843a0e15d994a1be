//! Starting a process: the [`Launcher`].
//!
//! `prepare.rs` turns a [`Spec`] into plain C data, `start.rs` makes the process, `stage.rs` is what runs in it before
//! the program does; `same.rs` makes a process of the program that runs already. Nothing here waits for a process's
//! end.

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

/// What the new process was doing when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// Making the process itself.
    Clone = 1,
    /// Leading a session of its own.
    Session = 2,
    /// Setting a resource limit.
    Rlimit = 3,
    /// Setting up standard input, output and error.
    Streams = 4,
    /// Entering the working directory.
    Chdir = 5,
    /// Becoming the user.
    User = 6,
    /// Running the program.
    Exec = 7,
    /// Entering its control group.
    Cgroup = 8,
    /// Entering namespaces of another process.
    Enter = 9,
    /// Making its mounts.
    Mount = 10,
    /// Changing its root directory.
    Root = 11,
    /// Setting its capabilities.
    Capabilities = 12,
    /// Filtering its system calls.
    Seccomp = 13,
    /// Taking the terminal.
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

/// A process could not be started; none is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A text of the spec holds a NUL byte, which no process can be given.
    #[error("The {item} contains a NUL byte")]
    Nul {
        /// Which text.
        item: &'static str,
    },
    /// An output file could not be opened.
    #[error("Failed to open '{}'", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A step on the way to the program failed.
    #[error("Failed to {} '{program}'", step.words())]
    Failed {
        /// Which step.
        step: Step,
        /// The program that was to run.
        program: String,
        /// The system's error.
        source: io::Error,
    },
}

/// A program file that has just been written is busy for as long as a process which another thread was starting
/// meanwhile has a copy of the open file: until its execve. That is a matter of microseconds, or of a turn on a busy
/// machine, so trying again is the cure.
const BUSY_TRIES: u32 = 500;
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// Starts processes: in process groups and sessions, and in the namespaces and control groups that their spec names.
///
/// May be used from any thread, by several at once.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Launcher {}

impl Launcher {
    /// The launcher.
    pub const fn posix() -> Launcher {
        Launcher {}
    }

    /// Starts a process. When this returns `Ok`, the program is running (execve has succeeded).
    ///
    /// Costs about as much as `posix_spawn(3)`: the process shares this one's memory until it runs its program, so the
    /// size of this process does not matter. A spec with another user costs a fork more: a process that shares an
    /// administrator's memory must never belong to another user, who could stop or inspect it.
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

    /// As [`Launcher::spawn`], for a small process that waits for all its children
    /// ([`ChildSignals`](crate::ChildSignals)): the pid alone, which stays the child's until [`reap`](crate::reap) has
    /// returned its exit status.
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
