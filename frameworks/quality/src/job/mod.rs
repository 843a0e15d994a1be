//! Training jobs: the algorithm, the data, the target quality and the deadline.
//!
//! A job does not name cores or machines, except for the number of cores that it can use.

mod file;
mod source;
mod validation;

use serde::{Deserialize, Serialize};

use crate::learn::{Algorithm, CriticalRows, ProgramOptions};
use crate::predict::Family;

pub use file::{FileError, parse};
pub use source::{Prepared, Source, SourceError};
pub use validation::Validation;

/// Maximum number of jobs in one framework at a time.
pub const JOBS_MAX: usize = 10_000;
/// Maximum number of shards of a job, which bounds its workers.
const SHARDS_MAX: usize = 4_096;

/// A training job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Name of the job: letters, digits, `-` and `_`.
    pub name: String,
    /// Algorithm with its hyperparameters.
    pub algorithm: Algorithm,
    /// Data to learn from; programs name their data in their commands.
    #[serde(default, skip_serializing_if = "Source::is_none")]
    pub data: Source,
    /// Maximum number of iterations. 200 by default.
    #[serde(default = "iterations")]
    pub iterations: u64,
    /// Factor of the job's gain when cores are shared; 1 for ordinary jobs.
    #[serde(default = "one")]
    pub priority: f64,
    /// Conditions under which the job has reached its goal.
    #[serde(default)]
    pub target: Target,
    /// Convergence tolerance, as a share of the largest change of the loss: the job ends when the loss has changed by
    /// less five times in a row. A millionth by default; 0 turns this off.
    #[serde(default = "tolerance")]
    pub tolerance: f64,
    /// Data on which the model is measured, and from which it does not learn.
    #[serde(default)]
    pub validation: Option<Validation>,
    /// Number of iterations without a lower loss on the validation data after which the job ends; the model is then
    /// that of the lowest loss.
    #[serde(default)]
    pub patience: Option<u32>,
    /// Options for computing most iterations over the rows that matter most to the model, if the scheduler asks for
    /// that.
    #[serde(default)]
    pub critical_rows: Option<CriticalRows>,
    /// Number of parts into which the data is divided, which is also the maximum number of workers. 24 by default.
    #[serde(default = "shards")]
    pub shards: usize,
    /// Maximum number of cores; the number of shards if not given.
    #[serde(default)]
    pub max_cores: Option<u32>,
    /// Convergence family of the job, if its user knows it.
    #[serde(default)]
    pub family: Option<Family>,
    /// Delay of the job's submission after the other jobs of its file, in seconds.
    #[serde(default)]
    pub after: f64,
}

/// The conditions under which a job has reached its goal. The first that holds ends the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Target {
    /// Loss at or below which the goal is reached.
    pub loss: Option<f64>,
    /// Accuracy at or above which the goal is reached.
    pub accuracy: Option<f64>,
    /// Seconds from submission after which the job ends with the model that it has then; seconds without a scheduler
    /// count. With a loss, too, the job gets the cores to reach it in time, if that can be predicted, every other job
    /// has one, and the policy is not fair.
    pub deadline: Option<f64>,
    /// Whether the job continues with the fewest cores after reaching its target, instead of ending.
    pub go_on: bool,
}

fn iterations() -> u64 {
    200
}

fn tolerance() -> f64 {
    1e-6
}

fn one() -> f64 {
    1.0
}

fn shards() -> usize {
    24
}

/// An error for a job that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job '{job}': {item}: {rule}")]
pub struct JobError {
    /// Name of the job.
    pub job: String,
    /// Name of the field that breaks the rule.
    pub item: String,
    /// Rule that the field breaks.
    pub rule: String,
}

impl Job {
    /// Checks the rules that can be checked without the job's data.
    ///
    /// # Errors
    /// Returns the first field that breaks a rule.
    pub fn check(&self) -> Result<(), JobError> {
        let refuse = |item: &str, rule: String| Err(JobError { job: self.name.clone(), item: item.to_owned(), rule });
        let within = |value: f64, least: f64, most: f64| value.is_finite() && value >= least && value <= most;
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(allowed) {
            return refuse("name", "must be 1 to 64 letters, digits, '-' or '_'".to_owned());
        }
        let (most, kind) = (self.algorithm.iterations_max(), self.algorithm.name());
        if !(1..=most).contains(&self.iterations) {
            return refuse("iterations", format!("must be between 1 and {most} for {kind}, not {}", self.iterations));
        }
        if !within(self.priority, 1e-6, 1e6) {
            return refuse("priority", format!("must be between 0.000001 and 1000000, not {}", self.priority));
        }
        if !(1..=SHARDS_MAX).contains(&self.shards) {
            return refuse("shards", format!("must be between 1 and {SHARDS_MAX}, not {}", self.shards));
        }
        if self.max_cores == Some(0) {
            return refuse("max_cores", "must be at least 1: training needs a core".to_owned());
        }
        if !within(self.tolerance, 0.0, 1.0) {
            return refuse("tolerance", format!("must be between 0 and 1, not {}", self.tolerance));
        }
        if let Some(rule) = self.validation.as_ref().and_then(Validation::breach) {
            return refuse("validation", rule);
        }
        match (self.patience, &self.validation) {
            (Some(0), _) => return refuse("patience", "must be at least 1".to_owned()),
            (Some(_), None) if self.program().is_none() => {
                return refuse("patience", "needs `validation`: it ends the job by the validation loss".to_owned());
            }
            _ => {}
        }
        if !within(self.after, 0.0, 1e7) {
            return refuse("after", format!("must be between 0 and 10000000 seconds, not {}", self.after));
        }
        if self.target.loss.is_some_and(|l| !l.is_finite()) {
            return refuse("target.loss", "must be a number".to_owned());
        }
        match self.target.accuracy {
            Some(a) if !within(a, 0.0, 1.0) => {
                return refuse("target.accuracy", format!("must be between 0 and 1, not {a}"));
            }
            Some(_) if !self.algorithm.has_accuracy() => {
                return refuse("target.accuracy", format!("{} has none; name a loss", self.algorithm.name()));
            }
            _ => {}
        }
        if let Some(deadline) = self.target.deadline.filter(|d| !within(*d, 0.001, 1e7)) {
            return refuse("target.deadline", format!("must be between 0.001 and 10000000 seconds, not {deadline}"));
        }
        if let Err(error) = self.algorithm.check() {
            return refuse("algorithm", error.to_string());
        }
        if let Some(Err(error)) = self.critical_rows.map(|rows| rows.check(&self.algorithm)) {
            return refuse("critical_rows", error.to_string());
        }
        match (self.program(), self.data.is_none()) {
            (None, true) => return refuse("data", "must name a `file` or a `generator`".to_owned()),
            (Some(_), false) => {
                return refuse("data", "is for algorithms of this framework: name it in `command`".to_owned());
            }
            _ => {}
        }
        if self.program().is_some() && self.validation.is_some() {
            return refuse("validation", "a program reports its own: leave it out".to_owned());
        }
        if let Err(error) = self.data.check(&self.algorithm) {
            return refuse("data", error.to_string());
        }
        Ok(())
    }

    /// Returns the program that trains the job, if the user has given one.
    pub fn program(&self) -> Option<&ProgramOptions> {
        match &self.algorithm {
            Algorithm::Program(program) => Some(program),
            _ => None,
        }
    }

    /// Returns the number of parts into which the validation data is divided; 0 without validation data.
    pub fn validation_shards(&self) -> usize {
        self.validation.as_ref().map_or(0, |validation| validation.shards(self.shards))
    }

    /// Returns the maximum number of cores that the job can use.
    pub fn ceiling(&self) -> u32 {
        let shards = u32::try_from(self.shards).unwrap_or(u32::MAX);
        self.max_cores.map_or(shards, |most| most.min(shards))
    }
}
