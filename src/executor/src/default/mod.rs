//! The default executor: groups of tasks, each task a container nested in the executor's (mesos-features 2.3).
//!
//! It starts no process itself; the agent does, asked over its API.

mod container;
mod launch;
mod life;

use std::process::ExitCode;

use crate::environment::Settings;

/// Runs the default executor until its last task has ended and the agent knows. Reads everything from the environment.
///
/// Exits with success however the tasks end; with failure if the environment is not an agent's.
pub fn main() -> ExitCode {
    match Settings::read(&|name| std::env::var_os(name)) {
        Ok(settings) => life::DefaultExecutor::new(settings).run(),
        Err(error) => crate::refuse(&error),
    }
}
