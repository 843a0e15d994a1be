//! Settings of a training and their defaults. The trainer checks them.

use serde::{Deserialize, Serialize};

/// Settings of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Seed of jobs, durations, first weights and choices.
    pub seed: u64,
    /// Number of lessons that an iteration draws.
    pub draws: usize,
    /// Number of rollouts of each lesson in an iteration: the baseline is their mean.
    pub rollouts: usize,
    /// Number of iterations that imitate `teacher` before those that learn from rewards.
    pub imitation: u64,
    /// Name of the heuristic that is imitated.
    pub teacher: String,
    /// Number of times that the rollouts of an iteration are used (as in PPO).
    pub passes: usize,
    /// Change of a choice's probability, relative to that in the rollout, beyond which the choice counts no more (PPO).
    pub clip: f32,
    /// Step sizes of Adam: for imitation, and for rewards.
    pub steps: (f32, f32),
    /// Limit to which the norm of a gradient is clipped.
    pub norm: f32,
    /// First and last weight of the entropy.
    pub entropy: (f32, f32),
    /// Number of iterations after which the weight of the entropy is the last one.
    pub entropy_until: u64,
    /// First and last mean length of an episode, in seconds.
    pub episode: (f64, f64),
    /// Number of iterations after which episodes have the last length.
    pub episode_until: u64,
    /// Rate at which later seconds count less.
    pub discount: f64,
    /// Jobs and clusters of which lessons are drawn.
    pub lessons: EpisodeSettings,
}

/// The distribution of lessons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeSettings {
    /// Number of sets of generated queries.
    pub sets: u64,
    /// Fraction of lessons that are batches; the others are streams.
    pub batches: f64,
    /// Least and greatest number of jobs of a batch.
    pub jobs: (usize, usize),
    /// Least and greatest number of executors.
    pub executors: (u32, u32),
    /// Least and greatest nominal load of a stream.
    pub load: (f64, f64),
    /// Largest exponent of the power of 2 by which durations are multiplied or divided.
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
            lessons: EpisodeSettings {
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

/// Returns a value between the first and the last, which grows linearly until this iteration.
pub(crate) fn between((first, last): (f64, f64), iteration: u64, until: u64) -> f64 {
    let part = (iteration as f64 / until.max(1) as f64).min(1.0);
    first + (last - first) * part
}
