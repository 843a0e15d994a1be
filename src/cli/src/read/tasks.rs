//! `tepui tasks`: lists tasks.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap_complete::ArgValueCompleter;
use serde_json::Value;

use super::model::{Agents, Framework, Frameworks, Task};
use super::table::{age, number, table, with_state};
use super::{ListArgs, ListOutput, now};
use crate::complete;

/// Flags of `tepui tasks`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    list: ListArgs,
    /// Also list those that have ended
    #[arg(long, short)]
    all: bool,
    /// Only those of this framework, by its id or name
    #[arg(long, short, value_name = "FRAMEWORK", add = ArgValueCompleter::new(complete::frameworks))]
    framework: Option<String>,
}

/// Lists tasks.
///
/// # Errors
/// The master cannot be read.
pub fn run(args: &Args) -> Result<ExitCode> {
    args.list.show(async || {
        let master = &args.list.master;
        let document: Value = master.read("/frameworks").await?;
        known(args, &document)?;
        if args.list.wants_document() {
            return Ok(ListOutput::Document(json(args, &document).into()));
        }
        let frameworks = serde_json::from_value(document).context("the master's list of frameworks")?;
        let agents = master.read("/slaves").await?;
        Ok(ListOutput::Text(show(args, &frameworks, &agents, now().as_secs_f64())))
    })
}

/// Checks that the framework that the flags name exists.
fn known(args: &Args, document: &Value) -> Result<()> {
    let Some(wanted) = &args.framework else { return Ok(()) };
    let is_there = |list: &str| {
        document[list].as_array().into_iter().flatten().any(|known| known["id"] == *wanted || known["name"] == *wanted)
    };
    match is_there("frameworks") || is_there("completed_frameworks") {
        true => Ok(()),
        false => bail!("no framework has the id or the name '{wanted}': `tepui frameworks` lists them"),
    }
}

fn wanted(args: &Args, id: &str, name: &str) -> bool {
    args.framework.as_deref().is_none_or(|f| f == id || f == name)
}

/// Returns the tasks as the master writes them.
fn json(args: &Args, document: &Value) -> Vec<Value> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut frameworks = list(document, "frameworks");
    let mut kinds = vec!["tasks", "unreachable_tasks"];
    if args.all {
        frameworks.extend(list(document, "completed_frameworks"));
        kinds.push("completed_tasks");
    }
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    frameworks.retain(|f| wanted(args, &text(f, "id"), &text(f, "name")));
    frameworks.iter().flat_map(|f| kinds.iter().flat_map(|kind| list(f, kind))).collect()
}

fn show(args: &Args, frameworks: &Frameworks, agents: &Agents, now: f64) -> String {
    let hosts = agents.names();
    let mut table = table(&["ID", "NAME", "FRAMEWORK", "HOST", "STATE", ">SINCE", ">CPUS", ">MEM"]);
    let completed = args.all.then_some(&frameworks.completed_frameworks);
    let mut count = 0;
    for framework in frameworks.frameworks.iter().chain(completed.into_iter().flatten()) {
        if !wanted(args, &framework.id, &framework.name) {
            continue;
        }
        for task in tasks_of(framework, args.all) {
            let since = task.statuses.last().map_or(f64::NAN, |s| now - s.timestamp);
            let row = [
                task.id.clone(),
                task.name.clone(),
                framework.name.clone(),
                hosts.get(task.slave_id.as_str()).unwrap_or(&task.slave_id).clone(),
                task.state.trim_start_matches("TASK_").to_lowercase(),
                age(since),
                number(task.resources.get("cpus")),
                number(task.resources.get("mem")),
            ];
            table.add_row(with_state(row, 4));
            count += 1;
        }
    }
    match (count, args.all) {
        (0, false) if args.framework.is_some() => {
            "no task of it is running; --all also lists those that have ended".to_owned()
        }
        (0, false) => "no tasks are running; --all also lists those that have ended".to_owned(),
        (0, true) => "no tasks".to_owned(),
        _ => table.trim_fmt(),
    }
}

fn tasks_of(framework: &Framework, all: bool) -> impl Iterator<Item = &Task> {
    let ended = all.then_some(&framework.completed_tasks);
    framework.tasks.iter().chain(&framework.unreachable_tasks).chain(ended.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    const DOCUMENT: &str = r#"{"frameworks":[{"id":"F","name":"batch","tasks":[{"id":"t1","name":"one","slave_id":"S0",
        "state":"TASK_RUNNING","resources":{"cpus":0.5,"mem":64.0,"disk":0.0},"statuses":[{"timestamp":90.0}]}],
        "completed_tasks":[{"id":"t0","state":"TASK_FINISHED"}]}],"completed_frameworks":[{"id":"G","name":"old",
        "completed_tasks":[{"id":"t9"}]}]}"#;

    fn lines(flags: &[&str]) -> Vec<String> {
        let args = Line::parse_from([&["tasks"], flags].concat()).args;
        let frameworks = serde_json::from_str(DOCUMENT).unwrap();
        let agents = serde_json::from_str(r#"{"slaves":[{"id":"S0","hostname":"host"}]}"#).unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        show(&args, &frameworks, &agents, 100.0).lines().skip(1).map(words).collect()
    }

    #[test]
    fn running_all_and_of_one_framework() {
        assert_eq!(lines(&[]), ["t1 one batch host running 10.0 s 0.5 64"]);
        assert_eq!(lines(&["--all"]).len(), 3);
        assert_eq!(lines(&["--all", "--framework=old"]), ["t9 old - 0 0"]);
        assert_eq!(lines(&["--framework", "other"]), [""; 0]);
    }

    #[test]
    fn json_is_what_the_master_wrote() {
        let args = Line::parse_from(["tasks", "--all", "--framework=F"]).args;
        let tasks = json(&args, &serde_json::from_str(DOCUMENT).unwrap());
        assert_eq!(tasks.len(), 2);
        assert_eq!(tasks[0]["resources"]["mem"], 64.0);
    }
}
