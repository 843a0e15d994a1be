//! What a scheduler reports: values to be printed as tables, or as JSON.
//!
//! Instants are seconds since 1970. It decides nothing.

use std::sync::Arc;

use base::Time;
use serde::{Deserialize, Serialize};

use super::Core;
use super::record::{Counts, Goal, Outcome, Past, Record, Version};
use super::requests::Taken;
use super::sizing::SizingView;
use super::updates::state_of;
use super::why::Unsatisfied;
use crate::job::{Job, Kind};
use crate::place::Policy;
use crate::{Knobs, Need};
use jobs::Place;

/// What a job or a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for room.
    Waiting,
    /// It has failed, and waits for its next attempt.
    Restarting,
    /// It was launched, and does not run yet.
    Staging,
    /// It runs.
    Running,
    /// It runs, and its health check fails.
    Unhealthy,
    /// Its agent does not answer.
    Unreachable,
    /// It is ending: a kill was sent.
    Ending,
    /// A service is being replaced by its next version, or brought to another count.
    Deploying,
    /// It has finished.
    Finished,
    /// It has failed for good.
    Failed,
    /// A user stopped it.
    Stopped,
}

/// An event, for followers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happening {
    /// A job is new or has changed.
    Submitted {
        /// The job's name.
        name: String,
        /// The current version.
        version: u64,
        /// In which way.
        taken: Taken,
    },
    /// A job is being stopped.
    Stopping {
        /// The job's name.
        name: String,
    },
    /// A service has reached its goal: all of its tasks are of this version, and healthy.
    Deployed {
        /// The service's name.
        name: String,
        /// Its version.
        version: u64,
    },
    /// A job has ended.
    Ended {
        /// The job's name.
        name: String,
        /// The outcome.
        outcome: Outcome,
    },
    /// A task has a new state.
    Task {
        /// The job's name.
        name: String,
        /// What kind of job that is.
        kind: Kind,
        /// The task's number.
        number: u32,
        /// The version that it is of.
        version: u64,
        /// Start time of that version, in seconds since 1970.
        since: f64,
        /// Where it is.
        #[serde(flatten)]
        place: Place,
        /// The state, in Mesos's words.
        state: String,
        /// Result of its health check.
        healthy: Option<bool>,
        /// Its message.
        message: String,
    },
}

/// What became of tasks since the scheduler was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Tasks that were launched.
    pub launched: u64,
    /// Tasks that have finished.
    pub finished: u64,
    /// Tasks that have failed or were killed.
    pub failed: u64,
    /// Tasks that were lost with their agent, or on the way.
    pub lost: u64,
}

/// The scheduler and its jobs in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The framework's id, once there is one.
    pub framework_id: Option<String>,
    /// Whether there is a master.
    pub connected: bool,
    /// Whether it has suppressed offers.
    pub suppressed: bool,
    /// How it behaves.
    pub knobs: Knobs,
    /// The placement policy of jobs that name none.
    pub policy: Policy,
    /// Agents whose offers it holds now.
    pub held: usize,
    /// All tasks, by what they do.
    pub tasks: Counts,
    /// What its tasks use now.
    pub used: Need,
    /// Since the start.
    pub totals: Totals,
    /// Agents that are avoided because tasks failed there that succeed elsewhere.
    pub avoided: Vec<String>,
    /// Jobs, in the order of submission.
    pub jobs: Vec<JobSummary>,
}

/// A job in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobSummary {
    /// Its name.
    pub name: String,
    /// What kind of work it is.
    pub kind: Kind,
    /// What it does.
    pub state: State,
    /// The current version.
    pub version: u64,
    /// Requested number of tasks.
    pub count: u32,
    /// Tasks by what they do.
    pub tasks: Counts,
    /// How many run, and are well as far as is known.
    pub well: u32,
    /// What one task needs.
    pub need: Need,
    /// When it was submitted.
    pub submitted: f64,
    /// How long it took or takes, in seconds.
    pub age: f64,
    /// When it ended.
    pub ended: Option<f64>,
}

/// A job with its tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    /// In short.
    pub summary: JobSummary,
    /// Its versions, oldest first; the last is the current one.
    pub versions: Vec<VersionView>,
    /// Whether a service is being changed.
    pub deploying: bool,
    /// Whether it is being stopped, or was.
    pub stopping: bool,
    /// Its tasks.
    pub tasks: Vec<TaskView>,
    /// Tasks of a service that are gone, oldest first.
    pub past: Vec<Past>,
    /// Why tasks wait, in words.
    pub why: Vec<String>,
    /// The constraint that keeps waiting tasks off every agent, if there is one.
    pub unsatisfied: Option<Unsatisfied>,
    /// What new launches ask for, with active sizing.
    pub sizing: Option<SizingView>,
}

/// A version of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionView {
    /// Counts from 1. Several that follow each other have the same if they differ in the count alone.
    pub number: u64,
    /// Its start time.
    pub since: f64,
    /// Its definition.
    pub job: Arc<Job>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskView {
    /// Its number.
    pub number: u32,
    /// For services: the smallest number that no other task of the version has.
    pub index: u32,
    /// The version that it is of.
    pub version: u64,
    /// What it does.
    pub state: State,
    /// Where it is, or was last.
    pub place: Option<Place>,
    /// Result of its health check.
    pub healthy: Option<bool>,
    /// How often it was launched.
    pub attempts: u32,
    /// How often in a row it has failed.
    pub failures: u32,
    /// When it was launched last.
    pub launched: Option<f64>,
    /// Since when it runs.
    pub running: Option<f64>,
    /// Message of its last end.
    pub message: String,
    /// What it was given, while it is on an agent.
    pub given: Option<Need>,
}

impl Core {
    /// The scheduler and its jobs in short.
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
            connected: self.attention.subscribed,
            suppressed: self.attention.suppressed,
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
        let well = record.instances().values().filter(|i| i.is_well(has_check)).count();
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
        JobView {
            summary: self.summary(record, now),
            versions: record.versions().iter().map(version_view).collect(),
            deploying: record.head.deploying && record.kind() == Kind::Service,
            stopping: record.head.goal == Goal::Stop,
            tasks: record.instances().keys().map(|number| task_view(record, *number)).collect(),
            past: record.past.iter().cloned().collect(),
            why: self.why(record, now),
            unsatisfied: (record.counts().waiting > 0).then(|| self.unsatisfied(record)).flatten(),
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
            // Finished tasks of an array do not make the rest of it finished.
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
