//! The commands of operators and developers.
//!
//! Each command has a file or a directory; [`command`] lists them. All commands except the daemons use the public APIs
//! of a running master, so they also work with a Mesos 1.11 master. This crate does not depend on the internals of
//! master and agent.
#![forbid(unsafe_code)]

#[cfg(not(feature = "lab"))]
mod absent;
mod advise;
pub mod command;
mod complete;
mod connect;
mod daemons;
mod dag;
#[cfg(feature = "video")]
mod demo;
#[cfg(feature = "video")]
mod embedded;
mod execute;
mod framework;
mod interrupt;
mod job;
mod job_list;
#[cfg(feature = "lab")]
mod lab;
mod operate;
mod read;
mod registry;
mod sandbox;
mod say;
mod service;
mod task;
mod tls;
mod top;
mod waiting;

#[cfg(feature = "lab")]
pub use lab::bundled::CATALOG as BUNDLED;

use std::process::ExitCode;

use clap::Parser;

/// Runs the command that the process was started with.
///
/// The exit status is 0 if the command succeeded, 1 if it failed, and 2 if the command line is invalid.
pub fn main() -> ExitCode {
    // Answers the shell and exits, if it requests completions.
    clap_complete::CompleteEnv::with_factory(command::whole).var(complete::VARIABLE).complete();
    let cli = command::Cli::parse();
    match cli.run() {
        Ok(code) => code,
        Err(error) => {
            stdio::err!("tepui: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command's future on a runtime of one thread.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// Prints warnings of the libraries on standard error.
fn show_warnings() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .with_ansi(stdio::has_colours())
        .with_target(false)
        // Its messages use `eprintln!`, which panics if standard error cannot be written.
        .log_internal_errors(false)
        .without_time();
    // This fails only if a subscriber is set already, as in tests.
    let _ = subscriber.try_init();
}
