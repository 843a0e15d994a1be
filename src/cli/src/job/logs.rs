//! `tepui job logs`: what tasks have written, from their sandboxes, through the agents' `/files` endpoints.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::model::{Task, View};
use super::service::{self, Service, ServiceArgs};
use crate::connect::MasterArgs;
use crate::read::model::Agents;

/// How much is read at once, in bytes.
const PIECE: u64 = 64 * 1024;
/// The most of a file that is printed as JSON, in bytes.
const JSON_MAX: usize = 16 << 20;
/// How often a file is looked at that is followed.
const LOOK: Duration = Duration::from_millis(300);
/// The most tasks whose logs are printed, unless they are named.
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
    #[arg(long, short)]
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
    let file = args.file.as_deref().unwrap_or(if args.error { "stderr" } else { "stdout" });
    let agents: Agents = args.service.master.read("/slaves").await?;
    if args.follow {
        let [task] = tasks.as_slice() else { bail!("--follow is for one task: name its number") };
        let log = Log::find(task, &agents, &args.service.master, file).await?;
        return follow(&log, &service, &args.job, task.number).await;
    }
    if args.service.json {
        let mut logs = Vec::new();
        for task in &tasks {
            let data = Log::find(task, &agents, &args.service.master, file).await?.all().await?;
            logs.push(serde_json::json!({ "task": task.number, "place": task.place, "file": file, "data": data }));
        }
        return crate::read::print(&serde_json::to_string_pretty(&logs)?);
    }
    let mut failed = false;
    for task in &tasks {
        if tasks.len() > 1 {
            let place = task.place.clone().unwrap_or_default();
            crate::read::print(&format!("==> {} on {} <==", place.task_id, place.host))?;
        }
        let told = async { Log::find(task, &agents, &args.service.master, file).await?.print_from(0).await };
        if let Err(error) = told.await {
            failed = true;
            stdio::err!("task {}: {error:#}", task.number);
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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

/// A file in a task's sandbox.
struct Log {
    agent: MasterArgs,
    path: String,
}

impl Log {
    async fn find(task: &Task, agents: &Agents, master: &MasterArgs, file: &str) -> Result<Log> {
        let place = task.place.clone().unwrap_or_default();
        let Some(agent) = agents.slaves.iter().find(|a| a.id == place.agent_id) else {
            bail!("the master knows no agent {}: what the task wrote cannot be read any more", place.agent_id);
        };
        let agent = MasterArgs { master: agent.address().to_owned(), ..master.clone() };
        let state: Value = agent.read("/state").await?;
        let Some(directory) = sandbox(&state, &place.task_id) else {
            bail!("the agent at {} knows nothing of {}: it ended before it had a sandbox", agent.master, place.task_id);
        };
        Ok(Log { agent, path: format!("{directory}/{file}") })
    }

    /// What is there from this byte on, or its beginning, and how many bytes of the file that is; empty at the end.
    async fn piece(&self, offset: u64) -> Result<(String, u64)> {
        let path = service::encode(&self.path);
        let url = format!("/files/read?path={path}&offset={offset}&length={PIECE}");
        let piece: Value = self.agent.read(&url).await?;
        Ok(whole(piece["data"].as_str().unwrap_or_default()))
    }

    /// All that is there, up to a limit.
    async fn all(&self) -> Result<String> {
        let (mut all, mut offset) = (String::new(), 0);
        while all.len() < JSON_MAX {
            let (data, bytes) = self.piece(offset).await?;
            if data.is_empty() {
                break;
            }
            offset += bytes;
            all.push_str(&data);
        }
        Ok(all)
    }

    /// Prints the file from this byte on. Returns the position of its end.
    async fn print_from(&self, mut offset: u64) -> Result<u64> {
        loop {
            let (data, bytes) = self.piece(offset).await?;
            if data.is_empty() {
                return Ok(offset);
            }
            offset += bytes;
            let mut out = std::io::stdout();
            if out.write_all(data.as_bytes()).and_then(|()| out.flush()).is_err() {
                // Nobody reads any more, as when piped into `head`.
                return Ok(offset);
            }
        }
    }
}

/// A piece of a file as far as its characters are whole, and how many bytes of the file it is. The agent puts U+FFFD
/// where the bytes are no text: at the end, most likely a character that the next piece has as a whole.
fn whole(data: &str) -> (String, u64) {
    let trimmed = data.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let data = if trimmed.is_empty() { data } else { trimmed };
    let replaced = data.matches(char::REPLACEMENT_CHARACTER).count();
    // Three bytes in the answer stand for one in the file.
    (data.to_owned(), (data.len() - 2 * replaced) as u64)
}

/// Prints until the task has ended.
async fn follow(log: &Log, service: &Service, job: &str, number: u32) -> Result<ExitCode> {
    let mut offset = 0;
    loop {
        let view = look(service, job).await?;
        let state = view.tasks.iter().find(|t| t.number == number).map_or("gone", |t| &t.state).to_owned();
        let goes_on = matches!(state.as_str(), "staging" | "running" | "unhealthy" | "unreachable" | "ending");
        offset = log.print_from(offset).await?;
        if !goes_on {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The sandbox of the executor that runs or ran a command task: both have the same id.
fn sandbox(state: &Value, task: &str) -> Option<String> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let both = |value: &Value, one: &str, other: &str| [list(value, one), list(value, other)].concat();
    let frameworks = both(state, "frameworks", "completed_frameworks");
    let executors = frameworks.iter().flat_map(|f| both(f, "executors", "completed_executors"));
    executors.filter(|e| e["id"] == task).find_map(|e| e["directory"].as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_a_piece_cuts_is_left_for_the_next() {
        assert_eq!(whole("abc\u{e9}"), ("abc\u{e9}".to_owned(), 5));
        assert_eq!(whole("abc\u{fffd}"), ("abc".to_owned(), 3));
        assert_eq!(whole("a\u{fffd}c"), ("a\u{fffd}c".to_owned(), 3));
        assert_eq!(whole("\u{fffd}"), ("\u{fffd}".to_owned(), 1), "what is no text at all is passed over");
        assert_eq!(whole(""), (String::new(), 0));
    }

    #[test]
    fn the_sandbox_is_found_among_running_and_completed() {
        let state = serde_json::json!({
            "frameworks": [{ "executors": [{ "id": "a", "directory": "/a" }] }],
            "completed_frameworks": [{ "completed_executors": [{ "id": "b", "directory": "/b" }] }],
        });
        assert_eq!(sandbox(&state, "a").as_deref(), Some("/a"));
        assert_eq!(sandbox(&state, "b").as_deref(), Some("/b"));
        assert_eq!(sandbox(&state, "c"), None);
    }
}
