//! The results of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fairness::Unfairness;
use super::stats::Summary;

/// What came out of one run: one scenario with one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Hash over all messages to schedulers: equal runs have equal ones.
    pub digest: String,
    /// How many events happened.
    pub events: u64,
    /// How much virtual time passed, in seconds.
    pub seconds: f64,
    /// Every job was done by then.
    pub done: bool,
    /// It ran on a real cluster: how. All times are the scenario's nevertheless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// By framework.
    pub frameworks: Vec<FrameworkOutcome>,
    /// By window.
    pub windows: Vec<WindowOutcome>,
    /// Over time.
    pub series: Series,
    /// Tasks on agents for a Gantt chart: agent, framework, from, to (seconds); the first ones only.
    #[serde(default)]
    pub strips: Vec<(u32, u32, f64, f64)>,
}

/// How a scenario ran on a real cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// How many seconds of the scenario passed in a real one.
    pub speed: f64,
    /// Tasks used a processor for all of their time.
    pub burn: bool,
    /// Number of agents.
    pub agents: usize,
    /// The master, if it was not the run's own.
    pub master: Option<String>,
    /// Calls of frameworks that were refused, and why the last one was.
    pub refused: (u64, String),
}

/// What came out for a framework. Times are in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrameworkOutcome {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// Tasks that were submitted to it.
    pub submitted: u64,
    /// Tasks that finished.
    pub finished: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Tasks that had not ended.
    pub left: u64,
    /// From submission to the update that the task runs.
    pub wait: Summary,
    /// From launch to the update that the task runs.
    pub start: Summary,
    /// From a job's submission to the end of its last task.
    pub job: Summary,
    /// The same for the jobs of each kind that has a name.
    #[serde(default)]
    pub kinds: Vec<(String, Summary)>,
    /// What a bundled framework measures of itself, by name, in the mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<(String, Option<f64>)>,
    /// What these measures are, by the same names, with units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_titles: BTreeMap<String, String>,
    /// Offers that it was made.
    pub offers_received: u64,
    /// Offers that it used.
    pub offers_accepted: u64,
    /// Offers that it declined.
    pub offers_declined: u64,
    /// Offers that were taken back.
    pub offers_rescinded: u64,
    /// How long it held an offer, in the mean.
    pub offer_held: f64,
}

/// What came out of a window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WindowOutcome {
    /// Its name.
    pub name: String,
    /// Seconds from the start.
    pub from: f64,
    /// Seconds from the start.
    pub to: f64,
    /// How unfair it was.
    pub unfairness: Unfairness,
    /// The part of the cluster in use, by resource, in the mean.
    pub utilisation: Vec<(String, f64)>,
    /// The part of the cluster that lay in unanswered offers: the largest of its resources, in the mean.
    pub offered: f64,
    /// Each framework's dominant share in use, in the mean.
    pub shares: Vec<f64>,
    /// Each framework's fair share, in the mean.
    pub targets: Vec<f64>,
}

/// What changed over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Seconds from the start.
    pub at: Vec<f64>,
    /// The part of the cluster in use: the largest of its resources.
    pub utilisation: Vec<f64>,
    /// The part of the cluster in unanswered offers.
    pub offered: Vec<f64>,
    /// The gap between the shares at that time; 0 without contention.
    #[serde(default)]
    pub gap: Vec<f64>,
    /// Jain's index at that time; 1 without contention.
    #[serde(default)]
    pub jain: Vec<f64>,
    /// By framework: the first ones only, if there are many.
    pub tracks: Vec<Track>,
}

/// One framework over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Track {
    /// Dominant share in use.
    pub share: Vec<f64>,
    /// Fair share.
    pub target: Vec<f64>,
    /// Tasks that wait.
    pub waiting: Vec<f64>,
    /// Dominant share held as offers.
    pub held: Vec<f64>,
    /// Offers declined so far.
    #[serde(default)]
    pub declined: Vec<f64>,
    /// What a bundled framework measures of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<OwnTrack>,
}

/// Something that a framework measures of itself, over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnTrack {
    /// What it is, with its unit.
    pub title: String,
    /// Its values; none where there is no such thing.
    pub values: Vec<Option<f64>>,
}
