//! The answer of a policy, and the tasks to start that follow from it. It chooses nothing.

use serde::{Deserialize, Serialize};

use super::observation::Observation;
use super::plan::Plan;

/// An instruction to start tasks of a stage until none is left, the job has `limit` executors, or no further task fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Id of the job.
    pub job: u64,
    /// Index of the stage in the job.
    pub stage: u32,
    /// Most executors that the job may have afterwards, including those that it has ([`Job::held`](super::Job::held)).
    pub limit: u32,
}

/// A number of tasks to start in some slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Id of the job.
    pub job: u64,
    /// Index of the stage in the job.
    pub stage: u32,
    /// Number of tasks, at least 1.
    pub tasks: u32,
    /// Index of the slots in [`Observation::free`].
    pub free: u32,
}

/// Converts actions to the tasks that they start, one after the other. An action that names an unknown job, a stage
/// that is not runnable, or more than is free, is ignored to that extent. So the answer of any policy can be used as it
/// is.
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
