//! A snapshot of all jobs, for tables, plots and tests.

use sdk::base::Time;
use serde::{Deserialize, Serialize};

use super::Quality;
use super::entry::Entry;
use crate::job::Target;
use crate::learn::Score;
use crate::predict::HORIZON;

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No iteration is done yet.
    Waiting,
    /// It learns.
    Running,
    /// It is trained.
    Finished,
    /// It failed.
    Failed,
    /// Its user stopped it.
    Stopped,
}

/// The status.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// How workers are shared out.
    pub policy: &'static str,
    /// Whether a master has taken the framework in.
    pub connected: bool,
    /// Seconds since the framework's first start, over all restarts if there is a state directory.
    pub seconds: f64,
    /// Workers that run or start now.
    pub workers: u32,
    /// The mean of the running jobs' normalised losses, as far as they are known.
    pub mean_normalised_loss: Option<f64>,
    /// The jobs, in the order of their submission.
    pub jobs: Vec<JobStatus>,
}

/// How a job is.
#[derive(Clone, Debug, Serialize)]
pub struct JobStatus {
    /// Its name.
    pub name: String,
    /// Its algorithm.
    pub kind: &'static str,
    /// Where it is.
    pub state: State,
    /// Why it ended, in words.
    pub reason: String,
    /// What its gain counts.
    pub priority: f64,
    /// When its user is content.
    pub target: Target,
    /// The newest iteration; none before the first.
    pub iteration: Option<u64>,
    /// The newest iteration that is done again, while a program repeats what was lost.
    pub repeated: Option<u64>,
    /// After how many iterations it ends at the latest.
    pub iterations: u64,
    /// The newest loss.
    pub loss: Option<f64>,
    /// The share of what can be learnt that is not learnt yet, as far as can be predicted.
    pub normalised_loss: Option<f64>,
    /// The newest accuracy.
    pub accuracy: Option<f64>,
    /// The newest loss and accuracy on validation data.
    pub validation: Option<Score>,
    /// The share of the rows that iterations are over now in the mean, of a job on critical rows.
    pub rows: Option<f64>,
    /// Cores that work for it now.
    pub cores: u32,
    /// Cores that it should have.
    pub wanted_cores: u32,
    /// By how much the policy expects its normalised loss to fall in the coming epoch.
    pub predicted_gain: f64,
    /// The loss that is expected ten iterations from now.
    pub predicted_loss: Option<f64>,
    /// The median error of such predictions, as a share of the loss that came.
    pub prediction_error: Option<f64>,
    /// Seconds of an iteration's work on one core, and its overhead.
    pub iteration_seconds: [f64; 2],
    /// Seconds since it was submitted; once it has ended, until then.
    pub seconds: f64,
    /// Its worker tasks.
    pub tasks: Vec<String>,
    /// Loss and cores over time; thinned out when there are many.
    pub history: Vec<Point>,
}

/// A moment in a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Seconds since the framework started first.
    pub seconds: f64,
    /// Which iteration was done.
    pub iteration: u64,
    /// Its loss.
    pub loss: f64,
    /// The loss on validation data.
    pub validation_loss: Option<f64>,
    /// Its normalised loss, as it was predicted at that time.
    pub normalised: Option<f64>,
    /// Number of cores of the job.
    pub cores: f64,
    /// The share of the rows that iterations were over in the mean, of a job on critical rows.
    pub rows: Option<f64>,
}

impl Quality {
    /// A snapshot.
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
        let gain = entry.forecaster.outlook().gain(self.settings.epoch.as_secs_f64(), entry.target);
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
