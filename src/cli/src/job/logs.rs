//! `tepui job logs`: what tasks have written, from their sandboxes, through the agents.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::files::place_file;
use super::model::{Task, View};
use super::service::{self, Service, ServiceArgs};
use crate::sandbox::File;

/// Maximum length of a file that is printed as JSON, in bytes.
const JSON_MAX: usize = 16 << 20;
/// Time between two looks at a file that is followed.
const LOOK: Duration = Duration::from_millis(300);
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
    /// Standard error instead of standard output
    #[arg(long, short = 'e', visible_alias = "stderr")]
    error: bool,
    /// Another file of the sandbox
    #[arg(long, value_name = "PATH", conflicts_with = "error")]
    file: Option<String>,
    /// Go on printing what is written, until the task ends
    #[arg(long)]
    follow: bool,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let service = args.service.find().await?;
    let view = look(&service, &args.job).await?;
    let tasks = chosen(&view, args)?;
    let name = args.file.as_deref().unwrap_or(if args.error { "stderr" } else { "stdout" });
    if args.follow {
        let [task] = tasks.as_slice() else { bail!("--follow is for one task: name its number") };
        let mut log = file(task, args, name).await?;
        return follow(&mut log, &service, &args.job, task.number).await;
    }
    if args.service.json {
        let mut logs = Vec::new();
        for task in &tasks {
            let data = file(task, args, name).await?.rest(JSON_MAX).await?;
            logs.push(serde_json::json!({ "task": task.number, "place": task.place, "file": name, "data": data }));
        }
        return crate::read::print(&serde_json::to_string_pretty(&logs)?);
    }
    let mut failed = false;
    for task in &tasks {
        if tasks.len() > 1 {
            let place = task.place.clone().unwrap_or_default();
            crate::read::print(&format!("==> {} on {} <==", place.task_id, place.host))?;
        }
        let printed = async { file(task, args, name).await?.copy(&mut std::io::stdout()).await };
        if let Err(error) = printed.await {
            failed = true;
            stdio::err!("task {}: {error:#}", task.number);
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A file of a task's sandbox.
async fn file(task: &Task, args: &Args, name: &str) -> Result<File> {
    place_file(&task.place.clone().unwrap_or_default(), &args.service.master, name).await
}

async fn look(service: &Service, job: &str) -> Result<View> {
    let document = service.get(&service::path(job, "")).await?;
    serde_json::from_value(document).context("the framework's answer")
}

/// The tasks whose logs are shown: each was launched at least once.
fn chosen(view: &View, args: &Args) -> Result<Vec<Task>> {
    for number in &args.tasks {
        match view.tasks.iter().find(|t| t.number == *number) {
            None => bail!("the job '{}' has no task {number}", args.job),
            Some(task) if task.place.is_none() => bail!("task {number} was not launched yet"),
            Some(_) => {}
        }
    }
    let wanted = |t: &&Task| t.place.is_some() && (args.tasks.is_empty() || args.tasks.contains(&t.number));
    let tasks: Vec<Task> = view.tasks.iter().filter(wanted).cloned().collect();
    match tasks.len() {
        0 => bail!("no task of '{}' was launched yet; `tepui job show {}` says why", args.job, args.job),
        n if n > TASKS_MAX => bail!("the job has {n} tasks: name those that you want to see"),
        _ => Ok(tasks),
    }
}

/// Prints until the task has ended.
async fn follow(log: &mut File, service: &Service, job: &str, number: u32) -> Result<ExitCode> {
    loop {
        let view = look(service, job).await?;
        let state = view.tasks.iter().find(|t| t.number == number).map_or("gone", |t| &t.state).to_owned();
        let goes_on = matches!(state.as_str(), "staging" | "running" | "unhealthy" | "unreachable" | "ending");
        log.copy(&mut std::io::stdout()).await?;
        if !goes_on {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(LOOK).await;
    }
}
