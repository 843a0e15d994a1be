//! The environment for sizes of a stage's tasks, wave by wave, over the machines of the study of Libra (`dag`'s
//! `study::libra`). An action is the size of the next wave's tasks, and the reward is minus the seconds until the next
//! choice. The return is therefore minus the time of the stage.
//!
//! A wave has as many tasks as there are executors. Each executor takes one as soon as it is free. An observation has
//! the rates of the tasks that finished meanwhile.

use dag::sizing::{Fixed, Rule, Sizing, SizingConfig, Tuner};
use dag::study::libra::{self, Curve, curves};
use dag::study::stage::{FreeSlot, Stage};
use serde::Deserialize;

use crate::environment::{ChosenAction, roll_out};
use crate::error::rules;
use crate::random::Random;
use crate::space::{Actions, Field, Row, Spaces};
use crate::{Action, Environment, LearningError, Rollout, Step};

/// Settings of the environment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Name of the stage: scan, join, slow start, compute, neighbour; with `any` the seed of an episode chooses one.
    pub stage: String,
    /// Size in the first observation, before the first wave, in MiB.
    pub start: f64,
    /// Size of the stage's input, as a multiple of the study's.
    pub input: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { stage: "any".to_owned(), start: 8.0, input: 1.0 }
    }
}

/// Smallest and largest size, as logarithms to base 2 of MiB: 1 MiB to 4 GiB.
const BOUNDS: (f32, f32) = (0.0, 12.0);

/// Number of bytes of a mebibyte.
const MEBI: f64 = 1_048_576.0;

/// Names of the policies of [`Environment::baseline`].
const POLICIES: &str = "random, tuned, block, per-slot, 'fixed MIB'";

/// Measurements of a wave.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Logarithm to base 2 of the size of its tasks in MiB.
    size: f64,
    /// Number of tasks that finished while the wave was handed out, divided by the number of executors.
    finished: f64,
    /// Mean of the logarithms to base 2 of the rates of finished tasks in MiB/s; their deviation follows.
    rate: f64,
    deviation: f64,
    /// Duration of the wave in seconds.
    seconds: f64,
}

/// The environment for sizes of tasks.
pub struct TaskSizing {
    settings: Settings,
    spaces: Spaces,
    all: Vec<Curve>,
    curve: Curve,
    stage: Stage,
    /// Executor that waits for the next wave.
    free: Option<FreeSlot>,
    last: Seen,
    before: Seen,
    waves: u32,
    tasks: u64,
}

impl TaskSizing {
    /// Creates an environment.
    ///
    /// # Errors
    /// Returns the first invalid setting.
    pub fn new(settings: Settings) -> Result<TaskSizing, LearningError> {
        rules([
            ("start", (1.0..=4096.0).contains(&settings.start), "must be 1 to 4096 MiB"),
            ("input", (0.001..=100.0).contains(&settings.input), "must be 0.001 to 100"),
        ])?;
        let mut all = curves();
        if settings.stage != "any" {
            all.retain(|curve| curve.name == settings.stage);
        }
        all.iter_mut().for_each(|curve| curve.input = ((curve.input as f64 * settings.input) as u64).max(1));
        let rule = "must be any, scan, join, 'slow start', compute or neighbour";
        let Some(curve) = all.first().cloned() else { return Err(LearningError::setting("stage", rule)) };
        let spaces = Spaces {
            observation: vec![Field::floats("stage", &[4]), Field::floats("waves", &[2, 5])],
            action: Actions::Amounts(vec![BOUNDS]),
            info: vec!["seconds", "waves", "tasks"],
            reward: (f64::NEG_INFINITY, 0.0),
        };
        let stage = Stage::new(&curve, 0);
        let (last, before) = (Seen::default(), Seen::default());
        Ok(TaskSizing { settings, spaces, all, curve, stage, free: None, last, before, waves: 0, tasks: 0 })
    }

    /// Returns the stage of an episode.
    fn curve(&self, seed: u64) -> Curve {
        self.all[Random::new(seed, "stage").below(self.all.len())].clone()
    }

    /// Hands out a wave of tasks of this size, and advances the time to the next choice. Returns the rates of finished
    /// tasks as logarithms.
    fn wave(&mut self, size: u64) -> Vec<f64> {
        let mut rates = Vec::new();
        let mut given = 0;
        while let Some(free) = self.free.take().or_else(|| self.stage.next_free()) {
            if let Some((size, took)) = free.finished {
                rates.push((size as f64 / MEBI / took.as_secs_f64().max(1e-6)).log2());
            }
            if self.stage.left() > 0 {
                if given == self.curve.all_slots() {
                    // The task that it finished is counted already; the executor only waits for the next size.
                    self.free = Some(FreeSlot { finished: None, ..free });
                    break;
                }
                self.stage.start(free, size);
                given += 1;
                self.tasks += 1;
            }
        }
        rates
    }

    /// Returns the sizing of the study for the policy of this name.
    fn sizing(&self, policy: &str, curve: &Curve) -> Option<Sizing> {
        let fixed = |rule| Some(Sizing::Fixed(Fixed::new(rule, curve.input, curve.all_slots())));
        let bytes = |mebis: f64| (mebis * MEBI) as u64;
        match policy {
            "tuned" => {
                let config = SizingConfig {
                    least: 64 << 10,
                    most: 4 << 30,
                    start: bytes(self.settings.start),
                    ..SizingConfig::default()
                };
                Some(Sizing::Tuned(Box::new(Tuner::new(config))))
            }
            "block" => fixed(Rule::Block),
            "per-slot" => fixed(Rule::PerSlot),
            _ => {
                let mebis = policy.strip_prefix("fixed ")?.parse::<f64>().ok()?;
                (1.0..=4096.0).contains(&mebis).then(|| fixed(Rule::Size(bytes(mebis))))?
            }
        }
    }
}

impl Environment for TaskSizing {
    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) -> Result<(), LearningError> {
        self.curve = self.curve(seed);
        self.stage = Stage::new(&self.curve, seed);
        self.free = self.stage.next_free();
        (self.last, self.before) = (Seen { size: self.settings.start.log2(), ..Seen::default() }, Seen::default());
        (self.waves, self.tasks) = (0, 0);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, LearningError> {
        let size = f64::from(action.amount(0).clamp(BOUNDS.0, BOUNDS.1));
        let from = self.stage.now();
        let rates = self.wave((size.exp2() * MEBI) as u64);
        let terminated = self.free.is_none();
        let until = if terminated { self.stage.seconds().max(from) } else { self.stage.now() };
        let count = rates.len().max(1) as f64;
        let rate = rates.iter().sum::<f64>() / count;
        let deviation = (rates.iter().map(|one| (one - rate).powi(2)).sum::<f64>() / count).sqrt();
        let finished = rates.len() as f64 / f64::from(self.curve.all_slots());
        self.before =
            std::mem::replace(&mut self.last, Seen { size, finished, rate, deviation, seconds: until - from });
        self.waves += 1;
        Ok(Step { reward: from - until, terminated, truncated: false })
    }

    fn observe(&self, row: &mut Row<'_>) {
        let left = self.stage.left() as f64;
        let all = f64::from(self.curve.all_slots());
        let per_slot = (left / MEBI / all).max(1.0).log2();
        let stage = [left / self.curve.input as f64, per_slot, all, self.stage.now()];
        row.floats(0, 0, stage.map(|one| one as f32));
        let waves = [self.before, self.last];
        let numbers = waves.map(|seen| [seen.size, seen.finished, seen.rate, seen.deviation, seen.seconds.ln_1p()]);
        row.floats(1, 0, numbers.into_iter().flatten().map(|one| one as f32));
    }

    fn info(&self, values: &mut [f64]) {
        values.copy_from_slice(&[self.stage.now(), f64::from(self.waves), self.tasks as f64]);
    }

    fn policies(&self) -> &'static str {
        POLICIES
    }

    fn baseline(&mut self, policy: &str, seed: u64) -> Result<Rollout, LearningError> {
        if policy == "random" {
            let mut random = Random::new(seed, "policy");
            let draw = |_: &mut TaskSizing| {
                ChosenAction::Amounts(vec![BOUNDS.0 + random.part() as f32 * (BOUNDS.1 - BOUNDS.0)])
            };
            return roll_out(self, seed, draw);
        }
        let curve = self.curve(seed);
        let unknown = || LearningError::Policy { policy: policy.to_owned(), known: POLICIES };
        let mut sizing = self.sizing(policy, &curve).ok_or_else(unknown)?;
        let out = libra::run(&curve, &mut sizing, seed);
        Ok(Rollout { total: -out.seconds, info: vec![out.seconds, out.waves.len() as f64, f64::from(out.tasks)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_size_is_the_fixed_size_of_the_study() {
        let mut sizing = TaskSizing::new(Settings { input: 0.1, ..Settings::default() }).unwrap();
        for seed in 1..8 {
            let fixed = sizing.baseline("fixed 64", seed).unwrap();
            let constant = roll_out(&mut sizing, seed, |_| ChosenAction::Amounts(vec![6.0])).unwrap();
            assert!((fixed.total - constant.total).abs() < 1e-6, "{fixed:?} {constant:?}");
            assert_eq!(fixed.info[2], constant.info[2]);
        }
        let mean = |sizing: &mut TaskSizing, policy| {
            (1..8).map(|seed| sizing.baseline(policy, seed).unwrap().total).sum::<f64>()
        };
        assert!(mean(&mut sizing, "tuned") > mean(&mut sizing, "random"));
        assert!(sizing.baseline("fixed x", 1).is_err());
        let wrong = Settings { stage: "x".into(), ..Settings::default() };
        assert!(TaskSizing::new(wrong).is_err());
    }
}
