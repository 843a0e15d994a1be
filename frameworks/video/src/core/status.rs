//! A picture of the framework at one instant, for tables, plots and the API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::query::State;
use crate::media::camera::FeedStatus;
use crate::pipeline::{Config, Notice, QueryKind};
use crate::schedule::{Goals, Objective, Policy, SampledStatus};

/// The framework.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The policy.
    pub policy: Policy,
    /// What is maximised.
    pub objective: Objective,
    /// Whether the master has taken the framework in.
    pub connected: bool,
    /// The framework's id, once it has one.
    pub framework: Option<String>,
    /// Cores that its tasks hold.
    pub cores: f64,
    /// Number of decisions.
    pub decisions: u64,
    /// Queries from before a restart whose kept state cannot be read, and why: their tasks are ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<String, String>,
    /// The queries, by name.
    pub queries: Vec<QueryStatus>,
}

impl Status {
    /// Whether all queries have ended.
    pub fn over(&self) -> bool {
        self.connected && self.queries.iter().all(|q| matches!(q.state, State::Done | State::Failed))
    }
}

/// One query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryStatus {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub kind: QueryKind,
    /// Where it stands.
    pub state: State,
    /// Why, if there is something to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Its goals.
    pub goals: Goals,
    /// Its configuration now.
    pub config: Option<Config>,
    /// Cores that it may use now.
    pub cores: f64,
    /// Cores that its task holds.
    pub reserved: f64,
    /// Cores that it used lately.
    pub used: f64,
    /// The quality of its configuration, by its profile.
    pub quality: f64,
    /// The mean of that over the stream so far.
    pub mean_quality: f64,
    /// The quality measured against the truth, if the truth is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_quality: Option<f64>,
    /// The quality against the golden configuration on samples of its stream, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledStatus>,
    /// How often its profile was made again, since samples did not agree with it.
    #[serde(default)]
    pub profiled_again: u32,
    /// Its lag in seconds.
    pub lag: f64,
    /// Mean of its lag over the goal, in seconds.
    pub mean_lag_over: f64,
    /// Measured demand over that of its profile.
    pub correction: f64,
    /// Seconds of the stream behind it.
    pub position: f64,
    /// Findings so far.
    pub found: u64,
    /// How often its worker was started.
    pub starts: u32,
    /// Its task now.
    pub task: Option<String>,
    /// The host that it is on.
    pub host: String,
    /// How its live source stands, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<FeedStatus>,
    /// What happened to its source and its view lately, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// How it went, a sample a second; the oldest are thinned out.
    pub history: Vec<Sample>,
}

/// One instant of a query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When, in seconds since 1970.
    pub at: f64,
    /// Cores.
    pub cores: f64,
    /// The configuration's quality.
    pub quality: f64,
    /// Lag in seconds.
    pub lag: f64,
}
