//! Requests to a running scheduler: fulfils or refuses them.

use std::collections::BTreeSet;

use base::Time;
use sdk::Calls;
use serde::Serialize;

use super::capacity::{AgentTotals, RequiredCapacity};
use super::record::{Goal, Phase, Record, StopReason};
use super::sizing::{Measurable, Measurement};
use super::view::{JobEvent, JobSummary, JobView, Status};
use super::{Core, JOBS_MAX, TASKS_MAX};
use crate::job::{COUNT_MAX, Job, Kind};

/// A request to the scheduler.
#[derive(Clone, Debug)]
pub enum Request {
    /// Run these jobs, all of them or none. A service that exists already gets a new version, or only another count.
    /// The name of another kind of job can be used again when the job has ended.
    Submit(Vec<Job>),
    /// Run these jobs at the start of this scheduler, which may have saved state. It is like
    /// [`Submit`](Request::Submit), but a job that exists already with exactly this definition is not changed, even if
    /// it has ended.
    Resume(Vec<Job>),
    /// Kill all tasks of a job, and end the job.
    Stop {
        /// Name of the job.
        name: String,
    },
    /// Change the number of tasks of a service.
    Scale {
        /// Name of the service.
        name: String,
        /// New number of tasks.
        count: u32,
    },
    /// Replace all tasks of a service, as for a new version.
    Restart {
        /// Name of the service.
        name: String,
    },
    /// Kill some tasks of a job. They are replaced, unless `scale` is set.
    Kill {
        /// Name of the job.
        name: String,
        /// Numbers of the tasks; an empty list means all.
        numbers: Vec<u32>,
        /// Whether the count of the service is reduced by the number of killed tasks.
        scale: bool,
    },
    /// Remove a job that has ended.
    Forget {
        /// Name of the job.
        name: String,
    },
    /// Apply a report of the agents' total resources, which the master knows.
    Agents(Vec<AgentTotals>),
    /// Return the parts of such a report that waiting jobs require.
    RequiredCapacity,
    /// Apply measurements of the resource usage of tasks, which their agents report.
    Measured(Vec<Measurement>),
    /// Return the agents at which tasks can be measured.
    Measurable,
    /// End this scheduler. With `teardown` the framework ends with all of its tasks and state; without, tasks keep
    /// running for the failover timeout, and the next start with the same state continues them.
    Leave {
        /// Whether the framework is torn down.
        teardown: bool,
    },
    /// Return a summary of all jobs, and the state of the scheduler.
    Status,
    /// Return one job with its tasks, and the reasons why they wait.
    Show {
        /// Name of the job.
        name: String,
    },
}

/// Reply to a request that is fulfilled.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The request is fulfilled, or will be.
    Done,
    /// The scheduler ends.
    Left,
    /// Result for each submitted job, in their order.
    Submitted(Vec<Submitted>),
    /// Reply to [`Request::RequiredCapacity`].
    RequiredCapacity(RequiredCapacity),
    /// Reply to [`Request::Measurable`].
    Measurable(Measurable),
    /// Reply to [`Request::Status`].
    Status(Box<Status>),
    /// Reply to [`Request::Show`].
    Job(Box<JobView>),
}

/// Result of the submission of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Submitted {
    /// Name of the job.
    pub name: String,
    /// Number of the job's current version.
    pub version: u64,
    /// Effect of the submission.
    pub taken: SubmissionEffect,
}

/// Effect of the submission of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SubmissionEffect {
    /// The job is new.
    New,
    /// The tasks of a service are replaced by those of the new version.
    Updated,
    /// A service gets another count, and is otherwise unchanged.
    Scaled,
    /// The job is exactly what runs already.
    Unchanged,
}

/// Reason for which a request is refused. Nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// There is no job of this name.
    #[error("there is no job '{0}'")]
    NoSuchJob(String),
    /// The job has no task of this number.
    #[error("the job '{0}' has no task {1}")]
    NoSuchTask(String, u32),
    /// The job has ended.
    #[error("the job '{0}' has ended")]
    Ended(String),
    /// The job has not ended yet.
    #[error("the job '{0}' has not ended; stop it first")]
    Runs(String),
    /// A job of this name runs, and it cannot be changed.
    #[error("a job '{0}' exists and has not ended; stop it first, or use another name (only services are updated)")]
    NameTaken(String),
    /// Two of the jobs have this name.
    #[error("two of these jobs have the name '{0}'")]
    Twice(String),
    /// The service of this name is being stopped.
    #[error("the job '{0}' is being stopped; wait for its end")]
    BeingStopped(String),
    /// Only services support the request.
    #[error("the job '{0}' is of kind {1}; only a service can do this")]
    NotAService(String, Kind),
    /// The job would have more tasks than a job may have.
    #[error("a job has at most {COUNT_MAX} tasks")]
    TooMany,
    /// The scheduler would have more jobs or tasks than it may have.
    #[error("there would be more than {JOBS_MAX} jobs or {TASKS_MAX} tasks that have not ended")]
    Full,
    /// The saved state cannot be read, so nothing may be done.
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
            Request::Stop { name } => self.stop(&name, now, calls),
            Request::Scale { name, count } => self.scale(&name, count, now),
            Request::Restart { name } => self.restart(&name, now),
            Request::Kill { name, numbers, scale } => self.kill(&name, &numbers, scale, now, calls),
            Request::Forget { name } => self.forget_named(&name),
            Request::Leave { teardown } => {
                self.leave(teardown, calls);
                Ok(Reply::Left)
            }
            Request::Agents(totals) => {
                self.set_capacity(totals, now);
                Ok(Reply::Done)
            }
            Request::RequiredCapacity => Ok(Reply::RequiredCapacity(self.required_capacity())),
            Request::Measured(measurements) => {
                self.measured(measurements);
                Ok(Reply::Done)
            }
            Request::Measurable => Ok(Reply::Measurable(self.measurable())),
            Request::Status => Ok(Reply::Status(Box::new(self.status(now)))),
            Request::Show { name } => Ok(Reply::Job(Box::new(self.show(self.serial(&name)?, now)))),
        }
    }

    pub(super) fn serial(&self, name: &str) -> Result<u64, RequestError> {
        self.names.get(name).copied().ok_or_else(|| RequestError::NoSuchJob(name.to_owned()))
    }

    /// Returns the serial of the job of this name if it has not ended.
    fn active(&self, name: &str) -> Result<u64, RequestError> {
        let serial = self.serial(name)?;
        let over = self.records.get(&serial).is_none_or(Record::is_over);
        if over { Err(RequestError::Ended(name.to_owned())) } else { Ok(serial) }
    }

    /// Returns the serial of the service of this name if it has not ended and is not being stopped.
    fn service(&self, name: &str) -> Result<u64, RequestError> {
        let serial = self.active(name)?;
        let record = &self.records[&serial];
        if record.kind() != Kind::Service {
            return Err(RequestError::NotAService(name.to_owned(), record.kind()));
        }
        if record.head.goal == Goal::Stop {
            return Err(RequestError::BeingStopped(name.to_owned()));
        }
        Ok(serial)
    }

    fn submit(&mut self, jobs: Vec<Job>, now: Time) -> Result<Reply, RequestError> {
        self.check_room(&jobs)?;
        let mut names = BTreeSet::new();
        for job in &jobs {
            if !names.insert(&job.name) {
                return Err(RequestError::Twice(job.name.clone()));
            }
            self.check_name(job)?;
        }
        let submitted = jobs.into_iter().map(|job| self.submit_one(job, now)).collect();
        Ok(Reply::Submitted(submitted))
    }

    /// Submits the jobs that do not exist already, and returns the results for all in their order.
    fn resume(&mut self, jobs: Vec<Job>, now: Time) -> Result<Reply, RequestError> {
        let there: Vec<Option<Submitted>> = jobs.iter().map(|job| self.is_there(job)).collect();
        let missing = jobs.into_iter().zip(&there).filter(|(_, there)| there.is_none()).map(|(job, _)| job).collect();
        let Reply::Submitted(submitted) = self.submit(missing, now)? else { return Ok(Reply::Done) };
        let mut submitted = submitted.into_iter();
        Ok(Reply::Submitted(there.into_iter().filter_map(|there| there.or_else(|| submitted.next())).collect()))
    }

    /// Returns the newest job of this name if its definition is the same.
    fn is_there(&self, job: &Job) -> Option<Submitted> {
        let record = self.records.get(self.names.get(&job.name)?)?;
        let version = record.current().number;
        record.job().is_same_but_for_secret(job).then(|| Submitted {
            name: job.name.clone(),
            version,
            taken: SubmissionEffect::Unchanged,
        })
    }

    /// Checks the limits of jobs and tasks for these jobs; services that get a new version count once.
    fn check_room(&self, jobs: &[Job]) -> Result<(), RequestError> {
        if jobs.iter().any(|job| job.count > COUNT_MAX) {
            return Err(RequestError::TooMany);
        }
        let active = self.records.values().filter(|r| !r.is_over());
        let (count, tasks) = active.fold((0, 0), |(n, tasks), r| (n + 1, tasks + u64::from(r.job().count)));
        let replaced: Vec<&Record> = jobs.iter().filter_map(|job| self.running(&job.name)).collect();
        let more: u64 = jobs.iter().map(|job| u64::from(job.count)).sum();
        let fewer: u64 = replaced.iter().map(|record| u64::from(record.job().count)).sum();
        let jobs_then = count + jobs.len() - replaced.len().min(jobs.len());
        let full = jobs_then > JOBS_MAX || (tasks + more).saturating_sub(fewer) > TASKS_MAX;
        if full { Err(RequestError::Full) } else { Ok(()) }
    }

    /// Returns the job of this name if it has not ended.
    fn running(&self, name: &str) -> Option<&Record> {
        self.records.get(self.names.get(name)?).filter(|r| !r.is_over())
    }

    fn check_name(&self, job: &Job) -> Result<(), RequestError> {
        let name = || job.name.clone();
        let Some(record) = self.names.get(&job.name).and_then(|serial| self.records.get(serial)) else { return Ok(()) };
        match (record.is_over(), record.kind() == Kind::Service && job.kind == Kind::Service, record.head.goal) {
            (true, _, _) => Ok(()),
            (false, true, Goal::Run) => Ok(()),
            (false, true, Goal::Stop) => Err(RequestError::BeingStopped(name())),
            (false, false, _) => Err(RequestError::NameTaken(name())),
        }
    }

    fn submit_one(&mut self, job: Job, now: Time) -> Submitted {
        let name = job.name.clone();
        let there = self.names.get(&name).copied().filter(|s| self.records.get(s).is_some_and(|r| !r.is_over()));
        let (serial, taken) = match there {
            Some(serial) => (serial, self.update_service(serial, job, now)),
            None => (self.add_job(job, now), SubmissionEffect::New),
        };
        self.jobs_to_advance.insert(serial);
        let version = self.records.get(&serial).map_or(1, |r| r.current().number);
        if taken != SubmissionEffect::Unchanged {
            self.record_event(JobEvent::Submitted { name: name.clone(), version, taken });
        }
        Submitted { name, version, taken }
    }

    fn add_job(&mut self, job: Job, now: Time) -> u64 {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.names.insert(job.name.clone(), serial);
        let numbers = if job.kind == Kind::Service { 0 } else { job.count };
        self.records.insert(serial, Record::new(serial, job, now));
        self.changed.meta = true;
        self.changed.heads.insert(serial);
        for number in 0..numbers {
            self.enqueue(serial, number, now);
        }
        self.update_fitting_ranks(serial, now);
        serial
    }

    fn update_service(&mut self, serial: u64, job: Job, now: Time) -> SubmissionEffect {
        let Some(record) = self.records.get_mut(&serial) else { return SubmissionEffect::Unchanged };
        if **record.job() == job {
            return SubmissionEffect::Unchanged;
        }
        self.changed.heads.insert(serial);
        record.head.deploying = true;
        if record.job().is_same_but_for_count(&job) {
            record.set_count(job.count, now);
            return SubmissionEffect::Scaled;
        }
        let before = record.job().priority;
        let after = job.priority;
        record.add_version(job, now);
        if before != after {
            self.requeue(serial, before, now);
        }
        SubmissionEffect::Updated
    }

    /// Moves a job in the queue after a change of its priority.
    fn requeue(&mut self, serial: u64, before: i32, now: Time) {
        self.queue.remove_job((std::cmp::Reverse(before), serial));
        let Some(record) = self.records.get(&serial) else { return };
        let waiting: Vec<u32> = record.instances().iter().filter(|(_, i)| i.is_waiting()).map(|(n, _)| *n).collect();
        for number in waiting {
            self.enqueue(serial, number, now);
        }
    }

    fn stop(&mut self, name: &str, now: Time, calls: &mut Calls) -> Result<Reply, RequestError> {
        let serial = self.active(name)?;
        let Some(record) = self.records.get_mut(&serial) else { return Ok(Reply::Done) };
        record.head.goal = Goal::Stop;
        let key = Core::key(record);
        let tasks: Vec<(u32, bool)> = record.instances().iter().map(|(n, i)| (*n, i.is_waiting())).collect();
        self.changed.heads.insert(serial);
        self.queue.remove_job(key);
        if self.gathering == Some(serial) {
            self.gathering = None;
        }
        for (number, waiting) in tasks {
            if !waiting {
                self.stop_task(serial, number, StopReason::Job, calls);
            } else if let Some(record) = self.records.get_mut(&serial) {
                record.change(number, |instance| instance.phase = Phase::Done { ok: false, at: now });
                self.changed.instances.insert((serial, number));
            }
        }
        self.jobs_to_advance.insert(serial);
        self.record_event(JobEvent::Stopping { name: name.to_owned() });
        Ok(Reply::Done)
    }

    fn scale(&mut self, name: &str, count: u32, now: Time) -> Result<Reply, RequestError> {
        let serial = self.service(name)?;
        let wanted = Job { count, ..(**self.records[&serial].job()).clone() };
        self.check_room(&[wanted])?;
        if let Some(record) = self.records.get_mut(&serial) {
            record.set_count(count, now);
            record.head.deploying = true;
            let version = record.current().number;
            self.changed.heads.insert(serial);
            self.jobs_to_advance.insert(serial);
            self.record_event(JobEvent::Submitted { name: name.to_owned(), version, taken: SubmissionEffect::Scaled });
        }
        Ok(Reply::Done)
    }

    fn restart(&mut self, name: &str, now: Time) -> Result<Reply, RequestError> {
        let serial = self.service(name)?;
        if let Some(record) = self.records.get_mut(&serial) {
            let job = (**record.job()).clone();
            record.add_version(job, now);
            record.head.deploying = true;
            let version = record.current().number;
            self.changed.heads.insert(serial);
            self.jobs_to_advance.insert(serial);
            self.record_event(JobEvent::Submitted { name: name.to_owned(), version, taken: SubmissionEffect::Updated });
        }
        Ok(Reply::Done)
    }

    fn kill(
        &mut self,
        name: &str,
        numbers: &[u32],
        scale: bool,
        now: Time,
        calls: &mut Calls,
    ) -> Result<Reply, RequestError> {
        let serial = if scale { self.service(name)? } else { self.active(name)? };
        let record = &self.records[&serial];
        if let Some(missing) = numbers.iter().find(|n| record.get(**n).is_none()) {
            return Err(RequestError::NoSuchTask(name.to_owned(), *missing));
        }
        // A repeated number is one task.
        let numbers: BTreeSet<u32> = match numbers {
            [] => record.instances().keys().copied().collect(),
            some => some.iter().copied().collect(),
        };
        if scale {
            let fewer = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let count = record.job().count.saturating_sub(fewer);
            self.scale(name, count, now)?;
        }
        for number in numbers {
            let waiting = self.records.get(&serial).and_then(|r| r.get(number)).is_some_and(|i| i.is_waiting());
            match (scale, waiting) {
                (true, true) => self.drop_waiting(serial, number, now),
                (true, false) => self.stop_task(serial, number, StopReason::Surplus, calls),
                (false, _) => self.stop_task(serial, number, StopReason::Replace, calls),
            }
        }
        self.jobs_to_advance.insert(serial);
        Ok(Reply::Done)
    }

    fn forget_named(&mut self, name: &str) -> Result<Reply, RequestError> {
        let serial = self.serial(name)?;
        if self.records.get(&serial).is_some_and(|r| !r.is_over()) {
            return Err(RequestError::Runs(name.to_owned()));
        }
        self.ended.retain(|ended| *ended != serial);
        self.forget(serial);
        Ok(Reply::Done)
    }

    fn leave(&mut self, teardown: bool, calls: &mut Calls) {
        if !teardown {
            return calls.stop();
        }
        for serial in self.records.keys().copied().collect::<Vec<_>>() {
            self.forget(serial);
        }
        self.save(calls);
        calls.teardown();
    }

    /// Returns summaries of the newest job of each name, in the order of submission.
    pub(super) fn summaries(&self, now: Time) -> Vec<JobSummary> {
        let newest = |record: &&Record| self.names.get(record.name()) == Some(&record.head.serial);
        self.records.values().filter(newest).map(|record| self.summary(record, now)).collect()
    }
}
