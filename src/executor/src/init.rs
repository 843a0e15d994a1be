//! The first process of a container whose program is not an init process: it starts the program, reaps orphans, and
//! exits with the program's exit code. A pid namespace needs one. As `keep` it also records the program's status for an
//! agent that does not see it, because the agent is down or did not start the container.
//!
//! The kernel delivers only handled signals to the first process of a pid namespace, and `keep` blocks all of them, so
//! this process forwards none: a signal to the container is sent to all of its processes. Remaining processes end with
//! the container.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use containers::{ChildSignals, Launcher, Output, Program, Spec, WaitStatus};
use rustix::event::PollFlags;

use crate::poller::Poller;

/// Exit code for a program that could not be started, as in a shell.
const NOT_STARTED: u8 = 127;
/// Addend to the number of the signal that ended the program, for the exit code, as in a shell.
const SIGNALLED: u8 = 128;

/// Runs the program of `<program> <argv...>`.
pub(super) fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    start(words, None)
}

/// Runs a program like [`main`], and writes its status in the form of wait(2) to the file that is this process's
/// standard input.
pub(super) fn keep(words: impl Iterator<Item = OsString>) -> ExitCode {
    containers::hold_signals();
    // A task must not be able to open the status file through this process.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    // Without a file the program runs all the same.
    start(words, rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).ok().map(File::from))
}

fn start(mut words: impl Iterator<Item = OsString>, mut status: Option<File>) -> ExitCode {
    let ended = match words.next() {
        Some(file) => run(Program::Argv { file, argv: words.collect() }, status.is_none()),
        None => Err("No program is named".to_owned()),
    };
    let ended = ended.unwrap_or_else(|words| {
        stdio::err!("{words}");
        WaitStatus::from_raw(i32::from(NOT_STARTED) << 8)
    });
    if let Some(file) = &mut status {
        // There is no receiver of an error.
        let _ = file.write_all(ended.raw().to_string().as_bytes());
    }
    let signalled = ended.signal().and_then(|signal| u8::try_from(signal).ok());
    let code = ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_STARTED);
    ExitCode::from(signalled.map_or(code, |signal| SIGNALLED.saturating_add(signal)))
}

fn run(program: Program, passes_input: bool) -> Result<WaitStatus, String> {
    let children = ChildSignals::open().map_err(|error| base::error_chain(&error))?;
    let mut spec = Spec::new(program);
    spec.environment = std::env::vars_os().collect();
    (spec.stdout, spec.stderr) = (Output::Inherit, Output::Inherit);
    if passes_input {
        crate::process::pass_input(&mut spec);
    }
    // The terminal is this session's already.
    spec.isolation.terminal = false;
    // A signal to the process group, and one of a terminal, is for the program.
    spec.new_session = false;
    let child = Launcher::posix().spawn(&spec).map_err(|error| base::error_chain(&error))?;
    drop(spec);
    containers::trim_program();
    loop {
        let mut poller = Poller::default();
        poller.add(0, children.fd(), PollFlags::IN);
        poller.wait(None);
        children.clear();
        while let Some((pid, status)) = containers::reap() {
            if pid == child.pid() {
                return Ok(status);
            }
        }
    }
}
