//! What a policy answers, and what that comes to: tasks to start. It chooses nothing.

use serde::{Deserialize, Serialize};

use super::observation::Observation;
use super::plan::Plan;

/// Start tasks of this stage until it has none left, the job has `limit` executors, or nothing fits any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The job's id.
    pub job: u64,
    /// The stage, by its place in the job.
    pub stage: u32,
    /// Executors that the job may have afterwards at most, those that it has ([`Job::held`](super::Job::held))
    /// included.
    pub limit: u32,
}

/// Tasks to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The job's id.
    pub job: u64,
    /// The stage, by its place in the job.
    pub stage: u32,
    /// How many tasks, 1 at least.
    pub tasks: u32,
    /// In which slots, by the place in [`Observation::free`].
    pub free: u32,
}

/// Carries the actions out one after the other. What names an unknown job, a stage that is not runnable, or more than
/// is free, is left out as far as it does; so the answer of any policy can be used as it is.
pub fn grants(observation: &Observation, actions: &[Action]) -> Vec<Grant> {
    let mut plan = Plan::new(observation);
    for action in actions {
        if let Some(job) = plan.find(action.job) {
            let more = action.limit.saturating_sub(plan.held(job));
            plan.give(job, action.stage as usize, more);
        }
    }
    plan.into_grants()
}
