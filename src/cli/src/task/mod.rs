//! `tepui task`: inspects running tasks on their agents.
//!
//! The master names a task's agent; everything else comes from the agent's public API.

mod attach;
mod exec;
mod input;
mod keys;
mod terminal;
mod top;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Subcommand;
use serde::Deserialize;
use serde_json::Value;

use crate::connect::MasterArgs;
use crate::read::model::Agents;

const JSON: &str = "application/json";
/// The agent's API.
const PATH: &str = "/api/v1";

/// Commands about running tasks.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look at, and type into, the terminal of a running task
    Attach(attach::Args),
    /// Run a command inside a running task
    Exec(exec::Args),
    /// Show what running tasks use, the busiest first
    Top(top::Args),
}

impl Command {
    /// Carries the command out.
    ///
    /// # Errors
    /// No master or agent answers, or there is no such task.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Command::Attach(args) => attach::run(&args),
            Command::Exec(args) => exec::run(&args),
            Command::Top(args) => top::run(&args),
        }
    }
}

/// A running task, and where it is.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    id: String,
    framework: String,
    /// Its container, as messages write it.
    container: Value,
    /// `host:port` of its agent.
    agent: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Frameworks {
    frameworks: Vec<Framework>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Framework {
    id: String,
    name: String,
    tasks: Vec<Task>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Task {
    id: String,
    framework_id: String,
    slave_id: String,
    state: String,
    statuses: Vec<Value>,
}

/// Finds the running task whose id begins with a text, or is it.
async fn find(master: &MasterArgs, text: &str, framework: Option<&str>) -> Result<Found> {
    let (frameworks, agents): (Frameworks, Agents) = (master.read("/frameworks").await?, master.read("/slaves").await?);
    among(&frameworks, &agents, text, framework)
}

fn among(frameworks: &Frameworks, agents: &Agents, text: &str, framework: Option<&str>) -> Result<Found> {
    let wanted = |known: &&Framework| framework.is_none_or(|name| known.id == name || known.name == name);
    let all: Vec<&Task> = frameworks.frameworks.iter().filter(wanted).flat_map(|known| &known.tasks).collect();
    let exact: Vec<&&Task> = all.iter().filter(|task| task.id == text).collect();
    let found = if exact.is_empty() { all.iter().filter(|task| task.id.starts_with(text)).collect() } else { exact };
    let task = match found[..] {
        [] => bail!("no running task has an id that begins with '{text}'; see: tepui tasks"),
        [task] => task,
        _ => {
            bail!("{} running tasks have an id that begins with '{text}'; give more of it, or --framework", found.len())
        }
    };
    let mut containers = task.statuses.iter().rev().map(|status| &status["container_status"]["container_id"]);
    let Some(container) = containers.find(|id| id.is_object()) else {
        bail!(
            "task '{}' is {} and has no container yet",
            task.id,
            task.state.trim_start_matches("TASK_").to_lowercase()
        );
    };
    let agent = agents.slaves.iter().find(|agent| agent.id == task.slave_id);
    let Some(agent) = agent.map(|agent| agent.address().to_owned()) else {
        bail!("the agent of task '{}' is not connected", task.id);
    };
    Ok(Found { id: task.id.clone(), framework: task.framework_id.clone(), container: container.clone(), agent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(text: &str, framework: Option<&str>) -> Result<Found, String> {
        let status = json!({"container_status": {"container_id": {"value": "c"}}});
        let task = |id: &str, statuses: Value| json!({"id": id, "slave_id": "S0", "state": "TASK_RUNNING", "statuses": statuses});
        let frameworks = json!({"frameworks": [
            {"id": "f1", "name": "one", "tasks": [task("web.1", json!([status])), task("web.2", json!([{}, status]))]},
            {"id": "f2", "name": "two", "tasks": [task("web.1", json!([status])), task("new", json!([]))]},
        ]});
        let agents = json!({"slaves": [{"id": "S0", "pid": "slave(1)@127.0.0.1:5051"}]});
        let (frameworks, agents) =
            (serde_json::from_value(frameworks).unwrap(), serde_json::from_value(agents).unwrap());
        among(&frameworks, &agents, text, framework).map_err(|error| error.to_string())
    }

    #[test]
    fn tasks_by_the_beginning_of_their_ids() {
        let task = found("web.2", None).unwrap();
        assert_eq!((task.container, task.agent.as_str()), (json!({"value": "c"}), "127.0.0.1:5051"));
        assert_eq!(found("web.1", Some("two")).unwrap().id, "web.1");
        for (text, said) in [("web", "3 running tasks"), ("db", "no running task"), ("ne", "no container yet")] {
            assert!(found(text, None).unwrap_err().contains(said), "{text}");
        }
    }
}
