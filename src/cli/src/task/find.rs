//! Finds the task that a command line names by the beginning of its id.

use anyhow::{Result, bail};
use clap_complete::ArgValueCompleter;
use serde::Deserialize;
use serde_json::Value;

use crate::complete;
use crate::connect::MasterArgs;
use crate::read::model::Agents;

/// Maximum number of ids that an error lists.
const LISTED: usize = 5;

/// Flags of every command about one task.
#[derive(Debug, clap::Args)]
pub struct TaskArgs {
    #[command(flatten)]
    pub(super) master: MasterArgs,
    /// Only among the tasks of this framework, by its id or name
    #[arg(long, value_name = "FRAMEWORK", add = ArgValueCompleter::new(complete::frameworks))]
    pub(super) framework: Option<String>,
    /// The task, by its id or the beginning of it
    #[arg(add = ArgValueCompleter::new(complete::tasks))]
    pub(super) task: String,
}

/// The tasks among which a command searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchScope {
    /// Tasks that have not ended.
    Running,
    /// All tasks that the master remembers, including those that have ended.
    All,
}

/// A task, and the place where it is or was.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(super) struct FoundTask {
    pub(super) id: String,
    #[serde(rename = "framework_id")]
    pub(super) framework: String,
    slave_id: String,
    state: String,
    statuses: Vec<Value>,
    /// Address of the task's agent, as `host:port`; `None` if the agent is not connected.
    #[serde(skip)]
    agent: Option<String>,
}

impl FoundTask {
    /// Returns the address of the task's agent.
    ///
    /// # Errors
    /// The agent is not connected.
    pub(super) fn agent(&self) -> Result<&str> {
        match &self.agent {
            Some(address) => Ok(address),
            None => bail!("agent {} of task '{}' is not connected", self.slave_id, self.id),
        }
    }

    /// Returns the id of the task's container, in the form of calls.
    ///
    /// # Errors
    /// The task has no container yet.
    pub(super) fn container(&self) -> Result<&Value> {
        let mut containers = self.statuses.iter().rev().map(|status| &status["container_status"]["container_id"]);
        match containers.find(|id| id.is_object()) {
            Some(container) => Ok(container),
            None => bail!("task '{}' is {} and has no container yet", self.id, self.state()),
        }
    }

    /// Returns the task's state in lower case, such as `running`.
    pub(super) fn state(&self) -> String {
        self.state.trim_start_matches("TASK_").to_lowercase()
    }

    /// Returns whether the task can still run and write.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.state().as_str(), "staging" | "starting" | "running" | "killing" | "unreachable")
    }

    fn changed(&self) -> f64 {
        self.statuses.last().and_then(|status| status["timestamp"].as_f64()).unwrap_or(0.0)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Frameworks {
    frameworks: Vec<Framework>,
    completed_frameworks: Vec<Framework>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Framework {
    id: String,
    name: String,
    tasks: Vec<FoundTask>,
    unreachable_tasks: Vec<FoundTask>,
    completed_tasks: Vec<FoundTask>,
}

/// Finds the task whose id is a text, or begins with it.
///
/// # Errors
/// No task has such an id, or several have.
pub(super) async fn find(args: &TaskArgs, scope: SearchScope) -> Result<FoundTask> {
    let master = &args.master;
    let (frameworks, agents): (Frameworks, Agents) = (master.read("/frameworks").await?, master.read("/slaves").await?);
    let mut task = choose(frameworks, &args.task, args.framework.as_deref(), scope)?;
    let agent = agents.slaves.into_iter().find(|agent| agent.id == task.slave_id);
    task.agent = agent.map(|agent| agent.address().to_owned());
    Ok(task)
}

fn choose(frameworks: Frameworks, text: &str, framework: Option<&str>, scope: SearchScope) -> Result<FoundTask> {
    let Frameworks { mut frameworks, completed_frameworks } = frameworks;
    if scope == SearchScope::All {
        frameworks.extend(completed_frameworks);
    }
    frameworks.retain(|known| framework.is_none_or(|name| known.id == name || known.name == name));
    if let (true, Some(framework)) = (frameworks.is_empty(), framework) {
        bail!("no framework has the id or the name '{framework}'; see: tepui frameworks");
    }
    let tasks_of = |known: Framework| {
        let ended = if scope == SearchScope::All { known.completed_tasks } else { Vec::new() };
        known.tasks.into_iter().chain(known.unreachable_tasks).chain(ended)
    };
    let mut found: Vec<FoundTask> = frameworks.into_iter().flat_map(tasks_of).collect();
    found.retain(|task| task.id.starts_with(text));
    if found.iter().any(|task| task.id == text) {
        found.retain(|task| task.id == text);
    }
    let mut ids: Vec<&str> = found.iter().map(|task| task.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let live = found.iter().filter(|task| task.is_live()).count();
    match (ids.len(), live) {
        (0, _) if scope == SearchScope::Running => {
            bail!("no running task has an id that begins with '{text}'; see: tepui tasks")
        }
        (0, _) => bail!("no task has an id that begins with '{text}'; see: tepui tasks --all"),
        // If several tasks had the id one after another, the last one is meant.
        (1, 0 | 1) => {
            let last = |task: &FoundTask| (task.is_live(), task.changed());
            let newest =
                found.into_iter().max_by(|a, b| last(a).partial_cmp(&last(b)).unwrap_or(std::cmp::Ordering::Equal));
            Ok(newest.unwrap_or_default())
        }
        (1, live) => bail!("{live} running tasks have the id '{}'; give --framework", ids[0]),
        (count, _) => {
            let more = if count > LISTED { ", ..." } else { "" };
            ids.truncate(LISTED);
            bail!("the ids of {count} tasks begin with '{text}': {}{more}", ids.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(text: &str, framework: Option<&str>, scope: SearchScope) -> Result<FoundTask, String> {
        let status = |at: f64| json!({"timestamp": at, "container_status": {"container_id": {"value": "c"}}});
        let task = |id: &str, state: &str, statuses: Value| json!({"id": id, "slave_id": "S0", "state": state, "statuses": statuses});
        let run = "TASK_RUNNING";
        let frameworks = json!({"frameworks": [
            {"id": "f1", "name": "one", "tasks": [task("web.1", run, json!([status(1.0)])), task("web.2", run, json!([{}, status(1.0)]))],
             "completed_tasks": [task("old", "TASK_FAILED", json!([status(3.0)])), task("web.2", "TASK_LOST", json!([status(9.0)]))]},
            {"id": "f2", "name": "two", "tasks": [task("web.1", run, json!([status(1.0)])), task("new", run, json!([]))]},
        ], "completed_frameworks": [{"id": "f3", "completed_tasks": [task("old", "TASK_FINISHED", json!([status(4.0)]))]}]});
        choose(serde_json::from_value(frameworks).unwrap(), text, framework, scope).map_err(|error| error.to_string())
    }

    #[test]
    fn running_tasks_by_the_beginning_of_their_ids() {
        let task = found("web.2", None, SearchScope::Running).unwrap();
        assert_eq!(task.container().unwrap(), &json!({"value": "c"}));
        assert!(task.agent().unwrap_err().to_string().contains("agent S0 of task 'web.2' is not connected"));
        assert_eq!(found("web.1", Some("two"), SearchScope::Running).unwrap().id, "web.1");
        let error = found("ne", None, SearchScope::Running).unwrap().container().unwrap_err().to_string();
        assert!(error.contains("no container yet"), "{error}");
        for (text, framework, message) in [
            ("web", None, "web.1, web.2"),
            ("web.1", None, "2 running tasks have the id 'web.1'"),
            ("db", None, "no running task"),
            ("old", None, "no running task"),
            ("web.1", Some("three"), "no framework has the id or the name 'three'"),
        ] {
            let error = found(text, framework, SearchScope::Running).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn tasks_that_have_ended_and_the_last_of_one_id() {
        assert_eq!(found("old", None, SearchScope::All).unwrap().state(), "finished");
        assert_eq!(found("old", Some("one"), SearchScope::All).unwrap().state(), "failed");
        assert_eq!(found("web.2", None, SearchScope::All).unwrap().state(), "running");
        assert!(found("gone", None, SearchScope::All).unwrap_err().contains("tepui tasks --all"));
    }
}
