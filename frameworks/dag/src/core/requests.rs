//! Requests to a running scheduler, and how it fulfils or refuses them.

use std::collections::BTreeSet;

use base::Time;
use sdk::Calls;
use serde::Serialize;

use super::record::{Goal, Record, StagePhase, parse_task_id};
use super::view::{JobEvent, JobView, Status, TaskPage};
use super::{Core, JOBS_MAX, TASKS_MAX};
use crate::job::Job;
use crate::split::Pieces;
use crate::task::{Report, SandboxSource};

/// A request to the scheduler.
#[derive(Clone, Debug)]
pub enum Request {
    /// Run these jobs, either all of them or none. A name is free again once its job has ended.
    Submit(Vec<Job>),
    /// Run these jobs at the start of a scheduler that may have saved state. A job that exists with the same definition
    /// is left as it is, even if it has ended.
    Resume(Vec<Job>),
    /// Kill all tasks of a job and end it.
    Cancel {
        /// Name of the job.
        name: String,
    },
    /// Forget a job that has ended.
    Forget {
        /// Name of the job.
        name: String,
    },
    /// The input files of a stage were examined.
    Scanned {
        /// Serial of the job.
        serial: u64,
        /// Index of the stage.
        stage: usize,
        /// Files in pieces, or the reason why they cannot be used.
        found: Result<Pieces, String>,
    },
    /// The outputs of a job were removed, or could not be.
    Removed {
        /// Serial of the job.
        serial: u64,
        /// Reason of the failure; `None` if the outputs were removed.
        failed: Option<String>,
    },
    /// The runner of a task reports a problem or a value.
    Report {
        /// Id of the task.
        task: String,
        /// Content of the report.
        report: Report,
    },
    /// Return the locations of the outputs that a task reads.
    Sources {
        /// Id of the task.
        task: String,
    },
    /// Stop the scheduler. With `teardown` the framework ends with all of its tasks and state. Without it, tasks keep
    /// running for the failover timeout, and the next start with the same state continues them.
    Leave {
        /// Whether the framework ends with all of its tasks.
        teardown: bool,
    },
    /// Return a summary of all jobs and of the scheduler.
    Status,
    /// Return one job with its stages, and the reasons why they wait.
    Show {
        /// Name of the job.
        name: String,
    },
    /// Return launched tasks of a stage.
    Tasks {
        /// Name of the job.
        name: String,
        /// Name of the stage.
        stage: String,
        /// Number of the first task to return.
        from: u32,
    },
}

/// The successful answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The request is fulfilled, or will be.
    Done,
    /// The scheduler stops.
    Left,
    /// Answer to [`Request::Submit`], in the order of the jobs.
    Submitted(Vec<Submitted>),
    /// Answer to [`Request::Sources`].
    Sources(Vec<SandboxSource>),
    /// Answer to [`Request::Status`].
    Status(Box<Status>),
    /// Answer to [`Request::Show`].
    Job(Box<JobView>),
    /// Answer to [`Request::Tasks`].
    Tasks(Box<TaskPage>),
}

/// Result of the submission of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Submitted {
    /// Name of the job.
    pub name: String,
    /// Whether the job is new.
    pub taken: SubmissionEffect,
}

/// Whether a submitted job is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SubmissionEffect {
    /// The job is new.
    New,
    /// An equal job exists already, and nothing was changed.
    Unchanged,
}

/// The reason why a request is refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No job has this name.
    #[error("there is no job '{0}'")]
    NoSuchJob(String),
    /// The job has no stage of this name.
    #[error("the job '{0}' has no stage '{1}'")]
    NoSuchStage(String, String),
    /// No running task has this id.
    #[error("no task '{0}' runs")]
    NoSuchTask(String),
    /// The job has already ended.
    #[error("the job '{0}' has ended")]
    Ended(String),
    /// The job has not ended yet.
    #[error("the job '{0}' has not ended; cancel it first")]
    Runs(String),
    /// A job of this name exists and has not ended.
    #[error("a job '{0}' exists and has not ended; cancel it first, or use another name")]
    NameTaken(String),
    /// Two of the submitted jobs have this name.
    #[error("two of these jobs have the name '{0}'")]
    Twice(String),
    /// The scheduler would have too many jobs or tasks.
    #[error("there would be more than {JOBS_MAX} jobs or {TASKS_MAX} tasks that have not ended")]
    Full,
    /// The saved state cannot be read, so the scheduler does nothing.
    #[error("the scheduler does nothing: {0}")]
    Damaged(String),
}

impl Core {
    pub(super) fn answer(&mut self, request: Request, now: Time, calls: &mut Calls) -> Result<Reply, RequestError> {
        if let Some(why) = &self.damaged {
            return Err(RequestError::Damaged(why.clone()));
        }
        match request {
            Request::Submit(jobs) => self.submit(jobs, now),
            Request::Resume(jobs) => self.resume(jobs, now),
            Request::Cancel { name } => self.cancel(&name, calls),
            Request::Forget { name } => self.forget_named(&name),
            Request::Scanned { serial, stage, found } => {
                self.scanned(serial, stage, found);
                Ok(Reply::Done)
            }
            Request::Removed { serial, failed } => {
                self.removed(serial, failed);
                Ok(Reply::Done)
            }
            Request::Report { task, report } => self.report(&task, report),
            Request::Sources { task } => self.sources(&task),
            Request::Leave { teardown } => {
                self.leave(teardown, calls);
                Ok(Reply::Left)
            }
            Request::Status => Ok(Reply::Status(Box::new(self.status(now)))),
            Request::Show { name } => Ok(Reply::Job(Box::new(self.show(self.serial(&name)?, now)))),
            Request::Tasks { name, stage, from } => {
                let record = &self.records[&self.serial(&name)?];
                let place = record.job.stage(&stage).ok_or(RequestError::NoSuchStage(name, stage))?;
                Ok(Reply::Tasks(Box::new(self.task_page(record, place, from))))
            }
        }
    }

    pub(super) fn serial(&self, name: &str) -> Result<u64, RequestError> {
        self.names.get(name).copied().ok_or_else(|| RequestError::NoSuchJob(name.to_owned()))
    }

    fn submit(&mut self, jobs: Vec<Job>, now: Time) -> Result<Reply, RequestError> {
        let tasks: u64 = self.active.iter().filter_map(|s| self.records.get(s)).map(Record::tasks_known).sum();
        let more: u64 = jobs.iter().map(requested_tasks).sum();
        if self.active.len() + jobs.len() > JOBS_MAX || tasks + more > TASKS_MAX {
            return Err(RequestError::Full);
        }
        let mut names = BTreeSet::new();
        for job in &jobs {
            if !names.insert(&job.name) {
                return Err(RequestError::Twice(job.name.clone()));
            }
            let before = self.names.get(&job.name).and_then(|serial| self.records.get(serial));
            if before.is_some_and(|record| !record.is_over()) {
                return Err(RequestError::NameTaken(job.name.clone()));
            }
        }
        Ok(Reply::Submitted(jobs.into_iter().map(|job| self.submit_one(job, now)).collect()))
    }

    fn submit_one(&mut self, job: Job, now: Time) -> Submitted {
        let (serial, name) = (self.next_serial, job.name.clone());
        self.next_serial += 1;
        self.names.insert(name.clone(), serial);
        self.records.insert(serial, Record::new(serial, job, now));
        self.active.insert(serial);
        self.jobs_to_advance.insert(serial);
        self.changed.meta = true;
        self.changed.heads.insert(serial);
        self.record_event(JobEvent::Submitted { name: name.clone() });
        Submitted { name, taken: SubmissionEffect::New }
    }

    /// Submits the jobs that do not exist already. Answers for all jobs in their order.
    fn resume(&mut self, jobs: Vec<Job>, now: Time) -> Result<Reply, RequestError> {
        let is_there = |job: &Job| {
            let record = self.names.get(&job.name).and_then(|serial| self.records.get(serial));
            record.is_some_and(|record| *record.job == *job)
        };
        let there: Vec<Option<Submitted>> = jobs
            .iter()
            .map(|job| is_there(job).then(|| Submitted { name: job.name.clone(), taken: SubmissionEffect::Unchanged }))
            .collect();
        let missing = jobs.into_iter().zip(&there).filter(|(_, there)| there.is_none()).map(|(job, _)| job).collect();
        let Reply::Submitted(submitted) = self.submit(missing, now)? else { return Ok(Reply::Done) };
        let mut submitted = submitted.into_iter();
        Ok(Reply::Submitted(there.into_iter().filter_map(|there| there.or_else(|| submitted.next())).collect()))
    }

    fn cancel(&mut self, name: &str, calls: &mut Calls) -> Result<Reply, RequestError> {
        let serial = self.serial(name)?;
        if self.records[&serial].is_over() {
            return Err(RequestError::Ended(name.to_owned()));
        }
        self.end_all(serial, Goal::Cancel, String::new(), calls);
        self.record_event(JobEvent::Cancelling { name: name.to_owned() });
        Ok(Reply::Done)
    }

    fn forget_named(&mut self, name: &str) -> Result<Reply, RequestError> {
        let serial = self.serial(name)?;
        if !self.records[&serial].is_over() {
            return Err(RequestError::Runs(name.to_owned()));
        }
        self.ended.retain(|ended| *ended != serial);
        self.forget(serial);
        Ok(Reply::Done)
    }

    /// Records the examined input files of a stage. An answer that is no longer expected is ignored.
    fn scanned(&mut self, serial: u64, stage: usize, found: Result<Pieces, String>) {
        let Some(record) = self.records.get_mut(&serial).filter(|record| record.goal == Goal::Run) else { return };
        let Some(run) = record.stages.get_mut(stage).filter(|run| run.head.phase == StagePhase::Planning) else {
            return;
        };
        match found {
            Ok(pieces) => {
                run.pieces = pieces.into();
                self.changed.inputs.insert((serial, stage));
                self.open_stage(serial, stage);
            }
            Err(why) => {
                let why = format!("stage '{}': {why}", record.stage(stage).name);
                // No task of this stage runs. Tasks of other stages may, and are killed when the job is advanced.
                self.failing.push((serial, why));
            }
        }
        self.jobs_to_advance.insert(serial);
    }

    /// Handles a report of a task's runner: outputs that cannot be read, or the task's value.
    fn report(&mut self, task_id: &str, report: Report) -> Result<Reply, RequestError> {
        let (serial, stage, index) =
            self.current(task_id).ok_or_else(|| RequestError::NoSuchTask(task_id.to_owned()))?;
        let Some(record) = self.records.get_mut(&serial) else { return Ok(Reply::Done) };
        if !report.message.is_empty() || report.value.is_some() {
            record.stages[stage].change(index, |task| {
                task.value = report.value.filter(|value| value.is_finite()).or(task.value);
                if !report.message.is_empty() {
                    task.set_message(&report.message);
                }
            });
            self.changed.tasks.insert((serial, stage, index));
        }
        for missing in report.missing {
            if let Some(source) = self.records.get(&serial).and_then(|record| record.job.stage(&missing.stage)) {
                self.output_gone(serial, source, missing.index, missing.attempt);
            }
        }
        self.jobs_to_advance.insert(serial);
        Ok(Reply::Done)
    }

    /// Returns the key of the task with this id, if the id is that of its newest attempt and the task has not ended.
    pub(super) fn current(&self, task_id: &str) -> Option<super::TaskKey> {
        let (serial, stage, index, attempt) = parse_task_id(task_id)?;
        let record = self.records.get(&serial)?;
        let place = record.job.stage(stage)?;
        let task = record.stages[place].tasks().get(&index)?;
        (task.is_live() && task.attempts == attempt).then_some((serial, place, index))
    }

    fn leave(&mut self, teardown: bool, calls: &mut Calls) {
        if !teardown {
            return calls.stop();
        }
        for serial in self.records.keys().copied().collect::<Vec<_>>() {
            self.forget(serial);
        }
        self.forget_removals();
        self.save(calls);
        calls.teardown();
    }
}

/// Returns the least number of tasks of a job, before its inputs are examined.
fn requested_tasks(job: &Job) -> u64 {
    let of = |stage: &crate::job::Stage| match &stage.input {
        crate::job::Input::Tasks(count) => u64::from(*count),
        _ => 1,
    };
    job.stages.iter().map(of).sum()
}
