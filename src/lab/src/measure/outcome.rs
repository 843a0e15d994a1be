//! The results of a run, as they are stored and reported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fairness::Unfairness;
use super::stats::Summary;

/// The results of one run: one scenario with one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the run.
    pub seed: u64,
    /// Hash over all messages to schedulers. Equal runs have equal digests.
    pub digest: String,
    /// Number of events in the run.
    pub events: u64,
    /// Virtual time that passed, in seconds.
    pub seconds: f64,
    /// Whether every job was done at the end of the run.
    pub done: bool,
    /// How the scenario ran on a real cluster; `None` for modelled worlds. All times are in the scenario's time in both
    /// cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// Results of each framework.
    pub frameworks: Vec<FrameworkOutcome>,
    /// Results of each window.
    pub windows: Vec<WindowOutcome>,
    /// Values over time, one for each sample.
    pub series: Series,
    /// Tasks on agents for a Gantt chart: agent, framework, start and end in seconds. Only the first tasks are
    /// recorded.
    #[serde(default)]
    pub strips: Vec<(u32, u32, f64, f64)>,
}

/// How a scenario ran on a real cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// Seconds of the scenario that passed in a real second.
    pub speed: f64,
    /// Whether tasks used a processor for all of their time.
    pub burn: bool,
    /// Number of agents in the cluster.
    pub agents: usize,
    /// Address of the master; `None` if a cluster was started for the run.
    pub master: Option<String>,
    /// Number of calls of frameworks that were refused, and the reason of the last refusal.
    pub refused: (u64, String),
}

/// The results of one framework. Times are in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrameworkOutcome {
    /// Name of the framework.
    pub name: String,
    /// Role of the framework.
    pub role: String,
    /// Number of tasks that were submitted to the framework.
    pub submitted: u64,
    /// Number of tasks that finished.
    pub finished: u64,
    /// Number of attempts that failed.
    pub failed: u64,
    /// Number of tasks that had not ended at the end of the run.
    pub left: u64,
    /// Times from the submission of a task to the update that it runs.
    pub wait: Summary,
    /// Times from the launch of a task to the update that it runs.
    pub start: Summary,
    /// Times from the submission of a job to the end of its last task.
    pub job: Summary,
    /// Times from submission to the end of jobs, for each kind of jobs that has a name.
    #[serde(default)]
    pub kinds: Vec<(String, Summary)>,
    /// Means of the bundled framework's own measures, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<(String, Option<f64>)>,
    /// Titles of these measures with units, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_titles: BTreeMap<String, String>,
    /// Number of offers that the framework received.
    pub offers_received: u64,
    /// Number of offers that the framework accepted.
    pub offers_accepted: u64,
    /// Number of offers that the framework declined.
    pub offers_declined: u64,
    /// Number of offers that were rescinded.
    pub offers_rescinded: u64,
    /// Mean time for which the framework held an offer.
    pub offer_held: f64,
}

/// The results of one window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WindowOutcome {
    /// Name of the window.
    pub name: String,
    /// Start of the window, in seconds from the start of the run.
    pub from: f64,
    /// End of the window, in seconds from the start of the run.
    pub to: f64,
    /// Unfairness of the window.
    pub unfairness: Unfairness,
    /// Mean part of the cluster in use, by resource.
    pub utilisation: Vec<(String, f64)>,
    /// Mean part of the cluster in unanswered offers; at each instant, that of the resource with the largest part.
    pub offered: f64,
    /// Mean dominant share in use of each framework.
    pub shares: Vec<f64>,
    /// Mean fair share of each framework.
    pub targets: Vec<f64>,
}

/// Values of a run over time, one for each sample.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Times of the samples, in seconds from the start of the run.
    pub at: Vec<f64>,
    /// Part of the cluster in use, for the resource with the largest part.
    pub utilisation: Vec<f64>,
    /// Part of the cluster in unanswered offers.
    pub offered: Vec<f64>,
    /// Gap between the shares at each sample; 0 without contention.
    #[serde(default)]
    pub gap: Vec<f64>,
    /// Jain's index at each sample; 1 without contention.
    #[serde(default)]
    pub jain: Vec<f64>,
    /// Values by framework. If there are many frameworks, only the first ones are recorded.
    pub tracks: Vec<Track>,
}

/// Values of one framework over time, one for each sample.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Track {
    /// Dominant share that the framework's tasks use.
    pub share: Vec<f64>,
    /// Fair share of the framework.
    pub target: Vec<f64>,
    /// Number of tasks that wait.
    pub waiting: Vec<f64>,
    /// Dominant share held as offers.
    pub held: Vec<f64>,
    /// Number of offers declined so far.
    #[serde(default)]
    pub declined: Vec<f64>,
    /// The bundled framework's own measures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<OwnTrack>,
}

/// A measure of a bundled framework over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnTrack {
    /// Title of the measure, with its unit.
    pub title: String,
    /// Values of the measure at the samples; `None` where it has no value.
    pub values: Vec<Option<f64>>,
}
