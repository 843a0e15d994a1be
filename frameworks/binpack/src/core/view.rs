//! Reports of the scheduler: values to be printed as tables, or as JSON.
//!
//! Times are seconds since 1970. It decides nothing.

use std::sync::Arc;

use base::Time;
use serde::{Deserialize, Serialize};

use super::Core;
use super::record::{Counts, Goal, Outcome, Record, RemovedTask, Version};
use super::requests::SubmissionEffect;
use super::sizing::SizingView;
use super::updates::state_of;
use super::why::{Impossible, Unsatisfied};
use crate::job::{Job, Kind};
use crate::place::Policy;
use crate::{Knobs, Need};
use jobs::Place;

/// State of a job or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The task waits to be placed.
    Waiting,
    /// The task has failed, and waits for its next attempt.
    Restarting,
    /// The task was launched, and does not run yet.
    Staging,
    /// The task or job runs.
    Running,
    /// The task runs, and its health check fails.
    Unhealthy,
    /// The task's agent is unreachable.
    Unreachable,
    /// The task or job is ending: kills were sent.
    Ending,
    /// A service is being replaced by its next version, or scaled to another count.
    Deploying,
    /// The task or job has finished.
    Finished,
    /// The task or job has failed for good.
    Failed,
    /// A user stopped the job.
    Stopped,
}

/// An event for followers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JobEvent {
    /// A job is new or has changed.
    Submitted {
        /// Name of the job.
        name: String,
        /// Number of the current version.
        version: u64,
        /// Effect of the submission.
        taken: SubmissionEffect,
    },
    /// A job is being stopped.
    Stopping {
        /// Name of the job.
        name: String,
    },
    /// A service has reached its goal: all of its tasks are of this version, and healthy.
    Deployed {
        /// Name of the service.
        name: String,
        /// Number of the version.
        version: u64,
    },
    /// A job has ended.
    Ended {
        /// Name of the job.
        name: String,
        /// Outcome of the job.
        outcome: Outcome,
    },
    /// A task has a new state.
    Task {
        /// Name of the job.
        name: String,
        /// Kind of the job.
        kind: Kind,
        /// Number of the task.
        number: u32,
        /// Number of the task's version of the job.
        version: u64,
        /// Start time of that version, in seconds since 1970.
        since: f64,
        /// Place of the task.
        #[serde(flatten)]
        place: Place,
        /// State of the task, by its name in Mesos.
        state: String,
        /// Result of the task's health check.
        healthy: Option<bool>,
        /// Message of the update.
        message: String,
    },
}

/// Counts of tasks since the start of the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Tasks that were launched.
    pub launched: u64,
    /// Tasks that have finished.
    pub finished: u64,
    /// Tasks that have failed or were killed.
    pub failed: u64,
    /// Tasks that were lost with their agent, or before they reached it.
    pub lost: u64,
}

/// State of the scheduler, with summaries of its jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Id of the framework; `None` before the first subscription.
    pub framework_id: Option<String>,
    /// Whether the framework is subscribed with a master.
    pub connected: bool,
    /// Whether the framework has suppressed offers.
    pub suppressed: bool,
    /// Settings of the scheduler.
    pub knobs: Knobs,
    /// Placement policy of jobs that set none.
    pub policy: Policy,
    /// Number of agents whose offers the framework holds now.
    pub held: usize,
    /// Numbers of all tasks, by phase.
    pub tasks: Counts,
    /// Resources that the framework's tasks use now.
    pub used: Need,
    /// Counts of tasks since the start.
    pub totals: Totals,
    /// Agents that are avoided because tasks failed there that succeed elsewhere.
    pub avoided: Vec<String>,
    /// Summaries of the jobs, in the order of submission.
    pub jobs: Vec<JobSummary>,
}

/// Summary of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobSummary {
    /// Name of the job.
    pub name: String,
    /// Kind of the job.
    pub kind: Kind,
    /// State of the job.
    pub state: State,
    /// Number of the current version.
    pub version: u64,
    /// Requested number of tasks.
    pub count: u32,
    /// Numbers of tasks, by phase.
    pub tasks: Counts,
    /// Number of tasks that run and are healthy, as far as that is known.
    pub well: u32,
    /// Resources of one task.
    pub need: Need,
    /// Time of the submission.
    pub submitted: f64,
    /// Time from the submission to the end, or to now, in seconds.
    pub age: f64,
    /// End of the job; `None` while it has not ended.
    pub ended: Option<f64>,
}

/// A job with its tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    /// Summary of the job.
    pub summary: JobSummary,
    /// Versions of the job, the oldest first; the last is the current one.
    pub versions: Vec<VersionView>,
    /// Whether a service is being changed.
    pub deploying: bool,
    /// Whether the job is being stopped, or was.
    pub stopping: bool,
    /// Tasks of the job.
    pub tasks: Vec<TaskView>,
    /// Removed tasks of a service, the oldest first.
    pub past: Vec<RemovedTask>,
    /// Reasons why tasks wait, for people.
    pub why: Vec<String>,
    /// Constraint that no known agent satisfies, if there is one.
    pub unsatisfied: Option<Unsatisfied>,
    /// Reason why none of the known agents can ever run the job, if there is one.
    pub impossible: Option<Impossible>,
    /// Resources that new launches request, with active sizing.
    pub sizing: Option<SizingView>,
}

/// A version of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionView {
    /// Number of the version, from 1. Consecutive versions that differ only in the count have the same number.
    pub number: u64,
    /// Start time of the version.
    pub since: f64,
    /// Definition of the job.
    pub job: Arc<Job>,
}

/// A task of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskView {
    /// Number of the task.
    pub number: u32,
    /// For services: the smallest number that no other task of the version has.
    pub index: u32,
    /// Number of the task's version of the job.
    pub version: u64,
    /// State of the task.
    pub state: State,
    /// Place of the task, or its last one.
    pub place: Option<Place>,
    /// Result of the task's health check.
    pub healthy: Option<bool>,
    /// Number of launches of the task.
    pub attempts: u32,
    /// Number of failures in a row.
    pub failures: u32,
    /// Time of the last launch.
    pub launched: Option<f64>,
    /// Time since which the task runs.
    pub running: Option<f64>,
    /// Message of the task's last end.
    pub message: String,
    /// Resources of the task while it is on an agent.
    pub given: Option<Need>,
}

impl Core {
    /// Returns the state of the scheduler, with summaries of its jobs.
    pub fn status(&self, now: Time) -> Status {
        let mut tasks = Counts::default();
        for counts in self.records.values().filter(|r| !r.is_over()).map(Record::counts) {
            tasks.waiting += counts.waiting;
            tasks.live += counts.live;
            tasks.finished += counts.finished;
            tasks.failed += counts.failed;
            tasks.stopped += counts.stopped;
        }
        Status {
            framework_id: self.framework_id.clone(),
            connected: self.offer_state.subscribed,
            suppressed: self.offer_state.suppressed,
            knobs: self.knobs.clone(),
            policy: self.knobs.policy,
            held: self.offers.len(),
            tasks,
            used: self.usage.values().fold(Need::default(), |all, used| all.plus(used)),
            totals: self.totals,
            avoided: self.agents.avoided().map(str::to_owned).collect(),
            jobs: self.summaries(now),
        }
    }

    pub(super) fn summary(&self, record: &Record, now: Time) -> JobSummary {
        let job = record.job();
        let has_check = job.health.is_some();
        let well = record.instances().values().filter(|i| i.is_healthy(has_check)).count();
        let head = &record.head;
        JobSummary {
            name: job.name.clone(),
            kind: job.kind,
            state: job_state(record),
            version: record.current().number,
            count: job.count,
            tasks: record.counts(),
            well: u32::try_from(well).unwrap_or(u32::MAX),
            need: job.need,
            submitted: head.submitted.as_secs_f64(),
            age: head.ended.unwrap_or(now).since(head.submitted).as_secs_f64(),
            ended: head.ended.map(Time::as_secs_f64),
        }
    }

    pub(super) fn show(&self, serial: u64, now: Time) -> JobView {
        let record = &self.records[&serial];
        let waits = record.counts().waiting > 0;
        JobView {
            summary: self.summary(record, now),
            versions: record.versions().iter().map(version_view).collect(),
            deploying: record.head.deploying && record.kind() == Kind::Service,
            stopping: record.head.goal == Goal::Stop,
            tasks: record.instances().keys().map(|number| task_view(record, *number)).collect(),
            past: record.past.iter().cloned().collect(),
            why: self.why(record, now),
            unsatisfied: if waits { self.unsatisfied(record) } else { None },
            impossible: if waits { self.impossible(record) } else { None },
            sizing: self.sizing_view(record),
        }
    }
}

fn version_view(version: &Version) -> VersionView {
    VersionView { number: version.number, since: version.since.as_secs_f64(), job: version.job.clone() }
}

fn job_state(record: &Record) -> State {
    match (record.head.outcome, record.head.goal, record.kind()) {
        (Some(Outcome::Finished), _, _) => State::Finished,
        (Some(Outcome::Failed), _, _) => State::Failed,
        (Some(Outcome::Stopped), _, _) => State::Stopped,
        (None, Goal::Stop, _) => State::Ending,
        (None, Goal::Run, Kind::Service) if record.head.deploying => State::Deploying,
        // No task is requested, and none exists.
        (None, Goal::Run, Kind::Service) if record.job().count == 0 => State::Running,
        (None, Goal::Run, _) => {
            let states = record.instances().keys().map(|number| state_of(record, *number));
            let lively = |state: &State| match state {
                State::Running => 5,
                State::Unhealthy => 4,
                State::Unreachable | State::Ending => 3,
                State::Staging => 2,
                State::Restarting => 1,
                _ => 0,
            };
            // An array with finished and waiting tasks is not finished.
            states.max_by_key(lively).filter(|s| lively(s) > 0).unwrap_or(State::Waiting)
        }
    }
}

fn task_view(record: &Record, number: u32) -> TaskView {
    let instance = &record.instances()[&number];
    let live = instance.live();
    TaskView {
        number,
        index: instance.slot,
        version: instance.version,
        state: state_of(record, number),
        place: instance.last.clone(),
        healthy: live.and_then(|l| l.healthy),
        attempts: instance.attempts,
        failures: instance.failures,
        launched: live.map(|l| l.launched.as_secs_f64()),
        running: live.and_then(|l| l.running).map(Time::as_secs_f64),
        message: instance.message.clone(),
        given: live.map(|l| l.need),
    }
}
