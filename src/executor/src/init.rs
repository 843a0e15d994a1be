//! The first process of a pid namespace, for a program that is not made to be one: it starts the program, waits for
//! orphans, and ends as the program has ended.
//!
//! The kernel gives such a process no signal that it does not handle, so this one needs to hand none on: a signal to the
//! container's process group reaches the program by itself. Whatever is left ends with this process.

use std::ffi::OsString;
use std::process::ExitCode;

use containers::{ChildSignals, Launcher, Output, Program, Spec};
use rustix::event::PollFlags;

use crate::poller::Poller;

/// The exit code of a program that could not be started, as with a shell.
const NOT_STARTED: u8 = 127;
/// Added to the number of the signal that has ended the program, as a shell does.
const SIGNALLED: u8 = 128;

/// `<program> <argv...>`
pub(super) fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(file) = words.next() else {
        eprintln!("Which program?");
        return ExitCode::from(NOT_STARTED);
    };
    match run(Program::Argv { file, argv: words.collect() }) {
        Ok(code) => ExitCode::from(code),
        Err(words) => {
            eprintln!("{words}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn run(program: Program) -> Result<u8, String> {
    let children = ChildSignals::open().map_err(|error| crate::with_causes(&error))?;
    let mut spec = Spec::new(program);
    spec.environment = std::env::vars_os().collect();
    (spec.stdout, spec.stderr) = (Output::Inherit, Output::Inherit);
    crate::process::pass_input(&mut spec);
    // It is this session's already.
    spec.isolation.terminal = false;
    // A signal to the group, and a terminal's, is for the program.
    spec.new_session = false;
    let child = Launcher::posix().spawn(&spec).map_err(|error| crate::with_causes(&error))?;
    drop(spec);
    containers::trim_program();
    loop {
        let mut poller = Poller::default();
        poller.add(0, children.fd(), PollFlags::IN);
        poller.wait(None);
        children.clear();
        while let Some((pid, status)) = containers::reap() {
            if pid == child.pid() {
                let signalled = status.signal().and_then(|signal| u8::try_from(signal).ok());
                let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_STARTED);
                return Ok(signalled.map_or(code, |signal| SIGNALLED.saturating_add(signal)));
            }
        }
    }
}
