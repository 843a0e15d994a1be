//! `tepui job list` and `tepui job show`: tables of jobs and tasks.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

use super::ServiceArgs;
use super::model::{Need, Summary, Task, View};
use crate::connect::MasterArgs;
use crate::job_list::reasons;
use crate::read::table::{age, number, table};
use crate::read::{now, print};
use crate::service::{self, Service};
use crate::waiting::WaitExplanation;

/// Number of tasks of a job that are shown by default.
const TASKS_SHOWN: usize = 40;
/// Maximum length of a message in a table, in characters; of a longer one the end is shown.
const MESSAGE_SHOWN: usize = 60;

/// Flags of `tepui job show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    service: ServiceArgs,
    /// The job's name
    job: String,
    /// Show all tasks, however many
    #[arg(long, short)]
    all: bool,
}

/// Formats jobs as a table.
pub(crate) fn jobs_table(jobs: &[Summary]) -> String {
    let titles =
        ["JOB", "KIND", "STATE", ">VERSION", ">TASKS", ">WAITING", ">RUNNING", ">DONE", ">FAILED", "NEEDS", ">AGE"];
    let mut table = table(&titles);
    for job in jobs {
        let version = if job.kind == "service" { job.version.to_string() } else { String::new() };
        let counts = &job.tasks;
        let running =
            if job.well == counts.live { job.well.to_string() } else { format!("{}/{}", job.well, counts.live) };
        table.add_row([
            job.name.clone(),
            job.kind.clone(),
            job.state.clone(),
            version,
            job.count.to_string(),
            counts.waiting.to_string(),
            running,
            counts.finished.to_string(),
            counts.failed.to_string(),
            needs(&job.need),
            age(job.age),
        ]);
    }
    table.trim_fmt()
}

/// Formats the resources that a task needs.
fn needs(need: &Need) -> String {
    let parts =
        [("cpus", need.cpus), ("mem", need.mem), ("disk", need.disk), ("gpus", need.gpus), ("ports", need.ports)];
    let some = parts.iter().filter(|(_, amount)| *amount > 0.0);
    some.map(|(name, amount)| format!("{name}:{}", number(*amount))).collect::<Vec<_>>().join(" ")
}

pub(super) async fn show(args: &ShowArgs) -> Result<ExitCode> {
    let service = args.service.find().await?;
    let document = service.get(&service::path(&args.job, "")).await?;
    if args.service.json {
        return print(&serde_json::to_string_pretty(&document)?);
    }
    let mut view: View = serde_json::from_value(document).context("the framework's answer")?;
    if view.summary.tasks.waiting > 0
        && let Some(waiting) = waiting(&service, &args.service.master, &view.summary.need).await
    {
        view.why.extend(waiting.reasons.iter().map(|reason| format!("master: {reason}")));
    }
    print(&show_text(&view, args.all, now().as_secs_f64()))
}

/// Asks the master why it makes no offers that are large enough; `None` if it cannot be asked.
pub(super) async fn waiting(service: &Service, master: &MasterArgs, need: &Need) -> Option<WaitExplanation> {
    let status = service.get("/v1/status").await.ok()?;
    let amounts = [("cpus", need.cpus), ("mem", need.mem), ("disk", need.disk), ("gpus", need.gpus)];
    let some = amounts.iter().filter(|(_, amount)| *amount > 0.0);
    let need = some.map(|(name, amount)| format!("{name}:{amount}")).collect::<Vec<String>>().join(";");
    WaitExplanation::ask(master, status["framework_id"].as_str()?, &need).await.ok()
}

fn show_text(view: &View, all: bool, now: f64) -> String {
    let mut text = jobs_table(std::slice::from_ref(&view.summary));
    text.push('\n');
    if let Some(run) = view.versions.last().and_then(|v| run(&v.job)) {
        text.push_str(&format!("\nruns: {run}\n"));
    }
    text.push_str(&reasons(&view.why));
    if let Some(sizing) = &view.sizing {
        text.push_str(&format!("requested: {}; launched with: {}\n", needs(&sizing.requested), needs(&sizing.applied)));
        sizing.why.iter().for_each(|why| text.push_str(&format!("sizing: {why}\n")));
    }
    let shown: Vec<&Task> = view.tasks.iter().take(if all { usize::MAX } else { TASKS_SHOWN }).collect();
    if !shown.is_empty() {
        text.push_str(&format!("\n{}\n", tasks_table(&shown, view.sizing.is_some(), now)));
    }
    if shown.len() < view.tasks.len() {
        text.push_str(&format!("and {} more; --all shows them\n", view.tasks.len() - shown.len()));
    }
    for past in view.past.iter().rev().take(5) {
        let part = |key: &str| past[key].as_str().unwrap_or_default().to_owned();
        let ago = age(now - past["ended"].as_f64().unwrap_or(f64::NAN));
        text.push_str(&format!("ended {ago} ago: {} on {}: {}\n", part("task_id"), part("host"), part("message")));
    }
    text.trim_end().to_owned()
}

fn run(job: &Value) -> Option<String> {
    let run = &job["run"];
    if let Some(command) = run["command"].as_str() {
        return Some(command.to_owned());
    }
    let words = run["program"].as_array()?;
    Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
}

fn tasks_table(tasks: &[&Task], is_sized: bool, now: f64) -> String {
    let mut titles = vec![">TASK", "STATE", ">VERSION", ">TRIES", "HEALTHY", "HOST", "PORTS", ">RUNNING", "MESSAGE"];
    if is_sized {
        titles.insert(8, "RESOURCES");
    }
    let mut table = table(&titles);
    for task in tasks {
        let place = task.place.clone().unwrap_or_default();
        let ports: Vec<String> = place.ports.iter().map(u64::to_string).collect();
        let healthy = task.healthy.map_or("", |healthy| if healthy { "yes" } else { "no" });
        let mut row = vec![
            if task.index == task.number {
                task.number.to_string()
            } else {
                format!("{} ({})", task.number, task.index)
            },
            task.state.clone(),
            task.version.to_string(),
            task.attempts.to_string(),
            healthy.to_owned(),
            place.host,
            ports.join(","),
            task.running.map_or_else(String::new, |since| age((now - since).max(0.0))),
            decisive(&task.message),
        ];
        if is_sized {
            row.insert(8, task.given.as_ref().map_or_else(String::new, needs));
        }
        table.add_row(row);
    }
    table.trim_fmt()
}

/// Returns the end of a message, which has the cause, if the whole message is too long for a table.
fn decisive(message: &str) -> String {
    let length = message.chars().count();
    match length > MESSAGE_SHOWN {
        true => format!("...{}", message.chars().skip(length - MESSAGE_SHOWN + 3).collect::<String>()),
        false => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_waiting_job_says_why() {
        let view: View = serde_json::from_value(json!({
            "summary": { "name": "a", "kind": "array", "state": "waiting", "count": 2, "tasks": { "waiting": 2 },
                         "need": { "cpus": 64.0, "mem": 32.0 }, "age": 61.0 },
            "versions": [{ "job": { "run": { "program": ["sleep", "3"] } } }],
            "tasks": [{ "number": 0, "state": "waiting", "place": null, "version": 1, "attempts": 0 },
                      { "number": 1, "index": 1, "state": "running", "version": 1, "running": 10.0,
                        "place": { "host": "h", "ports": [31000] } }],
            "why": ["warning: a task needs cpus 64", "1 agent: too little cpus"],
        }))
        .unwrap();
        let text = show_text(&view, false, 12.5);
        let why = "reasons:\n  warning: a task needs cpus 64\n  1 agent: too little cpus\n";
        for part in ["runs: sleep 3", why, "cpus:64 mem:32", "1 min", "31000", "2.5 s"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn long_messages_keep_their_end() {
        assert_eq!(decisive("short"), "short");
        let shown = decisive(&format!("{}: no such image", "x".repeat(500)));
        assert!(shown.starts_with("...x") && shown.ends_with(": no such image"), "{shown}");
        assert_eq!(shown.chars().count(), MESSAGE_SHOWN);
    }
}
