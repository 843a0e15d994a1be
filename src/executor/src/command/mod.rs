//! The command executor: runs one task that is a command, as a process beside it (docs/mesos/executors.md).
//!
//! The agent starts it in the task's sandbox, as the task's user, and ends the remaining processes when it exits.

mod life;

use std::os::fd::OwnedFd;
use std::process::ExitCode;

use crate::environment::Settings;

/// Runs the command executor until its task has ended and the agent has acknowledged that. Its settings are in the
/// environment. With a `line`, an open socket to the agent, it is subscribed already.
///
/// Exits with success however the task ends; with failure if the environment is not an agent's.
pub fn main(line: Option<OwnedFd>) -> ExitCode {
    if let Err(error) = crate::docker::write_to_files() {
        return crate::refuse(&error);
    }
    let settings = match Settings::read(&|name| std::env::var_os(name)) {
        Ok(settings) => settings,
        Err(error) => return crate::refuse(&error),
    };
    match life::CommandExecutor::new(settings, line) {
        Ok(executor) => executor.run(),
        Err(error) => crate::refuse(&error),
    }
}
