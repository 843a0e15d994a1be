//! Records of jobs, of their stages and of each launched task.
//!
//! They keep counts consistent and decide nothing. A task that was never launched has no record, so a waiting stage of
//! a million tasks needs little memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Time;
use jobs::constraint::Checker;
use jobs::stamp;
use serde::{Deserialize, Serialize};

use super::sizes;
use crate::job::{Input, Job, Stage, graph};
use crate::sizing::Sizing;
use crate::split::{Part, Pieces};

/// Longest message of a task that is kept, in bytes.
const MESSAGE_MAX: usize = 300;

/// An agent, shared by the records of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Machine {
    /// Id of the agent.
    pub id: String,
    /// Host of the agent.
    pub host: String,
    /// Address of the agent's API as `host:port`; empty if its offers did not contain it.
    pub address: String,
}

/// The state of a task that is on an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LiveState {
    /// The task was launched and does not run yet.
    Staging,
    /// The task runs.
    Running,
    /// The task's agent is unreachable.
    Unreachable,
}

/// The phase of a task that was launched at least once, or was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    /// The task waits for its next attempt, which starts no earlier than this time.
    Waiting(#[serde(with = "stamp")] Time),
    /// The task is on an agent.
    Live {
        step: LiveState,
        #[serde(with = "stamp")]
        launched: Time,
        #[serde(with = "stamp::optional", default)]
        running: Option<Time>,
        /// Whether the task is being killed and will not be tried again.
        #[serde(default)]
        stopping: bool,
        /// Cores above its request that the task may use, in thousandths.
        #[serde(default)]
        sprint: u32,
    },
    /// The task has finished, after this many milliseconds.
    Done {
        #[serde(with = "stamp")]
        at: Time,
        millis: u32,
    },
    /// The task has failed for good, or was killed.
    Failed,
    /// The task was dropped and did not run.
    Dropped,
}

/// A task of a stage through all of its attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) phase: Phase,
    /// Number of launches of the task.
    pub(super) attempts: u32,
    /// Number of failures of the task.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) failures: u32,
    /// Number of consecutive times that the task was lost through no fault of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) losses: u32,
    /// Part of the stage's input that the task reads.
    pub(super) part: Part,
    /// Agent of the task's last attempt.
    pub(super) machine: Arc<Machine>,
    /// Value that the task has reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<f64>,
    /// Message of the task's last end, unless it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Box<str>>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Task {
    pub(super) fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Live { .. })
    }

    pub(super) fn set_message(&mut self, message: &str) {
        let end = (0..=message.len().min(MESSAGE_MAX)).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
        self.message = Some(message[..end].into());
    }
}

/// The phase of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StagePhase {
    /// The stage waits for other stages.
    #[default]
    Blocked,
    /// The input of the stage is being examined.
    Planning,
    /// Tasks of the stage run, or may run.
    Open,
    /// All tasks of the stage have finished.
    Done,
}

/// The saved state of a stage without its tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StageHead {
    pub(super) phase: StagePhase,
    /// Number of the stage's tasks, once it is known.
    pub(super) total: Option<u32>,
    #[serde(with = "stamp::optional")]
    pub(super) opened: Option<Time>,
    #[serde(with = "stamp::optional")]
    pub(super) ended: Option<Time>,
    /// Fraction of the stage's tasks that is dropped.
    pub(super) drop: f64,
}

/// The state of a stage of a known job.
#[derive(Clone, Debug)]
pub(super) struct StageRun {
    pub(super) head: StageHead,
    tasks: BTreeMap<u32, Task>,
    /// Numbers of tasks that were launched before and may be launched again.
    pub(super) ready: BTreeSet<u32>,
    pub(super) counts: Counts,
    /// Number of the next task, which has never been launched.
    pub(super) next: u32,
    /// Position in the input at which the next part begins.
    pub(super) cursor: u64,
    /// Input files in pieces, once they were examined.
    pub(super) pieces: Arc<Pieces>,
    /// Units of input that are not assigned to a task yet.
    pub(super) left: u64,
    pub(super) sizing: Option<Sizing>,
    /// Sum of the durations of finished tasks, in milliseconds, and the number of these tasks.
    pub(super) took: (u64, u32),
    /// Sum of the durations of finished tasks that sprinted, in milliseconds, since the start of the scheduler.
    pub(super) sprinted: u64,
    /// Sum of the squared durations of finished tasks, in square seconds, since the start of the scheduler.
    pub(super) squares: f64,
    /// Numbers of tasks that are dropped when they would be launched.
    pub(super) tasks_to_drop: BTreeSet<u32>,
    /// Whether a task's part may span several files.
    pub(super) spans_files: bool,
    /// The constraints of the stage.
    pub(super) checker: Checker,
    /// Key by which a later run recognizes the stage.
    pub(super) key: Arc<str>,
    /// Numbers of finished tasks whose outputs are lost.
    pub(super) gone: BTreeSet<u32>,
}

/// Number of a stage's tasks in each phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of tasks that wait for resources, for other stages, or for their next attempt.
    pub waiting: u32,
    /// Number of tasks on agents.
    pub live: u32,
    /// Number of tasks that have finished.
    pub finished: u32,
    /// Number of tasks that have failed for good, or were killed.
    pub failed: u32,
    /// Number of tasks that were dropped.
    pub dropped: u32,
}

impl Counts {
    fn of(&mut self, phase: &Phase) -> &mut u32 {
        match phase {
            Phase::Waiting(_) => &mut self.waiting,
            Phase::Live { .. } => &mut self.live,
            Phase::Done { .. } => &mut self.finished,
            Phase::Failed => &mut self.failed,
            Phase::Dropped => &mut self.dropped,
        }
    }
}

impl StageRun {
    fn of(head: StageHead) -> StageRun {
        StageRun {
            head,
            tasks: BTreeMap::new(),
            ready: BTreeSet::new(),
            counts: Counts::default(),
            next: 0,
            cursor: 0,
            pieces: Arc::default(),
            left: 0,
            sizing: None,
            took: (0, 0),
            sprinted: 0,
            squares: 0.0,
            spans_files: false,
            checker: Checker::default(),
            key: "".into(),
            gone: BTreeSet::new(),
            tasks_to_drop: BTreeSet::new(),
        }
    }

    pub(super) fn tasks(&self) -> &BTreeMap<u32, Task> {
        &self.tasks
    }

    /// Inserts a task and updates the counts.
    pub(super) fn insert(&mut self, index: u32, task: Task) {
        self.next = self.next.max(index.saturating_add(1));
        self.cursor = self.cursor.max(task.part.0 + task.part.1);
        if let Phase::Done { millis, .. } = task.phase {
            self.took = (self.took.0 + u64::from(millis), self.took.1 + 1);
            self.squares += (f64::from(millis) / 1e3).powi(2);
        }
        *self.counts.of(&task.phase) += 1;
        if let Some(before) = self.tasks.insert(index, task) {
            *self.counts.of(&before.phase) -= 1;
        }
    }

    /// Changes a task and updates the counts.
    pub(super) fn change<T>(&mut self, index: u32, change: impl FnOnce(&mut Task) -> T) -> Option<T> {
        let task = self.tasks.get_mut(&index)?;
        *self.counts.of(&task.phase) -= 1;
        let result = change(task);
        *self.counts.of(&task.phase) += 1;
        Some(result)
    }

    /// Returns the number of tasks that were never launched, as far as it is known. Where sizes are chosen while the
    /// stage runs, it is the number of tasks of the present size.
    pub(super) fn fresh(&self) -> u32 {
        match (self.head.phase, self.head.total) {
            (StagePhase::Done, _) => 0,
            // Regardless of the counts, no input may remain unassigned.
            (_, Some(total)) => total.saturating_sub(self.next).max(u32::from(self.left > 0)),
            (StagePhase::Open, None) => u32::try_from(self.left.div_ceil(self.usual_size())).unwrap_or(u32::MAX),
            _ => 0,
        }
    }

    fn usual_size(&self) -> u64 {
        match &self.sizing {
            Some(Sizing::Tuned(tuner)) => tuner.size().max(1),
            Some(Sizing::Fixed(fixed)) => fixed.size().max(1),
            None => 1,
        }
    }

    /// Returns whether no task runs and none is left to run.
    pub(super) fn is_complete(&self) -> bool {
        self.head.phase == StagePhase::Open && self.fresh() == 0 && self.counts.waiting == 0 && self.counts.live == 0
    }

    /// Returns the mean duration of the stage's finished tasks, in milliseconds.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.took.1 > 0).then(|| self.took.0 as f64 / f64::from(self.took.1))
    }
}

/// The goal of a job, which decides whether its tasks run or are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Goal {
    Run,
    /// A user has cancelled the job.
    Cancel,
    /// The job has failed, and its tasks are being killed.
    Fail,
}

/// The outcome of a job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Every stage of the job has finished.
    Finished,
    /// A task of the job has failed for good, or an input cannot be used.
    Failed,
    /// A user has cancelled the job.
    Cancelled,
}

/// The saved state of a job without its tasks and inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) serial: u64,
    pub(super) job: Arc<Job>,
    pub(super) goal: Goal,
    pub(super) outcome: Option<Outcome>,
    #[serde(with = "stamp")]
    pub(super) submitted: Time,
    #[serde(with = "stamp::optional", default)]
    pub(super) ended: Option<Time>,
    /// Reason of the failure; empty if the job has not failed.
    #[serde(default)]
    pub(super) why: String,
    /// Name of the job's directory in the shared one; `None` before the first launch.
    #[serde(default)]
    pub(super) directory: Option<String>,
    pub(super) stages: Vec<StageHead>,
}

/// The state of a job and of its stages.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) serial: u64,
    pub(super) job: Arc<Job>,
    pub(super) goal: Goal,
    pub(super) outcome: Option<Outcome>,
    pub(super) submitted: Time,
    pub(super) ended: Option<Time>,
    pub(super) why: String,
    pub(super) directory: Option<String>,
    pub(super) stages: Vec<StageRun>,
    /// For each stage, the stages that wait for it.
    pub(super) followers: Vec<Vec<usize>>,
}

impl Record {
    pub(super) fn new(serial: u64, job: Job, now: Time) -> Record {
        let stages = job.stages.iter().map(|_| StageHead::default()).collect();
        let head = Head {
            serial,
            job: Arc::new(job),
            goal: Goal::Run,
            outcome: None,
            submitted: now,
            ended: None,
            why: String::new(),
            directory: None,
            stages,
        };
        Record::of(head)
    }

    pub(super) fn of(head: Head) -> Record {
        let after: Vec<Vec<usize>> = head.job.stages.iter().map(|stage| stage.after.clone()).collect();
        let stages = head.stages.into_iter().map(StageRun::of).collect();
        let mut record = Record {
            serial: head.serial,
            followers: graph::followers(&after),
            job: head.job,
            goal: head.goal,
            outcome: head.outcome,
            submitted: head.submitted,
            ended: head.ended,
            why: head.why,
            directory: head.directory,
            stages,
        };
        for (run, stage) in record.stages.iter_mut().zip(&record.job.stages) {
            run.key = sizes::key(&record.job, stage).into();
            run.spans_files = stage.spans_files();
            run.checker = Checker::new(&stage.constraints);
        }
        record
    }

    pub(super) fn head(&self) -> Head {
        Head {
            serial: self.serial,
            job: self.job.clone(),
            goal: self.goal,
            outcome: self.outcome,
            submitted: self.submitted,
            ended: self.ended,
            why: self.why.clone(),
            directory: self.directory.clone(),
            stages: self.stages.iter().map(|stage| stage.head.clone()).collect(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.job.name
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    pub(super) fn stage(&self, stage: usize) -> &Stage {
        &self.job.stages[stage]
    }

    /// Returns whether tasks of the stage may be launched: the stages that it waits for have finished.
    pub(super) fn is_runnable(&self, stage: usize) -> bool {
        self.goal == Goal::Run && self.stages[stage].head.phase == StagePhase::Open && self.is_unblocked(stage)
    }

    /// Returns whether all stages that the stage waits for have finished.
    pub(super) fn is_unblocked(&self, stage: usize) -> bool {
        self.stage(stage).after.iter().all(|&before| self.stages[before].head.phase == StagePhase::Done)
    }

    /// Returns the stages that read outputs of this one.
    pub(super) fn readers(&self, stage: usize) -> impl Iterator<Item = usize> + '_ {
        let reads = move |&&reader: &&usize| match &self.stage(reader).input {
            Input::Stages(input) => input.stages.contains(&stage),
            _ => false,
        };
        self.followers[stage].iter().filter(reads).copied()
    }

    pub(super) fn live(&self) -> u32 {
        self.stages.iter().map(|stage| stage.counts.live).sum()
    }

    /// Returns the number of the job's tasks in each phase, as far as they are known.
    pub(super) fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for stage in &self.stages {
            let counts = &stage.counts;
            all.waiting = all.waiting.saturating_add(counts.waiting).saturating_add(stage.fresh());
            all.live += counts.live;
            all.finished += counts.finished;
            all.failed += counts.failed;
            all.dropped += counts.dropped;
        }
        all
    }

    /// Returns the id of an attempt of a task.
    pub(super) fn task_id(&self, stage: usize, index: u32, attempt: u32) -> String {
        format!("{}.{}.{}.{index}.{attempt}", self.name(), self.serial, self.stage(stage).name)
    }
}

/// Parses the id of a task: serial of the job, name of the stage, number of the task, and attempt.
pub(super) fn parse_task_id(task_id: &str) -> Option<(u64, &str, u32, u32)> {
    let mut parts = task_id.rsplitn(5, '.');
    let attempt = parts.next()?.parse().ok()?;
    let index = parts.next()?.parse().ok()?;
    let stage = parts.next()?;
    Some((parts.next()?.parse().ok()?, stage, index, attempt))
}
