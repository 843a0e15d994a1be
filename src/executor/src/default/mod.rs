//! The default executor: runs groups of tasks, each task in a container nested in the executor's
//! (docs/mesos/executors.md).
//!
//! The agent starts the containers through calls of its API; only the probes of checks are processes of the executor's
//! own.

mod container;
mod health;
mod launch;
mod life;

use std::os::fd::OwnedFd;
use std::process::ExitCode;

use crate::environment::Settings;

/// Runs the default executor until its last task has ended and the agent has acknowledged that. Its settings are in the
/// environment. With a `line`, an open socket to the agent, it is subscribed already.
///
/// Exits with success however the tasks end; with failure if the environment is not an agent's.
pub fn main(line: Option<OwnedFd>) -> ExitCode {
    let settings = match Settings::read(&|name| std::env::var_os(name)) {
        Ok(settings) => settings,
        Err(error) => return crate::refuse(&error),
    };
    match life::DefaultExecutor::new(settings, line) {
        Ok(executor) => executor.run(),
        Err(error) => crate::refuse(&error),
    }
}
