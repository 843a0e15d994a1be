//! `tepui job logs`: prints files that tasks have written to their sandboxes, through the agents.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::ServiceArgs;
use super::files::{place_file, print_files};
use super::model::{Place, Task, View};
use crate::sandbox::File;
use crate::service::{self, Service};

/// Interval of reads of a file that is followed.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// Maximum number of tasks whose logs are printed, unless they are named.
const TASKS_MAX: usize = 100;

/// Flags of `tepui job logs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    service: ServiceArgs,
    /// The job's name
    job: String,
    /// The tasks' numbers; by default all
    #[arg(value_name = "TASK")]
    tasks: Vec<u32>,
    /// Print standard error instead of standard output
    #[arg(long, short = 'e', visible_alias = "stderr")]
    error: bool,
    /// Print another file of the sandbox
    #[arg(long, value_name = "PATH", conflicts_with = "error")]
    file: Option<String>,
    /// Keep printing what is written until the task ends
    #[arg(long)]
    follow: bool,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let service = args.service.find().await?;
    let view = read_view(&service, &args.job).await?;
    let tasks = chosen(&view, args)?;
    let name = args.file.as_deref().unwrap_or(if args.error { "stderr" } else { "stdout" });
    if args.follow {
        let [(number, place)] = tasks.as_slice() else { bail!("--follow is for one task: name its number") };
        let mut log = place_file(place, &args.service.master, name).await?;
        return follow(&mut log, &service, &args.job, *number).await;
    }
    print_files(&tasks, &args.service.master, name, args.service.json).await
}

async fn read_view(service: &Service, job: &str) -> Result<View> {
    let document = service.get(&service::path(job, "")).await?;
    serde_json::from_value(document).context("the framework's answer")
}

/// Returns the tasks whose logs are shown: each was launched at least once.
fn chosen(view: &View, args: &Args) -> Result<Vec<(u32, Place)>> {
    for number in &args.tasks {
        match view.tasks.iter().find(|t| t.number == *number) {
            None => bail!("the job '{}' has no task {number}", args.job),
            Some(task) if task.place.is_none() => bail!("task {number} was not launched yet"),
            Some(_) => {}
        }
    }
    let wanted = |task: &&Task| args.tasks.is_empty() || args.tasks.contains(&task.number);
    let tasks = view.tasks.iter().filter(wanted).filter_map(|task| Some((task.number, task.place.clone()?)));
    let tasks: Vec<(u32, Place)> = tasks.collect();
    match tasks.len() {
        0 => bail!("no task of '{}' was launched yet; `tepui job show {}` shows the reason", args.job, args.job),
        n if n > TASKS_MAX => bail!("the job has {n} tasks: name the tasks to show"),
        _ => Ok(tasks),
    }
}

/// Prints the log until the task has ended.
async fn follow(log: &mut File, service: &Service, job: &str, number: u32) -> Result<ExitCode> {
    loop {
        let view = read_view(service, job).await?;
        let state = view.tasks.iter().find(|t| t.number == number).map_or("gone", |t| &t.state).to_owned();
        let goes_on = matches!(state.as_str(), "staging" | "running" | "unhealthy" | "unreachable" | "ending");
        log.copy(&mut std::io::stdout()).await?;
        if !goes_on {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
