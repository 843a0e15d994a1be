//! What a scheduler reports: values to be printed as tables, or as JSON.
//!
//! Instants are seconds since 1970. It decides nothing.

use std::sync::Arc;

use base::Time;
use jobs::{Need, Place};
use serde::{Deserialize, Serialize};

use super::record::{Counts, Goal, Outcome, Phase, Record, StagePhase, Step, Task};
use super::tuning::TuningView;
use super::{Core, sizes};
use crate::job::{Class, Job};
use crate::order::Explanation;
use crate::sizing::{Sizing, Wave};

/// How many tasks one page has.
pub const PAGE: usize = 1_000;

/// What a job, a stage or a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for other stages.
    Blocked,
    /// Its input is being examined.
    Planning,
    /// It waits for room, or for its next attempt.
    Waiting,
    /// It was launched, and does not run yet.
    Staging,
    /// It runs, or a part of it does.
    Running,
    /// Its agent does not answer.
    Unreachable,
    /// It is ending: a kill was sent.
    Ending,
    /// It has finished.
    Finished,
    /// It has failed for good.
    Failed,
    /// A user has cancelled it.
    Cancelled,
    /// It was left out.
    Dropped,
}

/// An event, for followers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happening {
    /// A job is new.
    Submitted {
        /// The job's name.
        name: String,
    },
    /// A job is being cancelled.
    Cancelling {
        /// The job's name.
        name: String,
    },
    /// A stage may run, or has finished.
    Stage {
        /// The job's name.
        name: String,
        /// The stage's name.
        stage: String,
        /// Where it is.
        phase: StagePhase,
    },
    /// A job has ended.
    Ended {
        /// The job's name.
        name: String,
        /// The outcome.
        outcome: Outcome,
        /// Why, if it has failed.
        why: String,
    },
    /// What a job left in the shared directory was removed, except what it keeps.
    Removed {
        /// The job's name.
        name: String,
    },
    /// What a job left in the shared directory cannot be removed; the framework's next start tries again.
    NotRemoved {
        /// The job's name.
        name: String,
        /// The reason.
        why: String,
    },
    /// The order of stages decides in another way than before.
    Order {
        /// What decides now.
        order: String,
        /// The reason.
        note: String,
    },
    /// A task has a new state.
    Task {
        /// The job's name.
        name: String,
        /// The stage's name.
        stage: String,
        /// The task's number.
        index: u32,
        /// Its id on the cluster.
        task_id: String,
        /// The state, in Mesos's words.
        state: String,
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
    /// Finished tasks whose outputs were gone, so that they run again.
    pub remade: u64,
    /// Tasks that were left out.
    pub dropped: u64,
}

/// How long a slot takes from a launch until its task runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MovingView {
    /// Mean in milliseconds.
    pub mean_millis: f64,
    /// Number of measurements.
    pub count: u64,
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
    /// The order of stages.
    pub order: String,
    /// Its last decision, if it can explain it; jobs have their serials there.
    pub decision: Option<Explanation>,
    /// All tasks of jobs that have not ended, by what they do.
    pub tasks: Counts,
    /// Since the start.
    pub totals: Totals,
    /// The time that a slot needs.
    pub moving: MovingView,
    /// Core-seconds that are left for sprints.
    pub sprint_budget: f64,
    /// What was found for drops and sprints, if the settings choose them by themselves.
    pub tuning: Option<TuningView>,
    /// Ended jobs of which leftovers are being removed.
    pub removing: usize,
    /// Jobs, in the order of submission.
    pub jobs: Vec<JobSummary>,
}

/// A job in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobSummary {
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: State,
    /// Its class of priority.
    pub priority: Class,
    /// How many stages it has.
    pub stages: usize,
    /// How many of them have finished.
    pub stages_done: usize,
    /// Tasks by what they do, as far as they are known.
    pub tasks: Counts,
    /// When it was submitted.
    pub submitted: f64,
    /// How long it took or takes, in seconds.
    pub age: f64,
    /// When it ended.
    pub ended: Option<f64>,
    /// Why it has failed.
    pub why: String,
}

/// A job with its stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    /// In short.
    pub summary: JobSummary,
    /// Its definition.
    pub job: Arc<Job>,
    /// Its number among all jobs.
    pub serial: u64,
    /// Its stages, each after those that it waits for.
    pub stages: Vec<StageView>,
    /// Why tasks wait, in words.
    pub why: Vec<String>,
    /// What was found for drops and sprints of its class, in words.
    pub tuned: Vec<String>,
}

/// A stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageView {
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: State,
    /// The names of those that it waits for.
    pub after: Vec<String>,
    /// Tasks by what they do, as far as they are known.
    pub tasks: Counts,
    /// What one task needs.
    pub need: Need,
    /// The number of its tasks, once it is known.
    pub total: Option<u32>,
    /// The mean duration of its tasks in seconds.
    pub mean: Option<f64>,
    /// The longest run of those that run now, in seconds.
    pub longest: f64,
    /// When its tasks could begin.
    pub opened: Option<f64>,
    /// When its last task finished.
    pub ended: Option<f64>,
    /// Where its outputs are, if all agents share a directory.
    pub directory: Option<String>,
    /// Whether they were removed from there because the job has ended and does not keep them.
    pub removed: bool,
    /// The sizes of its tasks, where they are found on the way.
    pub sizing: Option<SizingView>,
    /// What its values are estimated to be.
    pub estimate: Option<EstimateView>,
}

/// How the size of a stage's tasks was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizingView {
    /// What is counted: bytes, lines, records, files or numbers.
    pub unit: String,
    /// The size at present.
    pub size: u64,
    /// Units that no task was given.
    pub left: u64,
    /// Why, in words.
    pub why: String,
    /// The waves, first to last: size and rate of each.
    pub waves: Vec<Wave>,
}

/// An estimate from the tasks that ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EstimateView {
    /// What is estimated: sum, count or mean.
    pub statistic: String,
    /// The estimate.
    pub value: f64,
    /// By how much the true value may differ; none from a single task.
    pub bound: Option<f64>,
    /// How sure that is.
    pub confidence: f64,
    /// Tasks that have reported a value.
    pub tasks: u32,
    /// Tasks that there are, those left out included.
    pub of: u32,
}

/// Tasks of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskPage {
    /// The tasks, by number.
    pub tasks: Vec<TaskView>,
    /// The first number of the next page, if there is one.
    pub next: Option<u32>,
}

/// A task that was launched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskView {
    /// Its number in its stage.
    pub number: u32,
    /// What it does.
    pub state: State,
    /// Where it is, or was last.
    pub place: Option<Place>,
    /// How often it was launched.
    pub attempts: u32,
    /// How often it has failed.
    pub failures: u32,
    /// How long it took, in seconds.
    pub took: Option<f64>,
    /// Since when it runs.
    pub running: Option<f64>,
    /// How many units of the input it was given.
    pub units: u64,
    /// The value that it has reported.
    pub value: Option<f64>,
    /// The message of its last end.
    pub message: String,
}

impl Core {
    /// The scheduler and its jobs in short.
    pub fn status(&self, now: Time) -> Status {
        let mut tasks = Counts::default();
        for counts in self.active.iter().filter_map(|s| self.records.get(s)).map(Record::counts) {
            tasks.waiting = tasks.waiting.saturating_add(counts.waiting);
            tasks.live += counts.live;
            tasks.finished += counts.finished;
            tasks.failed += counts.failed;
            tasks.dropped += counts.dropped;
        }
        let newest = |record: &&Record| self.names.get(record.name()) == Some(&record.serial);
        Status {
            framework_id: self.framework_id.clone(),
            connected: self.attention.subscribed,
            suppressed: self.attention.suppressed,
            order: self.order.name(),
            decision: self.order.explain(),
            tasks,
            totals: self.totals,
            moving: MovingView { mean_millis: self.moving.mean, count: self.moving.count },
            sprint_budget: self.sprints.left(now),
            tuning: self.tuning_view(),
            removing: self.removals.under_way(),
            jobs: self.records.values().filter(newest).map(|record| summary(record, now)).collect(),
        }
    }

    pub(super) fn show(&self, serial: u64, now: Time) -> JobView {
        let record = &self.records[&serial];
        JobView {
            summary: summary(record, now),
            job: record.job.clone(),
            serial,
            stages: (0..record.stages.len()).map(|stage| self.stage_view(record, stage, now)).collect(),
            why: self.why(record, now),
            tuned: self.tuned(record),
        }
    }

    fn stage_view(&self, record: &Record, place: usize, now: Time) -> StageView {
        let (stage, run) = (record.stage(place), &record.stages[place]);
        let mut tasks = run.counts;
        tasks.waiting = tasks.waiting.saturating_add(run.fresh());
        let directory = self.directory(record, place).filter(|_| !stage.outputs.is_empty());
        StageView {
            name: stage.name.clone(),
            state: stage_state(record, place),
            after: stage.after.iter().map(|&before| record.stage(before).name.clone()).collect(),
            tasks,
            need: stage.need,
            total: run.head.total,
            mean: run.mean().map(|millis| millis / 1e3),
            longest: self.longest_run(record.serial, place, now).as_secs_f64(),
            opened: run.head.opened.map(Time::as_secs_f64),
            ended: run.head.ended.map(Time::as_secs_f64),
            removed: directory.is_some() && self.is_removed(record, place),
            directory,
            sizing: sizing_view(record, place),
            estimate: self.estimate_view(record, place),
        }
    }

    pub(super) fn task_page(&self, record: &Record, stage: usize, from: u32) -> TaskPage {
        let tasks = record.stages[stage].tasks();
        let page: Vec<TaskView> =
            tasks.range(from..).take(PAGE).map(|(index, task)| task_view(record, stage, *index, task)).collect();
        let last = page.last().map(|task| task.number);
        let next = last.and_then(|last| tasks.range(last.saturating_add(1)..).next()).map(|(index, _)| *index);
        TaskPage { tasks: page, next }
    }
}

fn summary(record: &Record, now: Time) -> JobSummary {
    JobSummary {
        name: record.name().to_owned(),
        state: job_state(record),
        priority: record.job.priority,
        stages: record.stages.len(),
        stages_done: record.stages.iter().filter(|run| run.head.phase == StagePhase::Done).count(),
        tasks: record.counts(),
        submitted: record.submitted.as_secs_f64(),
        age: record.ended.unwrap_or(now).since(record.submitted).as_secs_f64(),
        ended: record.ended.map(Time::as_secs_f64),
        why: record.why.clone(),
    }
}

fn job_state(record: &Record) -> State {
    match (record.outcome, record.goal) {
        (Some(Outcome::Finished), _) => State::Finished,
        (Some(Outcome::Failed), _) => State::Failed,
        (Some(Outcome::Cancelled), _) => State::Cancelled,
        (None, Goal::Cancel | Goal::Fail) => State::Ending,
        (None, Goal::Run) if record.live() > 0 => State::Running,
        (None, Goal::Run) if record.stages.iter().any(|run| run.head.phase == StagePhase::Planning) => State::Planning,
        (None, Goal::Run) => State::Waiting,
    }
}

fn stage_state(record: &Record, place: usize) -> State {
    let run = &record.stages[place];
    match run.head.phase {
        StagePhase::Done => State::Finished,
        _ if run.counts.failed > 0 && record.goal == Goal::Fail => State::Failed,
        _ if record.goal != Goal::Run => State::Cancelled,
        StagePhase::Planning => State::Planning,
        _ if run.counts.live > 0 => State::Running,
        StagePhase::Open if record.is_unblocked(place) => State::Waiting,
        StagePhase::Open | StagePhase::Blocked => State::Blocked,
    }
}

fn sizing_view(record: &Record, place: usize) -> Option<SizingView> {
    let run = &record.stages[place];
    let unit = sizes::unit(record.stage(place))?.to_owned();
    match run.sizing.as_ref()? {
        Sizing::Tuned(tuner) => Some(SizingView {
            unit,
            size: tuner.size(),
            left: run.left,
            why: tuner.explain().to_string(),
            waves: tuner.waves().copied().collect(),
        }),
        Sizing::Fixed(fixed) => Some(SizingView {
            unit,
            size: fixed.size(),
            left: run.left,
            why: "the size is that of the job file, or follows the time that it asks for".to_owned(),
            waves: Vec::new(),
        }),
    }
}

fn task_view(record: &Record, stage: usize, index: u32, task: &Task) -> TaskView {
    let state = match task.phase {
        Phase::Waiting(_) => State::Waiting,
        Phase::Live { stopping: true, .. } => State::Ending,
        Phase::Live { step: Step::Staging, .. } => State::Staging,
        Phase::Live { step: Step::Running, .. } => State::Running,
        Phase::Live { step: Step::Unreachable, .. } => State::Unreachable,
        Phase::Done { .. } => State::Finished,
        Phase::Failed => State::Failed,
        Phase::Dropped => State::Dropped,
    };
    let place = (task.attempts > 0).then(|| Place {
        task_id: record.task_id(stage, index, task.attempts),
        agent_id: task.machine.id.clone(),
        host: task.machine.host.clone(),
        agent: task.machine.address.clone(),
        ports: Vec::new(),
    });
    TaskView {
        number: index,
        state,
        place,
        attempts: task.attempts,
        failures: task.failures,
        took: match task.phase {
            Phase::Done { millis, .. } => Some(f64::from(millis) / 1e3),
            _ => None,
        },
        running: match task.phase {
            Phase::Live { running, .. } => running.map(Time::as_secs_f64),
            _ => None,
        },
        units: task.part.2,
        value: task.value,
        message: task.message.as_deref().unwrap_or_default().to_owned(),
    }
}
