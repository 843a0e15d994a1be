//! The observation that a policy decides on: jobs, their stages, and free resources. It is plain data and decides
//! nothing.

use serde::{Deserialize, Serialize};

/// Maximum number of jobs of an observation.
pub const JOBS: usize = 100_000;

/// Maximum number of stages of a job.
pub const STAGES: usize = 10_000;

/// Amounts of resources, in thousandths of a CPU, of a megabyte and of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    /// Thousandths of a CPU.
    pub cpus: u64,
    /// Thousandths of a megabyte of memory.
    pub mem: u64,
    /// Thousandths of a GPU.
    pub gpus: u64,
}

impl Amounts {
    /// Returns all amounts in a fixed order: CPUs, memory, GPUs.
    pub fn array(self) -> [u64; 3] {
        [self.cpus, self.mem, self.gpus]
    }

    /// Returns whether all amounts are zero.
    pub fn is_zero(self) -> bool {
        self == Amounts::default()
    }

    /// Returns how many tasks with this demand fit. A task without a demand takes everything, so one fits.
    pub fn fits(self, demand: Amounts) -> u32 {
        let per = self.array().into_iter().zip(demand.array()).filter(|(_, demand)| *demand > 0);
        let most = per.map(|(have, demand)| have / demand).min().unwrap_or(1);
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// Returns what is left after this many tasks; zero where there is less than they take.
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
    /// Number of slots.
    pub count: u32,
    /// Free amounts in each slot. As many tasks run there as fit; a task without a demand takes a whole slot.
    #[serde(default)]
    pub amounts: Amounts,
}

/// A stage: tasks of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Number of tasks that have not been started, and for which no executor is on its way.
    pub tasks: u32,
    /// Number of tasks that run, or for which an executor is on its way.
    #[serde(default)]
    pub running: u32,
    /// Number of tasks that have finished, including dropped ones.
    #[serde(default)]
    pub finished: u32,
    /// Expected duration of a task, in milliseconds.
    pub duration: u64,
    /// Amounts that a task takes. Zero means a whole slot.
    #[serde(default)]
    pub demand: Amounts,
    /// Indices in [`Job::stages`] of the stages that must have finished first.
    #[serde(default)]
    pub parents: Vec<u32>,
}

impl Stage {
    /// Returns whether all tasks of the stage have finished.
    pub fn is_done(&self) -> bool {
        self.tasks == 0 && self.running == 0
    }

    /// Returns the task-milliseconds of tasks that run or have not been started.
    pub fn remaining(&self) -> u64 {
        (u64::from(self.tasks) + u64::from(self.running)).saturating_mul(self.duration)
    }

    /// Returns the task-milliseconds of the whole stage.
    pub fn work(&self) -> u64 {
        self.remaining().saturating_add(u64::from(self.finished).saturating_mul(self.duration))
    }
}

/// The readiness of a stage to get executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ready {
    /// A parent has tasks that were not started, or the stage has no tasks left to start.
    No,
    /// All tasks of the parents have been started and some still run: an executor would wait for them.
    Soon,
    /// All parents have finished.
    Now,
}

/// A job that has arrived and has not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Id of the job, unique in the observation.
    pub id: u64,
    /// Time of the arrival, in milliseconds.
    pub arrival: u64,
    /// Priority class of the job; a higher number is more important.
    #[serde(default)]
    pub class: u8,
    /// Weight of the job, in thousandths; 1,000 is usual.
    #[serde(default = "usual_weight")]
    pub weight: u32,
    /// Deadline of the job, in milliseconds on the clock of [`Observation::now`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// Number of executors that the job has or that are on their way to it, without those in [`Observation::free`].
    #[serde(default)]
    pub held: u32,
    /// Stages of the job; parents come before their children.
    pub stages: Vec<Stage>,
}

fn usual_weight() -> u32 {
    1000
}

impl Job {
    /// Returns the task-milliseconds that are left.
    pub fn remaining(&self) -> u64 {
        self.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.remaining()))
    }

    /// Returns the task-milliseconds of the whole job.
    pub fn work(&self) -> u64 {
        self.stages.iter().fold(0, |sum, stage| sum.saturating_add(stage.work()))
    }
}

/// The state that a policy decides on. Jobs are in the order of their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Present time, in milliseconds since a fixed moment.
    pub now: u64,
    /// Number of all executors (slots) of the framework, busy or free.
    pub executors: u32,
    /// Executors that this decision assigns.
    pub free: Vec<Free>,
    /// Id of the job that the free executors belong to, whose tasks they run without moving. If it is absent, they
    /// belong to no job.
    #[serde(default)]
    pub source: Option<u64>,
    /// Time that an executor needs to move to another job, in milliseconds.
    #[serde(default)]
    pub moving_delay: u64,
    /// Whether executors may move to stages that are [`Ready::Soon`] and wait there.
    #[serde(default)]
    pub ahead: bool,
    /// Jobs in the order of their arrival.
    pub jobs: Vec<Job>,
}

/// A rule that an observation breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObservationError {
    /// The observation has too many jobs.
    #[error("{0} jobs: there must be {JOBS} at most")]
    Jobs(usize),
    /// A job has too many stages.
    #[error("job {job} has {stages} stages: there must be {STAGES} at most")]
    Stages {
        /// Id of the job.
        job: u64,
        /// Number of its stages.
        stages: usize,
    },
    /// A parent is not an earlier stage of the job.
    #[error("stage {stage} of job {job} names the parent {parent}: a parent must be an earlier stage of the job")]
    Parent {
        /// Id of the job.
        job: u64,
        /// Index of the stage.
        stage: usize,
        /// Index that the stage names as its parent.
        parent: u32,
    },
    /// Two jobs have the same id.
    #[error("two jobs have the id {0}")]
    Twice(u64),
}

impl Observation {
    /// Checks an observation that comes from outside of the program.
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

    /// Returns the number of free executors.
    pub fn free_count(&self) -> u32 {
        self.free.iter().fold(0, |sum, free| sum.saturating_add(free.count))
    }
}
