//! Models of jobs: graphs of stages with the durations of their tasks. It runs nothing.

use std::sync::Arc;

use super::random::Random;
use crate::order::Amounts;

/// Durations of a stage's tasks in milliseconds, as measured with a number of executors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Number of executors of the measurement.
    pub executors: u32,
    /// Durations of an executor's first task of the stage.
    pub first: Vec<u64>,
    /// Durations of an executor's further tasks of the stage.
    pub rest: Vec<u64>,
    /// Durations of an executor's first task of the job.
    pub fresh: Vec<u64>,
}

/// The state of an executor in which a task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The executor has just come to the job.
    Fresh,
    /// The executor ran another stage of the job.
    First,
    /// The executor ran a task of the same stage.
    Rest,
}

/// A model of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageModel {
    /// Key of the stage in [`History`](crate::order::History).
    pub key: String,
    /// Number of tasks, at least 1.
    pub tasks: u32,
    /// Indices of earlier stages that must have finished.
    pub parents: Vec<u32>,
    /// Rough duration of a task, in milliseconds.
    pub rough: u64,
    /// Resources that a task takes.
    pub demand: Amounts,
    /// Measured durations, by ascending number of executors; not empty.
    pub durations: Vec<Durations>,
}

/// A model of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobModel {
    /// Name of the job, such as `tpch-20g-7`.
    pub name: String,
    /// Stages, each after its parents.
    pub stages: Vec<StageModel>,
}

impl JobModel {
    /// Returns the task-milliseconds of all stages, by their rough durations.
    pub fn work(&self) -> u64 {
        self.stages.iter().map(|stage| u64::from(stage.tasks) * stage.rough).sum()
    }

    /// Returns the number of tasks of all stages.
    pub fn tasks(&self) -> u64 {
        self.stages.iter().map(|stage| u64::from(stage.tasks)).sum()
    }
}

/// The arrival of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of the arrival, in milliseconds.
    pub at: u64,
    /// Model of the job.
    pub job: Arc<JobModel>,
}

/// Numbers of executors between which the public simulator interpolates.
const POINTS: [u32; 8] = [5, 10, 20, 40, 50, 60, 80, 100];

/// Additional duration of a task on a fresh executor without measurements, in milliseconds.
pub const WARM_UP: u64 = 1000;

impl StageModel {
    /// Draws the duration of a task, in milliseconds, with `executors` executors at the job.
    pub fn draw(&self, executors: u32, start: Start, random: &mut Random) -> u64 {
        let durations = self.measured(point(executors, random));
        let mut pick = |from: &[u64]| from.get(random.below(from.len())).copied();
        let drawn = match start {
            Start::Fresh => pick(&durations.fresh).or_else(|| pick(&durations.first).map(|first| first + WARM_UP)),
            Start::Rest => pick(&durations.rest).or_else(|| pick(&durations.first)),
            Start::First => pick(&durations.first),
        };
        drawn.or_else(|| pick(&durations.fresh)).or_else(|| pick(&durations.rest)).unwrap_or(self.rough)
    }

    /// Returns the measurements with this many executors, or else those with the most.
    fn measured(&self, executors: u32) -> &Durations {
        let known = self.durations.iter().find(|durations| durations.executors == executors);
        // A stage model has at least one measurement.
        known.unwrap_or(&self.durations[self.durations.len() - 1])
    }
}

/// Returns the measured number of executors that stands for this one: one of the two neighbours, chosen at random.
fn point(executors: u32, random: &mut Random) -> u32 {
    let above = POINTS.partition_point(|point| *point < executors);
    let (Some(right), Some(left)) = (POINTS.get(above), above.checked_sub(1).map(|below| POINTS[below])) else {
        return if above == 0 { POINTS[0] } else { POINTS[POINTS.len() - 1] };
    };
    if *right == executors {
        return executors;
    }
    // As in the public simulator: the nearer to the right one, the likelier is the left one.
    let drawn = 1 + random.below((right - left) as usize) as u32;
    if drawn <= executors - left { left } else { *right }
}
