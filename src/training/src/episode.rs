//! Draws the task of one training iteration: arriving jobs, a cluster, and the end of the episode. It runs nothing.

use std::sync::Arc;

use dag::study::cluster::Setup;
use dag::study::generated;
use dag::study::job::{Arrival, JobModel};
use dag::study::random::Random;
use dag::study::tpch::{Queries, SIX, SIZES};

use crate::settings::{EpisodeSettings, Settings, between};

/// First seed of the generated queries for training; studies use seed 1.
const FIRST_SET: u64 = 1_000;

/// An episode to train on: jobs, a cluster and a horizon.
#[derive(Clone, Debug)]
pub struct EpisodeSetup {
    /// Jobs in the order of their arrival.
    pub arrivals: Vec<Arrival>,
    /// Cluster on which the jobs run.
    pub setup: Setup,
    /// End of the episode, in milliseconds.
    pub horizon: u64,
    /// Seed of the task durations.
    pub seed: u64,
    /// Whether all jobs arrive at the start.
    pub is_batch: bool,
}

/// The jobs from which lessons are drawn.
#[derive(Clone, Debug)]
pub struct Pool {
    sets: Vec<Vec<Arc<JobModel>>>,
}

impl Pool {
    /// Creates a pool of several sets of generated queries, each with its own scale of durations; or of these queries,
    /// unscaled.
    pub fn new(settings: &Settings, queries: Option<&Queries>) -> Pool {
        if let Some(queries) = queries {
            return Pool { sets: vec![queries.of_sizes(&SIZES), queries.of_sizes(&SIX)] };
        }
        let set = |number: u64| {
            let mut random = Random::new(settings.seed ^ number, "scale");
            let scale = 2_f64.powf((2.0 * random.part() - 1.0) * settings.lessons.scale);
            let sizes: &[&str] = if number.is_multiple_of(2) { &SIX } else { &SIZES };
            let jobs = generated::queries(FIRST_SET + number).of_sizes(sizes);
            jobs.into_iter().map(|job| scaled(&job, scale)).collect()
        };
        Pool { sets: (0..settings.lessons.sets.max(1)).map(set).collect() }
    }

    /// Draws one of the lessons of an iteration.
    pub fn draw_episode(&self, settings: &Settings, iteration: u64, draw: u64) -> EpisodeSetup {
        let mut random = Random::new(settings.seed.wrapping_add(iteration << 20), &format!("lesson {draw}"));
        let EpisodeSettings { batches, jobs, executors, load, .. } = settings.lessons;
        let set = &self.sets[random.below(self.sets.len())];
        let executors = executors.0 + random.below((executors.1 - executors.0 + 1) as usize) as u32;
        let is_batch = random.part() < batches;
        let mean = between(settings.episode, iteration, settings.episode_until);
        // The length is drawn from a distribution without memory, as in the paper: the policy cannot foresee the end.
        let horizon = (random.exponential(mean) + 20.0).min(4.0 * mean);
        let count = jobs.0 + random.below(jobs.1 - jobs.0 + 1);
        let load = load.0 + (load.1 - load.0) * random.part();
        let work = set.iter().map(|job| job.work() as f64).sum::<f64>() / set.len().max(1) as f64;
        let gap = work / (load * f64::from(executors));
        let mut arrivals = Vec::new();
        let mut at = 0.0;
        // A stream starts with the jobs that would already be in the cluster.
        let there = if is_batch { count } else { 1 + random.below(count) };
        while arrivals.len() < 2_000 {
            if arrivals.len() >= there {
                at += random.exponential(gap);
                if is_batch || at >= horizon * 1000.0 {
                    break;
                }
            }
            arrivals.push(Arrival { at: at as u64, job: set[random.below(set.len())].clone() });
        }
        let setup = Setup { executors, ..Setup::default() };
        EpisodeSetup {
            arrivals,
            setup,
            horizon: (horizon * 1000.0) as u64,
            seed: random.below(1 << 40) as u64,
            is_batch,
        }
    }
}

fn scaled(job: &Arc<JobModel>, scale: f64) -> Arc<JobModel> {
    let mut job = (**job).clone();
    let times = |value: &mut u64| *value = ((*value as f64 * scale) as u64).max(1);
    for stage in &mut job.stages {
        times(&mut stage.rough);
        for durations in &mut stage.durations {
            let all = [&mut durations.first, &mut durations.rest, &mut durations.fresh];
            all.into_iter().flatten().for_each(times);
        }
    }
    Arc::new(job)
}
