//! Requests of the shell to the scheduler: new jobs, their progress, and their ends.

use serde::{Deserialize, Serialize};

use super::status::Status;
use crate::job::{JOBS_MAX, Job, JobError};
use crate::learn::{RowShares, Score};
use crate::trainer::Capabilities;

/// A request to the scheduler.
#[derive(Clone, Debug)]
pub enum Question {
    /// Submit jobs, all or none; a job with `after` starts later. Answered with [`Answer::Submitted`].
    Submit(Vec<Submission>),
    /// Record that iterations were done. Answered with [`Answer::Directive`].
    Progress(Box<Progress>),
    /// Record that a job has ended. Answered with [`Answer::Directive`], which tells where its workers go.
    Ended {
        /// Name of the job.
        job: String,
        /// Result of the job.
        outcome: Outcome,
        /// Tasks of the job's connected workers.
        free: Vec<String>,
    },
    /// Remove an ended job from the list. Answered with [`Answer::Submitted`].
    Forget(String),
    /// Stop the scheduler. With `teardown` the framework is removed; without it its tasks keep running for its next
    /// start. Answered with [`Answer::Done`].
    Stop {
        /// Whether to remove the framework.
        teardown: bool,
    },
    /// Return the status. Answered with [`Answer::Status`].
    Status,
    /// Return the jobs from before a restart that have not ended. Answered with [`Answer::Restored`].
    Restored,
}

/// The reason why jobs are not accepted, or a job is not removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobRefused {
    /// A job breaks a rule.
    #[error(transparent)]
    Invalid(#[from] JobError),
    /// The name is in use.
    #[error("there is a job '{0}' already")]
    Exists(String),
    /// There would be too many jobs.
    #[error("there would be more than {JOBS_MAX} jobs; remove some that have ended")]
    TooMany,
    /// No job has this name.
    #[error("there is no job '{0}'")]
    Unknown(String),
    /// The job, or a worker of it, still runs.
    #[error("the job '{0}' has not ended")]
    Active(String),
}

/// An answer of the scheduler to a [`Question`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// Whether jobs were accepted, or a job was removed.
    Submitted(Result<(), JobRefused>),
    /// Instructions about the job's workers.
    Directive(Directive),
    /// The request has been received.
    Done,
    /// Status of all jobs.
    Status(Box<Status>),
    /// Jobs from before a restart.
    Restored {
        /// Jobs that continue.
        jobs: Vec<Restored>,
        /// Messages about stored state that cannot be read, and about what became of it.
        lost: Vec<String>,
    },
}

/// A new job.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Definition of the job.
    pub job: Job,
    /// Secret with which the job's workers authenticate.
    pub token: String,
}

/// A job that continues after a restart.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Definition of the job.
    pub job: Job,
    /// Secret with which the job's workers authenticate.
    pub token: String,
    /// Seconds since the job's submission; negative if its start time is in the future.
    pub age: f64,
}

/// The instructions of the scheduler to a job's driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directive {
    /// Tasks of workers to end.
    pub leave: Vec<String>,
    /// Workers that work for another job from now on.
    pub moves: Vec<Move>,
    /// Reason, in words, why the job has failed for the scheduler: its workers cannot run. `None` if it has not.
    pub give_up: Option<String>,
    /// Smallest share of the rows, in thousandths, that iterations compute with, for a job on critical rows.
    pub least_rows: Option<u16>,
}

/// A worker that moves from one job to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Id of the worker's task.
    pub task: String,
    /// Name of the job for which the worker works from now on.
    pub job: String,
    /// Secret with which the worker authenticates there.
    pub token: String,
}

/// Progress of a job's driver since its last report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Name of the job.
    pub job: String,
    /// Progress before this start of the scheduler; reported once, before the first iteration.
    pub earlier: Option<Earlier>,
    /// Iteration that was done.
    pub iteration: Option<Iteration>,
    /// Number of an iteration that was done before, and is repeated after a loss.
    pub repeated: Option<u64>,
    /// Capabilities of the job's program; `None` for other jobs, or before the program has reported them.
    pub capabilities: Option<Capabilities>,
    /// Tasks of connected workers that have no work now and could be released.
    pub free: Vec<String>,
}

/// The iterations before the scheduler's restart from which the job continues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Earlier {
    /// Losses of the newest iterations, the newest last.
    pub losses: Vec<f64>,
    /// Newest iteration; `None` if none was done.
    pub last: Option<Iteration>,
}

/// A completed iteration of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Number of the iteration, from 0.
    pub number: u64,
    /// Loss before the iteration's step.
    pub loss: f64,
    /// Accuracy before the iteration's step.
    pub accuracy: Option<f64>,
    /// Score on validation data before the iteration's step.
    pub validation: Option<Score>,
    /// Duration of the iteration, in seconds.
    pub seconds: f64,
    /// Average number of workers of the iteration.
    pub workers: f64,
    /// Seconds that the workers computed in all, divided by the cores of one worker.
    pub busy: f64,
    /// Shares of the rows with which the iteration computed, for a job on critical rows.
    pub rows: Option<RowShares>,
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The job is trained; the text is the reason of its end.
    Finished(String),
    /// The job failed; the text is the reason.
    Failed(String),
    /// The user stopped the job.
    Stopped,
}
