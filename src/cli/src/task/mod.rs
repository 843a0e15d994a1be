//! `tepui task`: commands about single tasks.
//!
//! The master names a task's agent; everything else comes from the agent's public API.

mod attach;
mod exec;
mod find;
mod input;
mod keys;
mod kill;
mod logs;
mod terminal;
pub(crate) mod top;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use wire::client::Address;

use crate::connect::MasterArgs;
use find::FoundTask;

const JSON: &str = "application/json";
/// Path of the agent's API.
const PATH: &str = "/api/v1";

/// Commands about tasks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Attach to the terminal of a running task: show its output and pass on input
    Attach(attach::Args),
    /// Run a command inside a running task
    Exec(exec::Args),
    /// Print what a task has written to its standard output or error
    Logs(logs::Args),
    /// End a running task of any framework
    Kill(kill::Args),
    /// Show what running tasks use, the busiest first
    Top(top::Args),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// No master or agent answers, or no task has such an id.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Command::Attach(args) => attach::run(&args),
            Command::Exec(args) => exec::run(&args),
            Command::Logs(args) => logs::run(&args),
            Command::Kill(args) => kill::run(&args),
            Command::Top(args) => top::run(&args),
        }
    }
}

/// Returns the address of a running task's agent, and the id of the task's container.
fn place(task: &FoundTask) -> Result<(Address, Value)> {
    let address = task.agent()?;
    let address = address.parse().with_context(|| format!("'{address}' is not an address"))?;
    Ok((address, task.container()?.clone()))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tasks {
    tasks: Vec<FoundTask>,
}

/// Returns what the master knows about a task now; `None` if it has forgotten the task.
async fn state_now(master: &MasterArgs, task: &FoundTask) -> Result<Option<FoundTask>> {
    let [id, framework] = [&task.id, &task.framework].map(|text| utf8_percent_encode(text, NON_ALPHANUMERIC));
    let tasks: Tasks = master.read(&format!("/tasks?task_id={id}&framework_id={framework}")).await?;
    Ok(tasks.tasks.into_iter().next())
}
