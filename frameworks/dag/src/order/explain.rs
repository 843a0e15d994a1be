//! Explanations of a policy's last decision, as plain data.

use serde::Serialize;

use super::action::Action;

/// The explanation of a policy's last decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// Time of the decision, in milliseconds.
    pub at: u64,
    /// Decider: `model`, or the name of a heuristic.
    pub by: String,
    /// Reason why the model did not decide; empty if it did.
    pub why: String,
    /// First choices of the model.
    pub choices: Vec<ChoiceView>,
    /// First actions of the heuristic that replaces the model when necessary, for comparison.
    pub instead: Vec<Action>,
    /// Ids of jobs that came first because they have waited for too long.
    pub overdue: Vec<u64>,
}

/// A choice of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChoiceView {
    /// Id of the job.
    pub job: u64,
    /// Index of the stage in the job.
    pub stage: u32,
    /// Limit of the job's executors.
    pub limit: u32,
    /// Probability of this stage and limit.
    pub probability: f32,
    /// Names and scaled values of the features of the stage and its job.
    pub features: Vec<(&'static str, f32)>,
}
