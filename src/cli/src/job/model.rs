//! What the commands read of the framework's API: the fields that they show.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A job in short.
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

/// Tasks by what they do.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Counts {
    pub(crate) waiting: u32,
    pub(crate) live: u32,
    pub(crate) finished: u32,
    pub(crate) failed: u32,
    /// Left out, in jobs of stages.
    pub(crate) dropped: u32,
}

/// What a task needs.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Need {
    pub(crate) cpus: f64,
    pub(crate) mem: f64,
    pub(crate) disk: f64,
    pub(crate) gpus: f64,
    pub(crate) ports: f64,
}

/// `/v1/jobs/{name}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct View {
    pub(crate) summary: Summary,
    pub(crate) versions: Vec<Version>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) past: Vec<Value>,
    pub(crate) why: Vec<String>,
    pub(crate) unsatisfied: Option<Unsatisfied>,
    pub(crate) sizing: Option<Sizing>,
}

/// The constraint that no agent satisfies of those that have made offers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Unsatisfied {
    pub(crate) constraint: String,
    pub(crate) agents: usize,
}

/// What new launches ask for, where the framework sizes them.
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

/// A task.
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
    /// What it was given.
    pub(crate) given: Option<Need>,
}

/// Where a task is or was.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Place {
    pub(crate) task_id: String,
    pub(crate) agent_id: String,
    pub(crate) host: String,
    /// Its agent's API as `host:port`; empty if the framework does not know it.
    pub(crate) agent: String,
    pub(crate) ports: Vec<u64>,
}
