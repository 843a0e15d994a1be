//! A cluster of equal executors in virtual time, as Decima's public simulator models Spark's: an executor belongs to
//! one job at a time, moving takes time, and a policy is asked when executors run out of work. It decides nothing.
//!
//! A decision can be about executors that are still busy: the first one that finds no task left in its stage asks for
//! all executors of the stage, and the others follow when they are done. Executors without a job are subject to a
//! decision only when a job arrives, as in that simulator.
//!
//! Without [`Setup::ahead`] it is the cluster of this framework instead: a decision is about all executors that are
//! free at an instant, which belong to no job, and these run at once or stay free until the next decision.

mod episode;
mod executors;
mod observe;
mod run;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::StudyError;
use super::job::Arrival;
use crate::order::{History, Policy};

pub use episode::Episode;

/// Maximum number of executors of a cluster.
const EXECUTORS: u32 = 100_000;

/// The settings of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Number of executors.
    pub executors: u32,
    /// Time that an executor needs to move to another job, in milliseconds.
    pub moving_delay: u64,
    /// Whether a policy knows the rough durations of all stages, as in the paper, or only those of earlier runs.
    pub knows_durations: bool,
    /// Whether executors may be sent to stages that cannot run yet, and before they are free.
    pub ahead: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { executors: 50, moving_delay: 2000, knows_durations: true, ahead: true }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Seconds from arrival to end of each job, in the order of the arrivals.
    pub completions: Vec<f64>,
    /// End of the last job, in seconds.
    pub makespan: f64,
    /// Executor-seconds in which tasks ran.
    pub busy: f64,
    /// Number of moves of executors to another job.
    pub moves: u64,
    /// Number of decisions.
    pub decisions: u64,
    /// Number of tasks that ran.
    pub tasks: u64,
}

impl Outcome {
    /// Returns the mean completion time of a job, in seconds.
    pub fn mean(&self) -> f64 {
        self.completions.iter().sum::<f64>() / self.completions.len().max(1) as f64
    }
}

/// Runs jobs under a policy until all have ended. The seed decides durations; `history` is read and written if the
/// policy does not know them.
///
/// # Errors
/// A setting is invalid, or the policy leaves all executors idle while jobs are unfinished.
pub fn run(
    setup: Setup,
    arrivals: &[Arrival],
    policy: &mut dyn Policy,
    history: &mut History,
    seed: u64,
) -> Result<Outcome, StudyError> {
    let mut episode = Episode::new(setup, arrivals.to_vec(), std::mem::take(history), seed)?;
    while let Some(observation) = episode.observation() {
        let actions = policy.decide(&observation);
        episode.act(&observation, &actions);
    }
    let (outcome, known) = episode.finish();
    *history = known;
    if outcome.completions.iter().any(|time| time.is_nan()) {
        return Err(StudyError::Setting { setting: "order", rule: "must not leave all executors idle" });
    }
    Ok(outcome)
}

/// Indices of a job and of its stage.
type Node = (usize, usize);

/// The source of executors that are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// The executors belong to no job.
    General,
    /// The executors are idle in this job.
    Job(usize),
    /// The executors run tasks of this stage.
    Node(Node),
}

/// Next destinations of the executors of each source, in order: a stage or none, and a number of executors.
type Commits = BTreeMap<Source, Vec<(Option<Node>, u32)>>;
