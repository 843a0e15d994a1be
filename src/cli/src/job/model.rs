//! The fields of the framework's API that the commands show.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The summary of a job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) state: String,
    pub(crate) version: u64,
    pub(crate) count: u32,
    pub(crate) tasks: Counts,
    pub(crate) well: u32,
    pub(crate) need: Need,
    pub(crate) age: f64,
}

/// The numbers of tasks by state.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Counts {
    pub(crate) waiting: u32,
    pub(crate) live: u32,
    pub(crate) finished: u32,
    pub(crate) failed: u32,
    /// Number of tasks that were left out, for jobs of stages.
    pub(crate) dropped: u32,
}

/// The resources that a task needs.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Need {
    pub(crate) cpus: f64,
    pub(crate) mem: f64,
    pub(crate) disk: f64,
    pub(crate) gpus: f64,
    pub(crate) ports: f64,
}

/// The details of a job, from `/v1/jobs/{name}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct View {
    pub(crate) summary: Summary,
    pub(crate) versions: Vec<Version>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) past: Vec<Value>,
    pub(crate) why: Vec<String>,
    pub(crate) impossible: Option<Impossible>,
    pub(crate) sizing: Option<Sizing>,
}

/// The reason why none of the agents that the framework knows can ever run a job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Impossible {
    pub(crate) reason: String,
    /// Number of these agents.
    pub(crate) agents: usize,
}

/// The resources that new launches request, if the framework sizes them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sizing {
    pub(crate) requested: Need,
    pub(crate) applied: Need,
    pub(crate) why: Vec<String>,
}

/// A version of a job, with its definition.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Version {
    pub(crate) job: Value,
}

/// A task of a job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Task {
    pub(crate) number: u32,
    pub(crate) index: u32,
    pub(crate) version: u64,
    pub(crate) state: String,
    pub(crate) place: Option<Place>,
    pub(crate) healthy: Option<bool>,
    pub(crate) attempts: u32,
    pub(crate) running: Option<f64>,
    pub(crate) message: String,
    /// Resources with which the task was launched.
    pub(crate) given: Option<Need>,
}

/// The place of a task: its agent, its host and its ports.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Place {
    pub(crate) task_id: String,
    pub(crate) agent_id: String,
    pub(crate) host: String,
    /// Address of the agent's API as `host:port`; empty if the framework does not know it.
    pub(crate) agent: String,
    pub(crate) ports: Vec<u64>,
}
