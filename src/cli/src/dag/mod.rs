//! `tepui dag`: submits jobs of stages to their framework, lists, shows and cancels them.
//!
//! It uses the framework's HTTP API (`tepui framework dag`), and for logs the agents' `/files`.

mod graph;
mod logs;
pub(crate) mod model;
pub(crate) mod show;
mod submit;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::job_list::ListArgs;
use crate::service::{self, EndArgs, Kind};

/// What to do with jobs of stages.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the jobs of files
    Submit(Box<submit::Args>),
    /// List jobs
    List(ListArgs<Dag>),
    /// Show a job with its stages, say why they wait, and plot the sizes of their tasks
    Show(show::ShowArgs),
    /// Print what tasks of a stage have written
    Logs(logs::Args),
    /// End all tasks of jobs
    Cancel(EndArgs<Dag>),
    /// Draw the stages of a job, as text or for Graphviz
    Graph(graph::Args),
}

/// The framework of jobs of stages.
#[derive(Clone, Copy, Debug)]
pub enum Dag {}

impl Kind for Dag {
    const NAME: &'static str = "dag";
    const VARIABLE: &'static str = "TEPUI_DAG";
    const COMMAND: &'static str = "tepui framework dag";
}

type ServiceArgs = service::ServiceArgs<Dag>;

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns what failed, and what to do about it.
    pub fn run(self) -> Result<ExitCode> {
        crate::block_on(async {
            match self {
                Command::Submit(args) => submit::run(&args).await,
                Command::List(args) => args.list("tepui dag submit", show::jobs_table).await,
                Command::Show(args) => show::show(&args).await,
                Command::Logs(args) => logs::run(&args).await,
                Command::Graph(args) => graph::run(&args).await,
                Command::Cancel(args) => args.end("cancelled").await,
            }
        })
    }
}
