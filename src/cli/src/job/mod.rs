//! `tepui job`: submits jobs to the bin-packing framework, lists, changes and stops them.
//!
//! It uses the framework's HTTP API (`tepui framework binpack`), and for logs the agents' `/files`.

pub(crate) mod files;
mod logs;
pub(crate) mod model;
pub(crate) mod show;
mod submit;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use crate::job_list::ListArgs;
use crate::service::{self, EndArgs, Kind};

/// The subcommands of `tepui job`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the jobs of files, or one that is given by flags
    Submit(Box<submit::Args>),
    /// List jobs
    List(ListArgs<Binpack>),
    /// Show a job with its tasks, and say why they wait
    Show(show::ShowArgs),
    /// Print what a job's tasks have written
    Logs(logs::Args),
    /// Change how many tasks a service has
    Scale(ScaleArgs),
    /// Replace all tasks of a service, a few at a time
    Restart(NameArgs),
    /// End all tasks of jobs
    Stop(EndArgs<Binpack>),
}

/// The bin-packing framework.
#[derive(Clone, Copy, Debug)]
pub enum Binpack {}

impl Kind for Binpack {
    const NAME: &'static str = "binpack";
    const VARIABLE: &'static str = "TEPUI_BINPACK";
    const COMMAND: &'static str = "tepui framework binpack";
}

type ServiceArgs = service::ServiceArgs<Binpack>;

/// Flags of `tepui job scale`.
#[derive(Debug, clap::Args)]
pub struct ScaleArgs {
    #[command(flatten)]
    service: ServiceArgs,
    /// The service's name
    job: String,
    /// Number of tasks that the service should have
    count: u32,
}

/// Flags of commands that take a job's name and nothing else.
#[derive(Debug, clap::Args)]
pub struct NameArgs {
    #[command(flatten)]
    service: ServiceArgs,
    /// The job's name
    job: String,
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns what failed, and what to do about it.
    pub fn run(self) -> Result<ExitCode> {
        crate::block_on(async {
            match self {
                Command::Submit(args) => submit::run(&args).await,
                Command::List(args) => args.list("tepui job submit", show::jobs_table).await,
                Command::Show(args) => show::show(&args).await,
                Command::Logs(args) => logs::run(&args).await,
                Command::Scale(args) => {
                    let path = service::path(&args.job, "/scale");
                    args.service.find().await?.post(&path, &json!({ "count": args.count })).await?;
                    args.service.say(&format!("{}: scaling to {} tasks", args.job, args.count))
                }
                Command::Restart(args) => {
                    args.service.find().await?.post(&service::path(&args.job, "/restart"), &json!({})).await?;
                    args.service.say(&format!("{}: restarting", args.job))
                }
                Command::Stop(args) => args.end("stopped").await,
            }
        })
    }
}
