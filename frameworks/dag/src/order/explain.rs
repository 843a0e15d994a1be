//! What a policy says of its last decision. Plain data.

use serde::Serialize;

use super::action::Action;

/// Why the last decision was as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// When it was made, in milliseconds.
    pub at: u64,
    /// What decided: `model`, or the name of a heuristic.
    pub by: String,
    /// Why not the model; empty if it decided.
    pub why: String,
    /// The model's choices, the first ones.
    pub choices: Vec<ChoiceView>,
    /// What the heuristic that stands in for the model would have done, its first actions.
    pub instead: Vec<Action>,
    /// Jobs that came first because they have waited for too long, by their ids.
    pub overdue: Vec<u64>,
}

/// A choice of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChoiceView {
    /// The job's id.
    pub job: u64,
    /// The stage, by its place in the job.
    pub stage: u32,
    /// Executors that the job may have.
    pub limit: u32,
    /// The probability of this stage and limit.
    pub probability: f32,
    /// What the model saw of the stage and its job, by name, as it is scaled.
    pub features: Vec<(&'static str, f32)>,
}
