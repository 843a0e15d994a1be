//! Requests of the shell to the scheduler: new jobs, their progress, their ends.

use serde::{Deserialize, Serialize};

use super::status::Status;
use crate::job::{JOBS_MAX, Job, JobError};
use crate::learn::{RowShares, Score};
use crate::trainer::Manner;

/// A question.
#[derive(Clone, Debug)]
pub enum Question {
    /// Submit jobs, all or none; one with `after` starts later. Answered with [`Answer::Submitted`].
    Submit(Vec<Submission>),
    /// Iterations were done. Answered with [`Answer::Directive`].
    Progress(Box<Progress>),
    /// A job is over. Answered with [`Answer::Directive`]: where its workers go.
    Ended {
        /// Which job.
        job: String,
        /// How it ended.
        outcome: Outcome,
        /// The tasks of its workers that are connected.
        free: Vec<String>,
    },
    /// Drop a job that has ended from the list. Answered with [`Answer::Submitted`].
    Forget(String),
    /// End: with `teardown` the framework ends, without it its tasks keep running for its next start. Answered with
    /// [`Answer::Done`].
    Stop {
        /// Whether the framework is to be gone.
        teardown: bool,
    },
    /// The status. Answered with [`Answer::Status`].
    Status,
    /// Jobs of before a restart that have not ended. Answered with [`Answer::Restored`].
    Restored,
}

/// Why jobs are not taken, or a job is not forgotten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobRefused {
    /// A job breaks a rule.
    #[error(transparent)]
    Invalid(#[from] JobError),
    /// The name is in use.
    #[error("there is a job '{0}' already")]
    Exists(String),
    /// There is no room for this many.
    #[error("there would be more than {JOBS_MAX} jobs; remove some that have ended")]
    TooMany,
    /// No job has this name.
    #[error("there is no job '{0}'")]
    Unknown(String),
    /// The job, or a worker of it, still runs.
    #[error("the job '{0}' has not ended")]
    Active(String),
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Whether jobs were taken, or a job forgotten.
    Submitted(Result<(), JobRefused>),
    /// What to do with the job's workers.
    Directive(Directive),
    /// It is noted.
    Done,
    /// The status.
    Status(Box<Status>),
    /// The jobs.
    Restored {
        /// Jobs that continue.
        jobs: Vec<Restored>,
        /// What was kept and cannot be read, and what became of it, in words.
        lost: Vec<String>,
    },
}

/// A new job.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The job.
    pub job: Job,
    /// What its workers prove themselves with.
    pub token: String,
}

/// A job that continues after a restart.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The job.
    pub job: Job,
    /// What its workers prove themselves with.
    pub token: String,
    /// How many seconds ago it was submitted; negative if its time has yet to come.
    pub age: f64,
}

/// What a job's driver is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directive {
    /// Tasks whose workers are to end.
    pub leave: Vec<String>,
    /// Workers that are to work for another job from now on.
    pub moves: Vec<Move>,
    /// The job has failed for the scheduler: its workers cannot run. Why, in words.
    pub give_up: Option<String>,
    /// The smallest share of the rows, in thousandths, that iterations are to be over, for a job on critical rows.
    pub least_rows: Option<u16>,
}

/// A worker that is given from one job to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its task.
    pub task: String,
    /// The job that it works for from now on.
    pub job: String,
    /// What it proves itself with there.
    pub token: String,
}

/// Progress of a job's driver since its last report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Which job.
    pub job: String,
    /// Progress before this start of the scheduler; reported once, before the first iteration.
    pub earlier: Option<Earlier>,
    /// An iteration that was done.
    pub iteration: Option<Iteration>,
    /// The number of an iteration that was done before, and is done again after a loss.
    pub repeated: Option<u64>,
    /// What the job's program can do, if it is of the user's own and has said so.
    pub manner: Option<Manner>,
    /// The tasks of connected workers that could go now, because they have nothing to do.
    pub free: Vec<String>,
}

/// Iterations before the scheduler's restart from which the job continues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Earlier {
    /// The newest losses, the newest last.
    pub losses: Vec<f64>,
    /// The newest iteration.
    pub last: Option<Iteration>,
}

/// An iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Its number, from 0.
    pub number: u64,
    /// The loss before its step.
    pub loss: f64,
    /// The accuracy before its step.
    pub accuracy: Option<f64>,
    /// The score on validation data before its step.
    pub validation: Option<Score>,
    /// How long it took.
    pub seconds: f64,
    /// Number of its workers, on average.
    pub workers: f64,
    /// How many seconds the workers computed in all, divided by the cores of one.
    pub busy: f64,
    /// The shares of the rows that it was over, of a job on critical rows.
    pub rows: Option<RowShares>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is trained. Why it ended, in words.
    Finished(String),
    /// It failed. Why, in words.
    Failed(String),
    /// Its user stopped it.
    Stopped,
}
