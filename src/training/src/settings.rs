//! Settings of a training, their defaults and their rules. The trainer checks them.

use dag::order::Heuristic;
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
#[serde(default, deny_unknown_fields)]
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
            lessons: EpisodeSettings::default(),
        }
    }
}

impl Default for EpisodeSettings {
    fn default() -> EpisodeSettings {
        EpisodeSettings { sets: 24, batches: 0.5, jobs: (8, 30), executors: (20, 70), load: (0.6, 0.95), scale: 0.7 }
    }
}

impl Settings {
    /// Returns the name of the first setting that breaks its rule, and the rule.
    pub(crate) fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        const ABOVE_ZERO: &str = "must be above 0, and 1 at most";
        let lessons = &self.lessons;
        let step = |step: f32| is_above_zero(f64::from(step), 1.0);
        let weight = |weight: f32| (0.0..=1.0).contains(&weight);
        let length = |seconds: f64| (1.0..=100_000.0).contains(&seconds);
        let rules = [
            ("draws", "must be 1 to 64", (1..=64).contains(&self.draws)),
            ("rollouts", "must be 2 to 256", (2..=256).contains(&self.rollouts)),
            ("teacher", "must be an order such as fair", self.teacher.parse::<Heuristic>().is_ok()),
            ("passes", "must be 1 to 100", (1..=100).contains(&self.passes)),
            ("clip", ABOVE_ZERO, is_above_zero(f64::from(self.clip), 1.0)),
            ("steps", ABOVE_ZERO, step(self.steps.0) && step(self.steps.1)),
            ("norm", "must be above 0, and 1,000 at most", is_above_zero(f64::from(self.norm), 1000.0)),
            ("entropy", "must be 0 to 1", weight(self.entropy.0) && weight(self.entropy.1)),
            ("episode", "must be 1 to 100,000 seconds", length(self.episode.0) && length(self.episode.1)),
            ("discount", "must be 0 to 1", (0.0..=1.0).contains(&self.discount)),
            // A set of queries takes about 6 MB.
            ("lessons.sets", "must be 1 to 100", (1..=100).contains(&lessons.sets)),
            ("lessons.batches", "must be 0 to 1", (0.0..=1.0).contains(&lessons.batches)),
            ("lessons.jobs", "must be 1 to 1,000, the smaller number first", is_range(lessons.jobs, 1, 1000)),
            (
                "lessons.executors",
                "must be 1 to 10,000, the smaller number first",
                is_range(lessons.executors, 1, 10_000),
            ),
            (
                "lessons.load",
                "must be above 0, and 2 at most, the smaller number first",
                is_range(lessons.load, f64::MIN_POSITIVE, 2.0),
            ),
            ("lessons.scale", "must be 0 to 10", (0.0..=10.0).contains(&lessons.scale)),
        ];
        rules.into_iter().find(|(.., holds)| !holds).map(|(setting, rule, _)| (setting, rule))
    }
}

fn is_above_zero(number: f64, most: f64) -> bool {
    number > 0.0 && number <= most
}

/// Returns whether two numbers are within the bounds, and the first is not above the second.
fn is_range<T: PartialOrd>((from, to): (T, T), least: T, most: T) -> bool {
    least <= from && from <= to && to <= most
}

/// Returns a value between the first and the last, which grows linearly until this iteration.
pub(crate) fn between((first, last): (f64, f64), iteration: u64, until: u64) -> f64 {
    let part = (iteration as f64 / until.max(1) as f64).min(1.0);
    first + (last - first) * part
}
