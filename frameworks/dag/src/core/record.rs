//! What is known of a job, of its stages and of each task that was launched.
//!
//! It keeps counts right; it decides nothing. A task that was never launched has no record, so that a stage of a
//! million tasks that waits takes no room.

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

/// The longest message of a task that is kept, in bytes.
const MESSAGE_MAX: usize = 300;

/// An agent, shared by all of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Machine {
    /// The agent's id.
    pub id: String,
    /// Its host.
    pub host: String,
    /// Its API as `host:port`; empty if its offers did not say.
    pub address: String,
}

/// Where a launched task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Launched, and not running yet.
    Staging,
    /// It runs.
    Running,
    /// Its agent does not answer.
    Unreachable,
}

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    /// It waits for its next attempt, and not before this instant.
    Waiting(#[serde(with = "stamp")] Time),
    /// It is on an agent.
    Live {
        step: Step,
        #[serde(with = "stamp")]
        launched: Time,
        #[serde(with = "stamp::optional", default)]
        running: Option<Time>,
        /// It is being ended, and not tried again.
        #[serde(default)]
        stopping: bool,
        /// Cores above its request that it may use, in thousandths.
        #[serde(default)]
        sprint: u32,
    },
    /// It has finished, after this many milliseconds.
    Done {
        #[serde(with = "stamp")]
        at: Time,
        millis: u32,
    },
    /// It has failed for good, or was ended.
    Failed,
    /// It was left out.
    Dropped,
}

/// One task of a stage, through all attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) phase: Phase,
    /// How often it was launched.
    pub(super) attempts: u32,
    /// How often it has failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) failures: u32,
    /// How often in a row it was lost through no fault of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) losses: u32,
    /// What it is given of the stage's input.
    pub(super) part: Part,
    /// Its last agent.
    pub(super) machine: Arc<Machine>,
    /// The value that it has reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<f64>,
    /// The message of its last end, if that was not a success.
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

    pub(super) fn say(&mut self, message: &str) {
        let end = (0..=message.len().min(MESSAGE_MAX)).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
        self.message = Some(message[..end].into());
    }
}

/// Where a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StagePhase {
    /// It waits for other stages.
    #[default]
    Blocked,
    /// Its input is being examined.
    Planning,
    /// Its tasks run, or may run.
    Open,
    /// All of its tasks have finished.
    Done,
}

/// What is kept of a stage beside its tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StageHead {
    pub(super) phase: StagePhase,
    /// The number of its tasks, once it is known.
    pub(super) total: Option<u32>,
    #[serde(with = "stamp::optional")]
    pub(super) opened: Option<Time>,
    #[serde(with = "stamp::optional")]
    pub(super) ended: Option<Time>,
    /// The share of its tasks that is dropped.
    pub(super) drop: f64,
}

/// A stage while its job is known.
#[derive(Clone, Debug)]
pub(super) struct StageRun {
    pub(super) head: StageHead,
    tasks: BTreeMap<u32, Task>,
    /// Tasks that were launched before and may be launched again.
    pub(super) ready: BTreeSet<u32>,
    pub(super) counts: Counts,
    /// The number of the next task that was never launched.
    pub(super) next: u32,
    /// Where the next part of the input begins.
    pub(super) cursor: u64,
    /// The input files, once they were examined.
    pub(super) pieces: Arc<Pieces>,
    /// Units of input that no task was given.
    pub(super) left: u64,
    pub(super) sizing: Option<Sizing>,
    /// Sum of the durations of finished tasks, in milliseconds, and how many these are.
    pub(super) took: (u64, u32),
    /// The part of that sum that is of tasks that sprinted; counted since the start.
    pub(super) sprinted: u64,
    /// The sum of the squares of the durations of finished tasks, in seconds; counted since the start.
    pub(super) squares: f64,
    /// Numbers of tasks that are left out when their turn comes.
    pub(super) left_out: BTreeSet<u32>,
    /// Whether a task's part may be of several files.
    pub(super) spans_files: bool,
    /// The constraints of the stage.
    pub(super) checker: Checker,
    /// By what the stage is known again in a later run.
    pub(super) key: Arc<str>,
    /// Finished tasks whose outputs are gone.
    pub(super) gone: BTreeSet<u32>,
}

/// Number of tasks of a stage that are in which phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// They wait for room, for other stages, or for their next attempt.
    pub waiting: u32,
    /// They are on agents.
    pub live: u32,
    /// They have finished.
    pub finished: u32,
    /// They have failed for good, or were ended.
    pub failed: u32,
    /// They were left out.
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
            left_out: BTreeSet::new(),
        }
    }

    pub(super) fn tasks(&self) -> &BTreeMap<u32, Task> {
        &self.tasks
    }

    /// Puts a task in; counts follow.
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

    /// Changes a task; counts follow.
    pub(super) fn change<T>(&mut self, index: u32, change: impl FnOnce(&mut Task) -> T) -> Option<T> {
        let task = self.tasks.get_mut(&index)?;
        *self.counts.of(&task.phase) -= 1;
        let result = change(task);
        *self.counts.of(&task.phase) += 1;
        Some(result)
    }

    /// Tasks that were never launched, as far as their number is known; with sizes that are chosen on the way, as many
    /// as there would be of the size that is chosen now.
    pub(super) fn fresh(&self) -> u32 {
        match (self.head.phase, self.head.total) {
            (StagePhase::Done, _) => 0,
            // Whatever was counted, no input is left over.
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

    /// Whether no task is left to run or runs.
    pub(super) fn is_complete(&self) -> bool {
        self.head.phase == StagePhase::Open && self.fresh() == 0 && self.counts.waiting == 0 && self.counts.live == 0
    }

    /// Mean duration of its finished tasks in milliseconds.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.took.1 > 0).then(|| self.took.0 as f64 / f64::from(self.took.1))
    }
}

/// The goal of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Goal {
    Run,
    /// A user has cancelled it.
    Cancel,
    /// It has failed; what runs is ended.
    Fail,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Every stage has finished.
    Finished,
    /// A task has failed for good, or an input cannot be used.
    Failed,
    /// A user has cancelled it.
    Cancelled,
}

/// What is kept of a job beside its tasks and its inputs.
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
    /// Why it has failed.
    #[serde(default)]
    pub(super) why: String,
    /// The name of its directory below the shared one, from its first launch on.
    #[serde(default)]
    pub(super) directory: Option<String>,
    pub(super) stages: Vec<StageHead>,
}

/// A job with its stages.
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
    /// For each stage those that wait for it.
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

    /// Whether tasks of the stage may be launched: what it waits for has finished.
    pub(super) fn is_runnable(&self, stage: usize) -> bool {
        self.goal == Goal::Run && self.stages[stage].head.phase == StagePhase::Open && self.is_unblocked(stage)
    }

    /// Whether all stages that it waits for have finished.
    pub(super) fn is_unblocked(&self, stage: usize) -> bool {
        self.stage(stage).after.iter().all(|&before| self.stages[before].head.phase == StagePhase::Done)
    }

    /// The stages that read outputs of this one.
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

    /// All of its tasks, as far as they are known.
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

    /// The id that the task has at this attempt.
    pub(super) fn task_id(&self, stage: usize, index: u32, attempt: u32) -> String {
        format!("{}.{}.{}.{index}.{attempt}", self.name(), self.serial, self.stage(stage).name)
    }
}

/// Reads the id of a task: the job's serial, the stage's name, the task's number and the attempt.
pub(super) fn owner(task_id: &str) -> Option<(u64, &str, u32, u32)> {
    let mut parts = task_id.rsplitn(5, '.');
    let attempt = parts.next()?.parse().ok()?;
    let index = parts.next()?.parse().ok()?;
    let stage = parts.next()?;
    Some((parts.next()?.parse().ok()?, stage, index, attempt))
}
