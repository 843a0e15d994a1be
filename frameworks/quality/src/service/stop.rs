//! When a job ends: its target, its tolerance, its patience, its iterations. And what it has come to on data that it
//! does not learn from.
//!
//! It reads no clock: a deadline is the driver's part.

use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::scheduler::{Iteration, Score};

/// After this many iterations without a change that matters a job has converged.
const STILL: u32 = 5;

/// What a job's end depends on, over all its iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stopping {
    loss: Option<f64>,
    /// The largest change of the loss, and for how many iterations it has hardly changed.
    largest_change: f64,
    still: u32,
    /// The newest score on validation data.
    score: Option<Score>,
    best: Option<Best>,
    /// For how many iterations the validation loss has not fallen.
    waited: u32,
}

/// The iteration with the lowest validation loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Best {
    pub(super) iteration: Iteration,
    loss: f64,
    /// The round's parameters: the model.
    pub(super) parameters: Vec<f64>,
}

impl Stopping {
    /// Takes the score of a round's parameters in. If the step was taken back, that of the step before it stays.
    pub(super) fn score(&mut self, score: Score, retried: bool) -> Score {
        match self.score {
            Some(score) if retried => score,
            _ => *self.score.insert(score),
        }
    }

    /// Takes an iteration in, with its parameters if the best are to be kept. A step that was taken back says nothing
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
            // It skips rows, and is not measured; it counts.
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

    /// The iteration whose model is to be kept instead of the last one: the best, with patience.
    pub(super) fn best(&self, job: &Job) -> Option<&Best> {
        self.best.as_ref().filter(|best| job.patience.is_some() && !best.parameters.is_empty())
    }

    /// Why the job is over after this many iterations, if it is.
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
