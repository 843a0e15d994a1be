//! The status of the framework at one instant, for tables, plots and the API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::query::State;
use crate::media::camera::FeedStatus;
use crate::pipeline::{Config, Notice, QueryKind};
use crate::schedule::{Goals, Objective, Policy, SampledStatus};

/// Status of the framework.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Policy that divides cores among the queries.
    pub policy: Policy,
    /// Objective that the policy maximizes.
    pub objective: Objective,
    /// Whether the framework is subscribed with the master.
    pub connected: bool,
    /// Id of the framework; `None` before the first subscription.
    pub framework: Option<String>,
    /// Number of cores that the framework's tasks hold.
    pub cores: f64,
    /// Number of decisions.
    pub decisions: u64,
    /// Queries whose persisted state cannot be read after a restart, with the reason; their tasks are killed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, String>,
    /// Status of each query, sorted by name.
    pub queries: Vec<QueryStatus>,
}

impl Status {
    /// Returns whether all queries have ended.
    pub fn all_ended(&self) -> bool {
        self.connected && self.queries.iter().all(|q| matches!(q.state, State::Done | State::Failed))
    }
}

/// Status of one query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryStatus {
    /// Name of the query.
    pub name: String,
    /// Kind of objects that the query counts.
    pub kind: QueryKind,
    /// State of the query.
    pub state: State,
    /// Reason for the state; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Goals for lag and quality.
    pub goals: Goals,
    /// Current configuration; `None` while the query is not running.
    pub config: Option<Config>,
    /// Number of cores that the worker may use now.
    pub cores: f64,
    /// Number of cores that the query's tasks hold.
    pub reserved: f64,
    /// Number of cores that the worker used recently.
    pub used: f64,
    /// Quality of the current configuration, according to the profile.
    pub quality: f64,
    /// Mean of the quality over the stream so far.
    pub mean_quality: f64,
    /// Quality measured against the ground truth; `None` if the truth is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_quality: Option<f64>,
    /// Quality against the golden configuration on samples of the stream; `None` before the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledStatus>,
    /// Number of times that the profile was made again because samples disagreed with it.
    #[serde(default)]
    pub profiled_again: u32,
    /// Lag in seconds.
    pub lag: f64,
    /// Mean excess of the lag over the goal, in seconds.
    pub mean_lag_over: f64,
    /// Measured demand divided by that of the profile.
    pub correction: f64,
    /// Position up to which the stream is processed, in seconds.
    pub position: f64,
    /// Number of findings so far.
    pub found: u64,
    /// Number of times that a task was launched for the query.
    pub starts: u32,
    /// Id of the current task.
    pub task: Option<String>,
    /// Host name of the agent that runs the task.
    pub host: String,
    /// State of the live source; `None` for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<FeedStatus>,
    /// Recent events of the source and of its view, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// History of the query, one sample a second; old samples are thinned out.
    pub history: Vec<Sample>,
}

/// A sample of a query's history.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time of the sample, in seconds since 1970.
    pub at: f64,
    /// Number of cores that the query could use.
    pub cores: f64,
    /// Quality of the configuration, according to the profile.
    pub quality: f64,
    /// Lag in seconds.
    pub lag: f64,
}
