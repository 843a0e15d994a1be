//! How a training goes.

use serde::{Deserialize, Serialize};

/// Settings of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Decides jobs, durations, first weights and choices.
    pub seed: u64,
    /// Kinds of jobs that an iteration draws.
    pub draws: usize,
    /// Rollouts of the same jobs in an iteration: the baseline is their mean.
    pub rollouts: usize,
    /// Iterations of imitation of `teacher` before rewards count.
    pub imitation: u64,
    /// The heuristic that is imitated.
    pub teacher: String,
    /// How often the rollouts of an iteration are used (as in PPO).
    pub passes: usize,
    /// How far the probability of a choice may go from what it was in the rollouts before it counts no more (PPO).
    pub clip: f32,
    /// The step of Adam, for imitation and for rewards.
    pub steps: (f32, f32),
    /// The most that the norm of a gradient may be.
    pub norm: f32,
    /// The weight of the entropy at first, and in the end.
    pub entropy: (f32, f32),
    /// Iterations after which the weight of the entropy is at its end.
    pub entropy_until: u64,
    /// Mean seconds of an episode at first, and in the end.
    pub episode: (f64, f64),
    /// Iterations after which episodes have their last length.
    pub episode_until: u64,
    /// A second later counts so much less.
    pub discount: f64,
    /// Kinds of jobs.
    pub lessons: Lessons,
}

/// From what jobs are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lessons {
    /// Sets of made queries.
    pub sets: u64,
    /// The part of iterations with a batch; the others have a stream.
    pub batches: f64,
    /// Jobs of a batch, the least and the most.
    pub jobs: (usize, usize),
    /// Executors, the least and the most.
    pub executors: (u32, u32),
    /// Nominal load of a stream, the least and the most.
    pub load: (f64, f64),
    /// Durations are multiplied by a power of 2 of at most this size, up or down.
    pub scale: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            seed: 1,
            draws: 3,
            rollouts: 6,
            imitation: 80,
            teacher: "remaining".to_owned(),
            passes: 2,
            clip: 0.2,
            steps: (2e-3, 7e-4),
            norm: 0.5,
            entropy: (0.0005, 0.0),
            entropy_until: 1000,
            episode: (300.0, 1200.0),
            episode_until: 400,
            discount: 0.002,
            lessons: Lessons {
                sets: 24,
                batches: 0.5,
                jobs: (8, 30),
                executors: (20, 70),
                load: (0.6, 0.95),
                scale: 0.7,
            },
        }
    }
}

/// From the first value to the last, evenly, until this iteration.
pub(crate) fn between((first, last): (f64, f64), iteration: u64, until: u64) -> f64 {
    let part = (iteration as f64 / until.max(1) as f64).min(1.0);
    first + (last - first) * part
}
