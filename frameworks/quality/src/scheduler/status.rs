//! A snapshot of all jobs, for tables, plots and tests.

use sdk::base::Time;
use serde::{Deserialize, Serialize};

use super::Quality;
use super::entry::Entry;
use crate::job::Target;
use crate::learn::Score;
use crate::predict::HORIZON;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The job has not done an iteration yet.
    Waiting,
    /// The job is learning.
    Running,
    /// The job is trained.
    Finished,
    /// The job has failed.
    Failed,
    /// The user has stopped the job.
    Stopped,
}

/// The status of all jobs.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Name of the policy that shares the workers.
    pub policy: &'static str,
    /// Whether the framework is subscribed with a master.
    pub connected: bool,
    /// Seconds since the framework's first start, over all restarts if there is a state directory.
    pub seconds: f64,
    /// Number of workers that run or start now.
    pub workers: u32,
    /// Mean of the running jobs' normalised losses, as far as they are known.
    pub mean_normalised_loss: Option<f64>,
    /// Jobs in the order of their submission.
    pub jobs: Vec<JobStatus>,
}

/// The status of a job.
#[derive(Clone, Debug, Serialize)]
pub struct JobStatus {
    /// Name of the job.
    pub name: String,
    /// Name of the job's algorithm.
    pub kind: &'static str,
    /// State of the job.
    pub state: State,
    /// Reason why the job ended, in words.
    pub reason: String,
    /// Factor of the job's gain when cores are shared.
    pub priority: f64,
    /// Conditions under which the job has reached its goal.
    pub target: Target,
    /// Newest iteration; `None` before the first.
    pub iteration: Option<u64>,
    /// Newest iteration that is being repeated, while a program repeats lost iterations.
    pub repeated: Option<u64>,
    /// Maximum number of iterations.
    pub iterations: u64,
    /// Newest loss.
    pub loss: Option<f64>,
    /// Share of the loss reduction that is left, as far as it can be predicted.
    pub normalised_loss: Option<f64>,
    /// Newest accuracy.
    pub accuracy: Option<f64>,
    /// Newest loss and accuracy on validation data.
    pub validation: Option<Score>,
    /// Mean share of the rows with which iterations compute now, for a job on critical rows.
    pub rows: Option<f64>,
    /// Number of cores that work for the job now.
    pub cores: u32,
    /// Number of cores that the job should have.
    pub wanted_cores: u32,
    /// Fall of the job's normalised loss that the policy predicts for the coming epoch.
    pub predicted_gain: f64,
    /// Loss predicted for ten iterations from now.
    pub predicted_loss: Option<f64>,
    /// Median error of such predictions, as a share of the actual loss.
    pub prediction_error: Option<f64>,
    /// Seconds of an iteration's work on one core, and of its overhead.
    pub iteration_seconds: [f64; 2],
    /// Seconds since the job's submission; after its end, until then.
    pub seconds: f64,
    /// Ids of the job's worker tasks.
    pub tasks: Vec<String>,
    /// Loss and cores over time; thinned out when there are many points.
    pub history: Vec<Point>,
}

/// A point of a job's history.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Seconds since the framework's first start.
    pub seconds: f64,
    /// Number of the iteration that was done.
    pub iteration: u64,
    /// Loss of the iteration.
    pub loss: f64,
    /// Loss on validation data.
    pub validation_loss: Option<f64>,
    /// Normalised loss of the iteration, as predicted at that time.
    pub normalised: Option<f64>,
    /// Number of cores of the job.
    pub cores: f64,
    /// Mean share of the rows with which iterations computed, for a job on critical rows.
    pub rows: Option<f64>,
}

impl Quality {
    /// Returns a snapshot of all jobs.
    pub fn status(&self, now: Time) -> Status {
        let mut entries: Vec<&Entry> = self.jobs.values().collect();
        entries.sort_by_key(|e| e.number);
        let jobs: Vec<JobStatus> = entries.into_iter().map(|e| self.job_status(e, now)).collect();
        let running = jobs.iter().filter(|j| j.state == State::Running).filter_map(|j| j.normalised_loss);
        let (count, sum) = running.fold((0, 0.0), |(count, sum), loss| (count + 1, sum + loss));
        Status {
            policy: self.settings.policy.name(),
            connected: self.connected,
            seconds: self.started.map_or(0.0, |s| now.since(s).as_secs_f64()),
            workers: u32::try_from(self.jobs.values().map(|j| j.workers.len()).sum::<usize>()).unwrap_or(u32::MAX),
            mean_normalised_loss: (count > 0).then(|| sum / f64::from(count)),
            jobs,
        }
    }

    fn job_status(&self, entry: &Entry, now: Time) -> JobStatus {
        let per_worker = self.settings.worker.cores;
        let running = entry.running();
        let (time, results) = (entry.forecaster.time(), &entry.results);
        let gain = entry.forecaster.forecast().gain(self.settings.epoch.as_secs_f64(), entry.target);
        JobStatus {
            name: entry.job.name.clone(),
            kind: entry.job.algorithm.name(),
            state: entry.state,
            reason: entry.reason.clone(),
            priority: entry.job.priority,
            target: entry.job.target,
            iteration: results.iteration,
            repeated: entry.repeated.filter(|_| entry.is_active()),
            iterations: entry.job.iterations,
            loss: results.loss,
            normalised_loss: results.left,
            accuracy: results.accuracy,
            validation: results.validation,
            rows: results.rows,
            cores: running * per_worker,
            wanted_cores: entry.target * per_worker,
            predicted_gain: if entry.is_active() { gain } else { 0.0 },
            predicted_loss: entry.forecaster.predict(HORIZON as f64).filter(|_| entry.is_active()),
            prediction_error: results.error,
            iteration_seconds: [time.work, time.overhead],
            seconds: results.seconds.unwrap_or_else(|| now.since(entry.submitted).as_secs_f64()),
            tasks: entry.workers.keys().cloned().collect(),
            history: results.history.clone(),
        }
    }
}
