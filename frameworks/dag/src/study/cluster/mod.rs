//! A cluster of equal executors in virtual time, as Decima's public simulator models Spark's: an executor belongs to
//! one job at a time, moving takes time, and a policy is asked when executors run out of work. It decides nothing.
//!
//! A decision can be about executors that are still busy: the first one that finds no task left in its stage asks for
//! all executors of the stage, and the others follow when they are done. Executors without a job are asked about when
//! a job arrives only, as in that simulator.
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

/// Executors of a cluster at most.
const EXECUTORS: u32 = 100_000;

/// The settings of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Executors.
    pub executors: u32,
    /// What it takes an executor to move to another job, in milliseconds.
    pub moving_delay: u64,
    /// Whether a policy knows the rough durations of all stages, as in the paper, or those of earlier runs only.
    pub knows_durations: bool,
    /// Whether executors may be sent to stages that cannot run yet, and before they are free.
    pub ahead: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { executors: 50, moving_delay: 2000, knows_durations: true, ahead: true }
    }
}

/// What came out of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// For each job, in the order of the arrivals, the seconds from its arrival to its end.
    pub completions: Vec<f64>,
    /// The end of the last job, in seconds.
    pub makespan: f64,
    /// Executor-seconds in which tasks ran.
    pub busy: f64,
    /// Moves of executors to another job.
    pub moves: u64,
    /// Decisions.
    pub decisions: u64,
    /// Tasks that ran.
    pub tasks: u64,
}

impl Outcome {
    /// The mean seconds from arrival to end.
    pub fn mean(&self) -> f64 {
        self.completions.iter().sum::<f64>() / self.completions.len().max(1) as f64
    }
}

/// Runs jobs under a policy until all have ended. The seed decides durations; `history` is read and written if the
/// policy does not know them.
///
/// # Errors
/// A setting without sense, or a policy that leaves jobs unfinished: it let all executors rest.
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
        return Err(StudyError::Setting { setting: "order", rule: "must not let all executors rest" });
    }
    Ok(outcome)
}

/// A stage of a job, by their places.
type Node = (usize, usize);

/// Where executors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// They belong to no job.
    General,
    /// They are idle in a job.
    Job(usize),
    /// They run tasks of a stage.
    Node(Node),
}

/// Where executors of a source go next: stages, or nowhere, with numbers, in order.
type Commits = BTreeMap<Source, Vec<(Option<Node>, u32)>>;
