//! Apps and tasks as Marathon shows them.

use serde_json::{Map, Value, json};

use super::app::App;
use super::id;
use super::stamp::iso;
use crate::core::{JobView, State, TaskView};

/// An app: a service whose name is valid as an id in Marathon.
#[derive(Debug)]
pub(super) struct ListedApp {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) app: App,
    pub(super) view: JobView,
}

impl ListedApp {
    /// Returns the app of a job. Returns `None` for other kinds of jobs, and for services whose name is not valid in
    /// Marathon.
    pub(super) fn of(view: JobView) -> Option<ListedApp> {
        let job = view.versions.last()?.job.clone();
        let gone = view.summary.ended.is_some() || view.stopping;
        if view.summary.kind != crate::job::Kind::Service || gone {
            return None;
        }
        Some(ListedApp { name: job.name.clone(), id: id::app(&job.name)?, app: App::of(&job), view })
    }

    /// Returns the name of the current version.
    pub(super) fn version(&self) -> String {
        self.view.versions.last().map(|v| iso(v.since)).unwrap_or_default()
    }

    /// Returns the start time of a version's tasks, regardless of their count.
    pub(super) fn version_of(&self, number: u64) -> String {
        let version = self.view.versions.iter().find(|v| v.number == number);
        version.map_or_else(|| self.version(), |v| iso(v.since))
    }

    /// Returns the app with its figures; `tasks` and `failure` are embedded on request.
    pub(super) fn json(&self, deployments: &[String], tasks: bool, failure: bool) -> Value {
        let mut fields = self.app.shown();
        let count = |wanted: &dyn Fn(&TaskView) -> bool| self.view.tasks.iter().filter(|t| wanted(t)).count();
        let runs = |t: &TaskView| matches!(t.state, State::Running | State::Unhealthy | State::Ending);
        fields.insert("id".to_owned(), json!(self.id));
        fields.insert("version".to_owned(), json!(self.version()));
        let changed = self.version_of(self.view.summary.version);
        let since = json!({ "lastScalingAt": self.version(), "lastConfigChangeAt": changed });
        fields.insert("versionInfo".to_owned(), since);
        fields.insert("tasksStaged".to_owned(), json!(count(&|t| t.state == State::Staging)));
        fields.insert("tasksRunning".to_owned(), json!(count(&runs)));
        fields.insert("tasksHealthy".to_owned(), json!(count(&|t| t.healthy == Some(true))));
        fields.insert("tasksUnhealthy".to_owned(), json!(count(&|t| t.healthy == Some(false))));
        let deployments: Vec<Value> = deployments.iter().map(|id| json!({ "id": id })).collect();
        fields.insert("deployments".to_owned(), deployments.into());
        if tasks {
            fields.insert("tasks".to_owned(), self.tasks().into());
        }
        if failure && let Some(failure) = self.last_failure() {
            fields.insert("lastTaskFailure".to_owned(), failure);
        }
        Value::Object(fields)
    }

    /// Returns the tasks that are on agents.
    pub(super) fn tasks(&self) -> Vec<Value> {
        self.live().filter_map(|task| self.task(task)).collect()
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &TaskView> {
        self.view.tasks.iter().filter(|t| state(t.state).is_some())
    }

    pub(super) fn task(&self, task: &TaskView) -> Option<Value> {
        let place = task.place.as_ref()?;
        let mut fields = Map::new();
        let results: Vec<Value> = task.healthy.iter().map(|alive| health(&place.task_id, *alive)).collect();
        for (name, value) in [
            ("appId", json!(self.id)),
            ("id", json!(place.task_id)),
            ("slaveId", json!(place.agent_id)),
            ("host", json!(place.host)),
            ("ports", json!(place.ports)),
            ("servicePorts", json!(self.app.service_ports())),
            ("state", json!(state(task.state)?)),
            ("version", json!(self.version_of(task.version))),
            ("ipAddresses", json!([])),
            ("healthCheckResults", results.into()),
        ] {
            fields.insert(name.to_owned(), value);
        }
        for (name, instant) in [("stagedAt", task.launched), ("startedAt", task.running)] {
            if let Some(instant) = instant {
                fields.insert(name.to_owned(), json!(iso(instant)));
            }
        }
        Some(Value::Object(fields))
    }

    fn last_failure(&self) -> Option<Value> {
        let past = self.view.past.last()?;
        Some(json!({
            "appId": self.id,
            "taskId": past.place.task_id,
            "slaveId": past.place.agent_id,
            "host": past.place.host,
            "state": "TASK_FAILED",
            "message": past.message,
            "timestamp": iso(past.ended),
            "version": self.version_of(past.version),
        }))
    }
}

fn health(task_id: &str, alive: bool) -> Value {
    json!({ "alive": alive, "taskId": task_id, "instanceId": task_id, "consecutiveFailures": u32::from(!alive) })
}

/// Returns the name of a state in Mesos; `None` for tasks that are not on agents.
fn state(state: State) -> Option<&'static str> {
    match state {
        State::Staging => Some("TASK_STAGING"),
        State::Running | State::Unhealthy => Some("TASK_RUNNING"),
        State::Unreachable => Some("TASK_UNREACHABLE"),
        State::Ending => Some("TASK_KILLING"),
        _ => None,
    }
}
