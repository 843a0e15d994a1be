//! The commands that list what a master knows, as tables, JSON or YAML.
//!
//! They read the endpoints that every Mesos master has; fields that a master leaves out are empty here.

pub mod agents;
pub mod events;
pub mod explain;
pub mod fairness;
pub mod frameworks;
mod list;
mod maintenance;
pub(crate) mod model;
pub mod offers;
pub mod roles;
pub(crate) mod table;
pub mod tasks;

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

pub use list::ListArgs;
pub(crate) use list::{ListOutput, watch};

/// Returns the time since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "times are shown to a person, and schedules are in real time")]
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Returns the time of day, in UTC.
fn time_of_day() -> String {
    let now = now().as_secs();
    format!("{:02}:{:02}:{:02}Z", now / 3600 % 24, now / 60 % 60, now % 60)
}

/// Prints a text. Ends without an error if the reader has closed the pipe, as `head` does.
pub(crate) fn print(text: &str) -> Result<ExitCode> {
    stdio::write(format_args!("{text}\n")).context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}
