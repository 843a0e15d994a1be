//! What a policy sees: jobs, their stages, and what is free. Plain data; nothing is decided here.

use serde::{Deserialize, Serialize};

/// Jobs of an observation at most.
pub const JOBS: usize = 100_000;

/// Stages of a job at most.
pub const STAGES: usize = 10_000;

/// Amounts of resources, in thousandths of a CPU, of a megabyte and of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    /// CPUs.
    pub cpus: u64,
    /// Memory.
    pub mem: u64,
    /// GPUs.
    pub gpus: u64,
}

impl Amounts {
    /// All amounts, in a fixed order.
    pub fn array(self) -> [u64; 3] {
        [self.cpus, self.mem, self.gpus]
    }

    /// Whether all amounts are zero.
    pub fn is_zero(self) -> bool {
        self == Amounts::default()
    }

    /// How many tasks with this demand fit. A task without a demand takes all there is, so one fits.
    pub fn fits(self, demand: Amounts) -> u32 {
        let per = self.array().into_iter().zip(demand.array()).filter(|(_, demand)| *demand > 0);
        let most = per.map(|(have, demand)| have / demand).min().unwrap_or(1);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// The amounts without those of this many tasks; zero where there is less.
    pub fn without(self, demand: Amounts, tasks: u32) -> Amounts {
        if demand.is_zero() && tasks > 0 {
            return Amounts::default();
        }
        let left = |have: u64, demand: u64| have.saturating_sub(demand.saturating_mul(u64::from(tasks)));
        Amounts {
            cpus: left(self.cpus, demand.cpus),
            mem: left(self.mem, demand.mem),
            gpus: left(self.gpus, demand.gpus),
        }
    }
}

/// Free slots that are alike: executors of one size, or the free resources of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Free {
    /// How many there are.
    pub count: u32,
    /// What is free in each of them. As many tasks run there as fit; a task without a demand takes a whole one.
    #[serde(default)]
    pub amounts: Amounts,
}

/// A stage: tasks of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Tasks that have not been started, and for which no executor is on its way.
    pub tasks: u32,
    /// Tasks that run, or for which an executor is on its way.
    #[serde(default)]
    pub running: u32,
    /// Tasks that have finished, dropped ones included.
    #[serde(default)]
    pub finished: u32,
    /// How long a task is expected to run, in milliseconds.
    pub duration: u64,
    /// What a task takes. Nothing means: a whole slot.
    #[serde(default)]
    pub demand: Amounts,
    /// Stages of the same job that must have finished before, by their places in [`Job::stages`].
    #[serde(default)]
    pub parents: Vec<u32>,
}

impl Stage {
    /// Whether all of its tasks have finished.
    pub fn is_done(&self) -> bool {
        self.tasks == 0 && self.running == 0
    }

    /// Task-milliseconds that are still to be started or under way.
    pub fn remaining(&self) -> u64 {
        (u64::from(self.tasks) + u64::from(self.running)).saturating_mul(self.duration)
    }

    /// Task-milliseconds of the whole stage.
    pub fn work(&self) -> u64 {
        self.remaining().saturating_add(u64::from(self.finished).saturating_mul(self.duration))
    }
}

/// Whether a stage can get executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ready {
    /// A parent has tasks that were not started, or the stage has no tasks left to start.
    No,
    /// All tasks of its parents have been started and some still run: an executor would wait for them.
    Soon,
    /// All its parents have finished.
    Now,
}

/// A job that has arrived and has not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id, unlike all others'.
    pub id: u64,
    /// When it arrived, in milliseconds.
    pub arrival: u64,
    /// Its class of priority; a higher number is more important.
    #[serde(default)]
    pub class: u8,
    /// What it counts, in thousandths; 1,000 is usual.
    #[serde(default = "usual_weight")]
    pub weight: u32,
    /// When it should have ended, in milliseconds since the same beginning as `now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// Executors that it has or that are on their way to it, without those in [`Observation::free`].
    #[serde(default)]
    pub held: u32,
    /// Its stages.
    pub stages: Vec<Stage>,
}

fn usual_weight() -> u32 {
    1000
}

impl Job {
    /// Task-milliseconds that are still to be done.
    pub fn remaining(&self) -> u64 {
        self.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.remaining()))
    }

    /// Task-milliseconds of the whole job.
    pub fn work(&self) -> u64 {
        self.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.work()))
    }
}

/// What a policy decides on. Jobs are in the order of their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// The time, in milliseconds since some beginning.
    pub now: u64,
    /// All executors (slots) of the framework, busy or free.
    pub executors: u32,
    /// The executors that this decision hands out.
    pub free: Vec<Free>,
    /// The job that the free executors belong to, by its id. They run its tasks without moving; none belong to any
    /// job if this is absent.
    #[serde(default)]
    pub source: Option<u64>,
    /// What it costs an executor to move to another job, in milliseconds.
    #[serde(default)]
    pub moving_delay: u64,
    /// Whether executors may go to stages that are [`Ready::Soon`], and wait there.
    #[serde(default)]
    pub ahead: bool,
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// An observation breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObservationError {
    /// There are too many jobs.
    #[error("{0} jobs: there must be {JOBS} at most")]
    Jobs(usize),
    /// A job has too many stages.
    #[error("job {job} has {stages} stages: there must be {STAGES} at most")]
    Stages {
        /// The job's id.
        job: u64,
        /// Its stages.
        stages: usize,
    },
    /// A parent is not a stage before the one that names it.
    #[error("stage {stage} of job {job} names the parent {parent}: a parent must be an earlier stage of the job")]
    Parent {
        /// The job's id.
        job: u64,
        /// The stage.
        stage: usize,
        /// What it names.
        parent: u32,
    },
    /// Two jobs have one id.
    #[error("two jobs have the id {0}")]
    Twice(u64),
}

impl Observation {
    /// Checks what can be wrong with an observation from outside. Stages must come after their parents.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), ObservationError> {
        if self.jobs.len() > JOBS {
            return Err(ObservationError::Jobs(self.jobs.len()));
        }
        let mut ids: Vec<u64> = self.jobs.iter().map(|job| job.id).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ObservationError::Twice(pair[0]));
        }
        for job in &self.jobs {
            if job.stages.len() > STAGES {
                return Err(ObservationError::Stages { job: job.id, stages: job.stages.len() });
            }
            for (at, stage) in job.stages.iter().enumerate() {
                if let Some(parent) = stage.parents.iter().find(|parent| **parent as usize >= at) {
                    return Err(ObservationError::Parent { job: job.id, stage: at, parent: *parent });
                }
            }
        }
        Ok(())
    }

    /// How many executors are free.
    pub fn free_count(&self) -> u32 {
        self.free.iter().fold(0, |sum, free| sum.saturating_add(free.count))
    }
}
