//! Views of the scheduler's state: values to print as tables or as JSON.
//!
//! Times are seconds since 1970. It decides nothing.

use std::sync::Arc;

use base::Time;
use jobs::{Need, Place};
use serde::{Deserialize, Serialize};

use super::record::{Counts, Goal, LiveState, Outcome, Phase, Record, StagePhase, Task};
use super::tuning::TuningView;
use super::{Core, sizes};
use crate::job::{Class, Job};
use crate::order::Explanation;
use crate::sizing::{Sizing, Wave};

/// Number of tasks on a page.
pub const PAGE: usize = 1_000;

/// The state of a job, a stage or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Waiting for other stages.
    Blocked,
    /// Waiting until the input is examined.
    Planning,
    /// Waiting for resources, or for the next attempt.
    Waiting,
    /// Launched, and not running yet.
    Staging,
    /// Running, at least in part.
    Running,
    /// On an agent that is unreachable.
    Unreachable,
    /// Ending, because a kill was sent.
    Ending,
    /// Finished successfully.
    Finished,
    /// Failed for good.
    Failed,
    /// Cancelled by a user.
    Cancelled,
    /// Dropped without having run.
    Dropped,
}

/// An event that the scheduler reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JobEvent {
    /// A job was submitted.
    Submitted {
        /// Name of the job.
        name: String,
    },
    /// A job is being cancelled.
    Cancelling {
        /// Name of the job.
        name: String,
    },
    /// A stage has a new phase.
    Stage {
        /// Name of the job.
        name: String,
        /// Name of the stage.
        stage: String,
        /// Phase of the stage.
        phase: StagePhase,
    },
    /// A job has ended.
    Ended {
        /// Name of the job.
        name: String,
        /// Outcome of the job.
        outcome: Outcome,
        /// Reason of the failure; empty if the job has not failed.
        why: String,
    },
    /// A job's outputs in the shared directory were removed, except those that it keeps.
    Removed {
        /// Name of the job.
        name: String,
    },
    /// A job's outputs in the shared directory cannot be removed; the framework's next start tries again.
    NotRemoved {
        /// Name of the job.
        name: String,
        /// Reason of the failure.
        why: String,
    },
    /// The order of stages now decides in another way.
    Order {
        /// Name of the order that decides now.
        order: String,
        /// Reason of the change.
        note: String,
    },
    /// A task has a new state.
    Task {
        /// Name of the job.
        name: String,
        /// Name of the stage.
        stage: String,
        /// Number of the task in its stage.
        index: u32,
        /// Id of the task on the cluster.
        task_id: String,
        /// State of the task, as Mesos names it.
        state: String,
        /// Message of the task's status.
        message: String,
    },
}

/// Numbers of tasks since the scheduler was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Number of tasks that were launched.
    pub launched: u64,
    /// Number of tasks that have finished.
    pub finished: u64,
    /// Number of tasks that have failed or were killed.
    pub failed: u64,
    /// Number of tasks that were lost with their agent, or before they reached it.
    pub lost: u64,
    /// Number of finished tasks whose outputs were lost, so that they run again.
    pub remade: u64,
    /// Number of tasks that were dropped.
    pub dropped: u64,
}

/// The time from the launch of a task until it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MovingDelayView {
    /// Mean time in milliseconds.
    pub mean_millis: f64,
    /// Number of measurements.
    pub count: u64,
}

/// A summary of the scheduler and its jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Id of the framework, once it has one.
    pub framework_id: Option<String>,
    /// Whether the scheduler is connected to a master.
    pub connected: bool,
    /// Whether the scheduler has suppressed offers.
    pub suppressed: bool,
    /// Name of the order of stages.
    pub order: String,
    /// Last decision of the order, if it can explain it. Jobs have their serials there.
    pub decision: Option<Explanation>,
    /// Numbers of the tasks of jobs that have not ended, by phase.
    pub tasks: Counts,
    /// Numbers of tasks since the start.
    pub totals: Totals,
    /// Time from the launch of a task until it runs.
    pub moving: MovingDelayView,
    /// Core-seconds that are left for sprints.
    pub sprint_budget: f64,
    /// Learned choices for drops and sprints, if the settings ask for them.
    pub tuning: Option<TuningView>,
    /// Number of ended jobs whose outputs are being removed.
    pub removing: usize,
    /// Summaries of the jobs, in the order of submission.
    pub jobs: Vec<JobSummary>,
}

/// A summary of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobSummary {
    /// Name of the job.
    pub name: String,
    /// State of the job.
    pub state: State,
    /// Priority class of the job.
    pub priority: Class,
    /// Number of the job's stages.
    pub stages: usize,
    /// Number of the job's stages that have finished.
    pub stages_done: usize,
    /// Numbers of the job's tasks by phase, as far as they are known.
    pub tasks: Counts,
    /// Time of the submission.
    pub submitted: f64,
    /// Time from the submission to the end, or until now, in seconds.
    pub age: f64,
    /// Time of the end; `None` if the job has not ended.
    pub ended: Option<f64>,
    /// Reason of the failure; empty if the job has not failed.
    pub why: String,
}

/// A job with its stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    /// Summary of the job.
    pub summary: JobSummary,
    /// Definition of the job.
    pub job: Arc<Job>,
    /// Serial of the job: its number in the order of submission.
    pub serial: u64,
    /// Stages of the job, each after those that it waits for.
    pub stages: Vec<StageView>,
    /// Reasons why tasks of the job wait, in words.
    pub why: Vec<String>,
    /// Reasons of the learned choices for drops and sprints of the job's class, in words.
    pub tuned: Vec<String>,
}

/// A stage of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageView {
    /// Name of the stage.
    pub name: String,
    /// State of the stage.
    pub state: State,
    /// Names of the stages that it waits for.
    pub after: Vec<String>,
    /// Numbers of the stage's tasks by phase, as far as they are known.
    pub tasks: Counts,
    /// Resources that one task needs.
    pub need: Need,
    /// Number of the stage's tasks, once it is known.
    pub total: Option<u32>,
    /// Mean duration of the stage's tasks, in seconds.
    pub mean: Option<f64>,
    /// Longest time that a running task of the stage has been on its agent so far, in seconds.
    pub longest: f64,
    /// Time from which tasks of the stage could start.
    pub opened: Option<f64>,
    /// Time at which the last task finished.
    pub ended: Option<f64>,
    /// Directory of the outputs, if all agents share one.
    pub directory: Option<String>,
    /// Whether the outputs were removed because the job has ended and does not keep them.
    pub removed: bool,
    /// Sizing of the stage's tasks, if their size is chosen while the stage runs.
    pub sizing: Option<SizingView>,
    /// Estimate from the values of the stage's tasks.
    pub estimate: Option<EstimateView>,
}

/// The sizing of a stage's tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizingView {
    /// Unit of the input: bytes, lines, records, files or numbers.
    pub unit: String,
    /// Present size of a task, in units.
    pub size: u64,
    /// Number of units that are not assigned to a task yet.
    pub left: u64,
    /// Reason of the present size, in words.
    pub why: String,
    /// Waves of tasks, first to last, with size and rate of each.
    pub waves: Vec<Wave>,
}

/// An estimate from the tasks that ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EstimateView {
    /// Estimated statistic: sum, count or mean.
    pub statistic: String,
    /// Estimated value.
    pub value: f64,
    /// Bound of the difference from the true value; `None` with a single task.
    pub bound: Option<f64>,
    /// Confidence of the bound.
    pub confidence: f64,
    /// Number of tasks that have reported a value.
    pub tasks: u32,
    /// Number of all tasks, including dropped ones.
    pub of: u32,
}

/// A page of tasks of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskPage {
    /// Tasks, ordered by number.
    pub tasks: Vec<TaskView>,
    /// Number of the first task on the next page, if there is one.
    pub next: Option<u32>,
}

/// A task that was launched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskView {
    /// Number of the task in its stage.
    pub number: u32,
    /// State of the task.
    pub state: State,
    /// Location of the task's last attempt.
    pub place: Option<Place>,
    /// Number of launches of the task.
    pub attempts: u32,
    /// Number of failures of the task.
    pub failures: u32,
    /// Duration of the finished task, in seconds.
    pub took: Option<f64>,
    /// Time at which the task began to run, in seconds since 1970; `None` if it does not run.
    pub running: Option<f64>,
    /// Number of units of the input that the task reads.
    pub units: u64,
    /// Value that the task has reported.
    pub value: Option<f64>,
    /// Message of the task's last end.
    pub message: String,
}

impl Core {
    /// Returns a summary of the scheduler and its jobs.
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
            connected: self.offer_state.subscribed,
            suppressed: self.offer_state.suppressed,
            order: self.order.name(),
            decision: self.order.explain(),
            tasks,
            totals: self.totals,
            moving: MovingDelayView { mean_millis: self.moving.mean, count: self.moving.count },
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
        Phase::Live { step: LiveState::Staging, .. } => State::Staging,
        Phase::Live { step: LiveState::Running, .. } => State::Running,
        Phase::Live { step: LiveState::Unreachable, .. } => State::Unreachable,
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
