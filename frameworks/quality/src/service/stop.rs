//! Decides when a job ends: by its target, its tolerance, its patience or its iterations. Also keeps its scores on data
//! that it does not learn from.
//!
//! It reads no clock; the driver checks the deadline.

use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::scheduler::{Iteration, Score};

/// Number of iterations without a significant change after which a job has converged.
const STILL: u32 = 5;

/// The state of the conditions that end a job, over all its iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StopConditions {
    loss: Option<f64>,
    /// Largest change of the loss, and number of iterations for which it has hardly changed.
    largest_change: f64,
    still: u32,
    /// Newest score on validation data.
    score: Option<Score>,
    best: Option<Best>,
    /// Number of iterations for which the validation loss has not fallen.
    waited: u32,
}

/// The iteration with the lowest validation loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Best {
    pub(super) iteration: Iteration,
    loss: f64,
    /// Parameters of the round, which are the model.
    pub(super) parameters: Vec<f64>,
}

impl StopConditions {
    /// Records the score of a round's parameters. If the step was taken back, the score of the step before it stays.
    pub(super) fn score(&mut self, score: Score, retried: bool) -> Score {
        match self.score {
            Some(score) if retried => score,
            _ => *self.score.insert(score),
        }
    }

    /// Records an iteration, with its parameters if the best are to be kept. A step that was taken back tells nothing
    /// about convergence.
    pub(super) fn note(&mut self, job: &Job, iteration: &Iteration, retried: bool, parameters: Option<Vec<f64>>) {
        if let Some(before) = self.loss.filter(|_| !retried) {
            let change = (before - iteration.loss).abs();
            self.largest_change = self.largest_change.max(change);
            let still = job.tolerance > 0.0 && change <= job.tolerance * self.largest_change;
            self.still = if still { self.still + 1 } else { 0 };
        }
        self.loss = Some(iteration.loss);
        if iteration.rows.is_some() && iteration.validation.is_none() && self.best.is_some() && !retried {
            // An iteration that skips rows is not measured, but counts.
            self.waited = self.waited.saturating_add(1);
        }
        if let Some(score) = iteration.validation.filter(|_| !retried) {
            if self.best.as_ref().is_none_or(|best| score.loss < best.loss) {
                let parameters = parameters.unwrap_or_default();
                self.best = Some(Best { iteration: *iteration, loss: score.loss, parameters });
                self.waited = 0;
            } else {
                self.waited = self.waited.saturating_add(1);
            }
        }
    }

    /// Returns the iteration whose model is saved instead of the last one: the best, for a job with patience.
    pub(super) fn best(&self, job: &Job) -> Option<&Best> {
        self.best.as_ref().filter(|best| job.patience.is_some() && !best.parameters.is_empty())
    }

    /// Returns the reason why the job ends after this many iterations, if it does.
    pub(super) fn reason(&self, job: &Job, iteration: &Iteration, iterations: u64) -> Option<String> {
        let target = &job.target;
        if !target.go_on && target.loss.is_some_and(|t| iteration.loss <= t) {
            return Some("its loss is reached".to_owned());
        }
        if !target.go_on && target.accuracy.is_some_and(|t| iteration.accuracy.is_some_and(|a| a >= t)) {
            return Some("its accuracy is reached".to_owned());
        }
        if let Some((best, patience)) = self.best.as_ref().zip(job.patience)
            && self.waited >= patience
        {
            let lowest = best.iteration.number + 1;
            return Some(format!("its validation loss is lowest in iteration {lowest}, and has not fallen since"));
        }
        if self.still >= STILL {
            return Some("its loss does not change any more".to_owned());
        }
        (iterations >= job.iterations).then(|| "all its iterations are done".to_owned())
    }
}
