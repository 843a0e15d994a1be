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

use crate::connect::MasterArgs;
use crate::job_list::ListArgs;
use crate::service::{self, Service};

/// What to do with jobs of stages.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the jobs of files
    Submit(Box<submit::Args>),
    /// List jobs
    List(ListArgs<ServiceArgs>),
    /// Show a job with its stages, say why they wait, and plot the sizes of their tasks
    Show(show::ShowArgs),
    /// Print what tasks of a stage have written
    Logs(logs::Args),
    /// End all tasks of jobs
    Cancel(CancelArgs),
    /// Draw the stages of a job, as text or for Graphviz
    Graph(graph::Args),
}

/// Flags of every command that talks to the framework of jobs of stages.
#[derive(Clone, Debug, clap::Args)]
pub struct ServiceArgs {
    #[command(flatten)]
    master: MasterArgs,
    /// The framework's API, as host:port; if not given, the master is asked
    #[arg(long, short, env = "TEPUI_DAG", value_name = "ADDRESS")]
    service: Option<String>,
    /// The framework's name, where there are several
    #[arg(long, short, default_value = "dag", value_name = "NAME")]
    framework: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ServiceArgs {
    async fn find(&self) -> Result<Service> {
        Service::find(&self.master, self.service.as_deref(), &self.framework, "tepui framework dag").await
    }
}

/// Flags of `tepui dag cancel`.
#[derive(Debug, clap::Args)]
pub struct CancelArgs {
    #[command(flatten)]
    service: ServiceArgs,
    /// The jobs' names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
}

impl Command {
    /// Carries the command out.
    ///
    /// # Errors
    /// What went wrong, and what to do about it.
    pub fn run(self) -> Result<ExitCode> {
        crate::block_on(async {
            match self {
                Command::Submit(args) => submit::run(&args).await,
                Command::List(args) => show::list(&args).await,
                Command::Show(args) => show::show(&args).await,
                Command::Logs(args) => logs::run(&args).await,
                Command::Graph(args) => graph::run(&args).await,
                Command::Cancel(args) => {
                    let service = args.service.find().await?;
                    for job in &args.jobs {
                        service.delete(&service::path(job, "")).await?;
                        service::say(args.service.json, &format!("{job} is being cancelled"))?;
                    }
                    Ok(ExitCode::SUCCESS)
                }
            }
        })
    }
}
