//! `tepui dag logs`: what tasks of a stage have written, from their sandboxes, through the agents.

use std::process::ExitCode;

use anyhow::{Result, bail};

use super::ServiceArgs;
use super::model::{Task, tasks};
use crate::job::files::place_file;

/// Maximum length of a file that is printed as JSON, in bytes.
const JSON_MAX: usize = 16 << 20;
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
    /// Standard error instead of standard output
    #[arg(long, short = 'e', visible_alias = "stderr")]
    error: bool,
    /// Another file of the sandbox, such as output/NAME
    #[arg(long, value_name = "PATH", conflicts_with = "error")]
    file: Option<String>,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode> {
    let service = args.service.find().await?;
    let all = tasks(&service, &args.job, &args.stage, usize::MAX).await?;
    let chosen = chosen(all, args)?;
    let name = args.file.as_deref().unwrap_or(if args.error { "stderr" } else { "stdout" });
    if args.service.json {
        let mut logs = Vec::new();
        for task in &chosen {
            let place = task.place.clone().unwrap_or_default();
            let data = place_file(&place, &args.service.master, name).await?.rest(JSON_MAX).await?;
            logs.push(serde_json::json!({ "task": task.number, "place": place, "file": name, "data": data }));
        }
        return crate::read::print(&serde_json::to_string_pretty(&logs)?);
    }
    let mut failed = false;
    for task in &chosen {
        let place = task.place.clone().unwrap_or_default();
        if chosen.len() > 1 {
            crate::read::print(&format!("==> {} on {} <==", place.task_id, place.host))?;
        }
        let printed =
            async { place_file(&place, &args.service.master, name).await?.copy(&mut std::io::stdout()).await };
        if let Err(error) = printed.await {
            failed = true;
            stdio::err!("task {}: {error:#}", task.number);
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The tasks whose logs are shown: each was launched at least once.
fn chosen(all: Vec<Task>, args: &Args) -> Result<Vec<Task>> {
    for number in &args.tasks {
        if !all.iter().any(|task| task.number == *number && task.place.is_some()) {
            bail!("the stage '{}' has no task {number} that was launched", args.stage);
        }
    }
    let wanted = |task: &Task| task.place.is_some() && (args.tasks.is_empty() || args.tasks.contains(&task.number));
    let tasks: Vec<Task> = all.into_iter().filter(wanted).collect();
    match tasks.len() {
        0 => bail!("no task of '{}' was launched yet; `tepui dag show {}` says why", args.stage, args.job),
        n if n > TASKS_MAX => bail!("the stage has {n} tasks: name those that you want to see"),
        _ => Ok(tasks),
    }
}
