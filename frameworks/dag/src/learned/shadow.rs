//! Replays the jobs of the last minutes in a modelled cluster, under the model and under heuristics. It decides nothing
//! about the real cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::network::Network;
use super::policy::{Decima, Mode};
use crate::order::{Heuristic, History, Job, Observation, Policy};
use crate::study::cluster::{Episode, Setup};
use crate::study::job::{Arrival, Durations, JobModel, StageModel};

/// Limit of the number of jobs of a replay; the last ones are taken.
const JOBS: usize = 30;
/// Limit of the number of stages of a job; jobs with more are not replayed.
const STAGES: usize = 100;
/// Limit of the number of tasks of a replay; more of them are modelled as fewer and longer ones.
const TASKS: u64 = 4_000;
/// Limit of the number of decisions of a replay; one that takes more has no result.
const DECISIONS: usize = 1_200;

/// A job that was observed.
#[derive(Clone, Debug, Default)]
struct ObservedJob {
    arrival: u64,
    stages: Vec<ObservedStage>,
}

/// A stage of an observed job.
#[derive(Clone, Debug, Default)]
struct ObservedStage {
    tasks: u32,
    /// Duration of a task, in milliseconds.
    duration: u64,
    parents: Vec<u32>,
}

impl ObservedJob {
    /// Updates the job from an observation, without new allocations if possible.
    fn update(&mut self, job: &Job) {
        self.arrival = job.arrival;
        self.stages.resize_with(job.stages.len(), ObservedStage::default);
        for (kept, stage) in self.stages.iter_mut().zip(&job.stages) {
            kept.tasks = stage.tasks.saturating_add(stage.running).saturating_add(stage.finished).max(1);
            kept.duration = stage.duration.max(1);
            kept.parents.clone_from(&stage.parents);
        }
    }
}

/// The jobs of the last minutes.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    jobs: BTreeMap<u64, ObservedJob>,
    /// Largest number of executors in this window and in the one before, and the time at which this one began.
    executors: [u32; 2],
    began: u64,
    moving_delay: u64,
    /// Whether the cluster moves executors to stages before these can run.
    ahead: bool,
}

/// Mean completion times of a job in the replay, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) model: f64,
    pub(super) fair: f64,
    pub(super) fallback: f64,
    pub(super) jobs: usize,
}

impl Shadow {
    /// Records an observation, and forgets jobs that arrived longer than `window` milliseconds ago.
    pub(super) fn observe(&mut self, observation: &Observation, window: u64) {
        if observation.now.saturating_sub(self.began) >= window {
            (self.executors, self.began) = ([0, self.executors[0]], observation.now);
        }
        self.executors[0] = self.executors[0].max(observation.executors);
        (self.moving_delay, self.ahead) = (observation.moving_delay, observation.ahead);
        let since = observation.now.saturating_sub(window);
        self.jobs.retain(|_, job| job.arrival >= since);
        for job in observation.jobs.iter().filter(|job| job.arrival >= since && job.stages.len() <= STAGES) {
            self.jobs.entry(job.id).or_default().update(job);
        }
        while self.jobs.len() > JOBS {
            self.jobs.pop_first();
        }
    }

    /// Replays the jobs under the model, fair shares and the fallback. Returns `None` if there are fewer than `least`
    /// jobs, or if the replay takes too long.
    pub(super) fn judge(&self, network: &Arc<Network>, fallback: Heuristic, least: usize) -> Option<Verdict> {
        if self.jobs.len() < least {
            return None;
        }
        let arrivals = self.arrivals();
        let mean = |policy: &mut dyn Policy| self.replay(&arrivals, policy);
        Some(Verdict {
            model: mean(&mut Decima::new(network.clone(), Mode::Greedy))?,
            fair: mean(&mut Heuristic::Fair)?,
            fallback: mean(&mut fallback.clone())?,
            jobs: arrivals.len(),
        })
    }

    fn arrivals(&self) -> Vec<Arrival> {
        let first = self.jobs.values().map(|job| job.arrival).min().unwrap_or(0);
        let tasks: u64 = self.jobs.values().flat_map(|job| &job.stages).map(|stage| u64::from(stage.tasks)).sum();
        let fewer = tasks.div_ceil(TASKS).max(1);
        let mut arrivals: Vec<Arrival> = self
            .jobs
            .values()
            .map(|job| {
                let stages = job.stages.iter().map(|stage| model(stage, fewer)).collect();
                Arrival { at: job.arrival - first, job: Arc::new(JobModel { name: String::new(), stages }) }
            })
            .collect();
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    }

    fn replay(&self, arrivals: &[Arrival], policy: &mut dyn Policy) -> Option<f64> {
        let Shadow { executors: [now, before], moving_delay, ahead, .. } = *self;
        let executors = now.max(before);
        let setup = Setup { executors, moving_delay, knows_durations: true, ahead };
        let mut episode = Episode::new(setup, arrivals.to_vec(), History::default(), 1).ok()?;
        for _ in 0..DECISIONS {
            let Some(observation) = episode.observation() else {
                let waited = episode.waited() as f64 / 1000.0;
                return (episode.active() == 0).then_some(waited / arrivals.len().max(1) as f64);
            };
            let actions = policy.decide(&observation);
            episode.act(&observation, &actions);
        }
        None
    }
}

fn model(stage: &ObservedStage, fewer: u64) -> StageModel {
    let tasks = u64::from(stage.tasks);
    let kept = tasks.div_ceil(fewer).max(1);
    // The total work stays the same.
    let duration = (stage.duration.saturating_mul(tasks) / kept).max(1);
    let durations = Durations { executors: 5, first: vec![duration], rest: vec![duration], fresh: vec![duration] };
    StageModel {
        key: String::new(),
        tasks: kept as u32,
        parents: stage.parents.clone(),
        rough: duration,
        durations: vec![durations],
        ..StageModel::default()
    }
}
