//! `tepui dag logs`: prints files that tasks of a stage have written to their sandboxes, through the agents.

use std::process::ExitCode;

use anyhow::{Result, bail};

use super::ServiceArgs;
use super::model::{Task, tasks};
use crate::job::files::print_files;
use crate::job::model::Place;

/// Maximum number of tasks whose logs are printed, unless they are named.
const TASKS_MAX: usize = 100;

/// Flags of `tepui dag logs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    service: ServiceArgs,
    /// The job's name
    job: String,
    /// The stage's name
    stage: String,
    /// The tasks' numbers; by default all
    #[arg(value_name = "TASK")]
    tasks: Vec<u32>,
    /// Print standard error instead of standard output
    #[arg(long, short = 'e', visible_alias = "stderr")]
    error: bool,
    /// Print another file of the sandbox, such as output/NAME
    #[arg(long, value_name = "PATH", conflicts_with = "error")]
    file: Option<String>,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let service = args.service.find().await?;
    let all = tasks(&service, &args.job, &args.stage, usize::MAX).await?;
    let chosen = chosen(all, args)?;
    let name = args.file.as_deref().unwrap_or(if args.error { "stderr" } else { "stdout" });
    print_files(&chosen, &args.service.master, name, args.service.json).await
}

/// Returns the tasks whose logs are shown: each was launched at least once.
fn chosen(all: Vec<Task>, args: &Args) -> Result<Vec<(u32, Place)>> {
    for number in &args.tasks {
        if !all.iter().any(|task| task.number == *number && task.place.is_some()) {
            bail!("the stage '{}' has no task {number} that was launched", args.stage);
        }
    }
    let wanted = |task: &Task| args.tasks.is_empty() || args.tasks.contains(&task.number);
    let tasks = all.into_iter().filter(wanted).filter_map(|task| Some((task.number, task.place?)));
    let tasks: Vec<(u32, Place)> = tasks.collect();
    match tasks.len() {
        0 => bail!("no task of '{}' was launched yet; `tepui dag show {}` shows the reason", args.stage, args.job),
        n if n > TASKS_MAX => bail!("the stage has {n} tasks: name the tasks to show"),
        _ => Ok(tasks),
    }
}
