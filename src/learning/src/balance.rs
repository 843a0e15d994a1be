//! The environment for load balancing of Park (NeurIPS 2019): jobs of unknown future arrive one by one, and each goes
//! to one of several servers of different speed. It decides nothing itself, apart from the policies that learners are
//! compared with.
//!
//! A server processes its jobs in the order of their arrival. The reward is −Δt · jobs in the system, divided by all
//! jobs of the episode: the return is minus the mean time that a job spends in the system, in seconds.

use std::collections::VecDeque;

use serde::Deserialize;

use crate::environment::{ChosenAction, roll_out};
use crate::error::rules;
use crate::random::{Random, pareto};
use crate::space::{Actions, Field, Row, Spaces};
use crate::{Action, Environment, LearningError, Rollout, Step};

/// Settings of the environment; the defaults are those of Park.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Number of servers.
    pub servers: usize,
    /// Number of jobs of an episode.
    pub jobs: usize,
    /// Mean time between two arrivals, in seconds.
    pub gap: f64,
    /// Smallest size of a job.
    pub scale: f64,
    /// Shape of the Pareto distribution of sizes: the smaller, the heavier is its tail.
    pub shape: f64,
    /// Speed of the slowest server, in size a second.
    pub slowest: f64,
    /// Speed of the fastest server, in size a second; the others are evenly between.
    pub fastest: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { servers: 10, jobs: 1000, gap: 55.0, scale: 100.0, shape: 1.5, slowest: 0.15, fastest: 1.05 }
    }
}

/// Names of the policies of [`Environment::baseline`].
const POLICIES: &str = "random, least-work, soonest-end";

/// The environment for load balancing.
pub struct LoadBalance {
    settings: Settings,
    spaces: Spaces,
    speeds: Vec<f64>,
    random: Random,
    /// Times at which the jobs of each server end, the first one first.
    ends: Vec<VecDeque<f64>>,
    now: f64,
    size: f64,
    arrived: usize,
    spent: f64,
}

impl LoadBalance {
    /// Creates an environment.
    ///
    /// # Errors
    /// Returns the first invalid setting.
    pub fn new(settings: Settings) -> Result<LoadBalance, LearningError> {
        rules([
            ("servers", (1..=1000).contains(&settings.servers), "must be 1 to 1000"),
            ("jobs", (1..=1_000_000).contains(&settings.jobs), "must be 1 to 1,000,000"),
            ("gap", (1e-3..=1e6).contains(&settings.gap), "must be 0.001 to 10^6 seconds"),
            ("scale", (1e-3..=1e6).contains(&settings.scale), "must be 0.001 to 10^6"),
            ("shape", (1.01..=100.0).contains(&settings.shape), "must be 1.01 to 100"),
            ("slowest", (1e-3..=1e6).contains(&settings.slowest), "must be 0.001 to 10^6"),
            ("fastest", (settings.slowest..=1e6).contains(&settings.fastest), "must be 'slowest' to 10^6"),
        ])?;
        let servers = settings.servers;
        let spaces = Spaces {
            observation: vec![
                Field::floats("work", &[servers]),
                Field::floats("speed", &[servers]),
                Field::floats("size", &[1]),
            ],
            action: Actions::Choices(vec![servers as u32]),
            info: vec!["mean_time", "time", "decisions"],
            reward: (f64::NEG_INFINITY, 0.0),
        };
        let step = (settings.fastest - settings.slowest) / (servers.max(2) - 1) as f64;
        let speeds = (0..servers).map(|at| settings.slowest + step * at as f64).collect();
        Ok(LoadBalance {
            spaces,
            speeds,
            random: Random::new(0, "jobs"),
            ends: vec![VecDeque::new(); servers],
            now: 0.0,
            size: 0.0,
            arrived: 0,
            spent: 0.0,
            settings,
        })
    }

    /// Returns the time that a server needs for its present jobs, in seconds.
    fn busy(&self, server: usize) -> f64 {
        self.ends[server].back().map_or(0.0, |end| end - self.now)
    }

    /// Advances the time to `until`. Returns the job-seconds spent meanwhile.
    fn pass(&mut self, until: f64) -> f64 {
        let mut spent = 0.0;
        for ends in &mut self.ends {
            while let Some(end) = ends.pop_front_if(|end| *end <= until) {
                spent += end - self.now;
            }
            spent += ends.len() as f64 * (until - self.now);
        }
        self.now = until;
        spent
    }

    fn arrive(&mut self) {
        self.size = pareto(self.settings.scale, self.settings.shape, &mut self.random);
        self.arrived += 1;
    }
}

impl Environment for LoadBalance {
    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) -> Result<(), LearningError> {
        self.random = Random::new(seed, "jobs");
        self.ends.iter_mut().for_each(VecDeque::clear);
        (self.now, self.spent, self.arrived) = (0.0, 0.0, 0);
        self.arrive();
        Ok(())
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, LearningError> {
        let server = action.choice(0).min(self.speeds.len() - 1);
        let end = self.now + self.busy(server) + self.size / self.speeds[server];
        self.ends[server].push_back(end);
        let terminated = self.arrived == self.settings.jobs;
        let until = match terminated {
            true => self.ends.iter().filter_map(|ends| ends.back()).copied().fold(self.now, f64::max),
            false => self.now + self.random.exponential(self.settings.gap),
        };
        let spent = self.pass(until);
        self.spent += spent;
        if !terminated {
            self.arrive();
        }
        Ok(Step { reward: -spent / self.settings.jobs as f64, terminated, truncated: false })
    }

    fn observe(&self, row: &mut Row<'_>) {
        row.floats(0, 0, (0..self.speeds.len()).map(|server| (self.busy(server) * self.speeds[server]) as f32));
        row.floats(1, 0, self.speeds.iter().map(|speed| *speed as f32));
        row.floats(2, 0, [self.size as f32]);
    }

    fn info(&self, values: &mut [f64]) {
        values.copy_from_slice(&[self.spent / self.settings.jobs as f64, self.now, self.arrived as f64]);
    }

    fn policies(&self) -> &'static str {
        POLICIES
    }

    fn baseline(&mut self, policy: &str, seed: u64) -> Result<Rollout, LearningError> {
        let mut random = Random::new(seed, "policy");
        let servers = self.speeds.len();
        let least = |balance: &LoadBalance, of: &dyn Fn(usize) -> f64| {
            (0..balance.speeds.len()).min_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap_or(0)
        };
        match policy {
            "random" => roll_out(self, seed, |_| ChosenAction::Choices(vec![random.below(servers) as i32])),
            "least-work" => roll_out(self, seed, |balance| {
                ChosenAction::Choices(vec![
                    least(balance, &|server| balance.busy(server) * balance.speeds[server]) as i32
                ])
            }),
            "soonest-end" => roll_out(self, seed, |balance| {
                let end = |server: usize| balance.busy(server) + balance.size / balance.speeds[server];
                ChosenAction::Choices(vec![least(balance, &end) as i32])
            }),
            _ => Err(LearningError::Policy { policy: policy.to_owned(), known: POLICIES }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_return_is_minus_the_mean_time_and_knowing_the_speeds_helps() {
        let mut balance = LoadBalance::new(Settings { jobs: 300, ..Settings::default() }).unwrap();
        let mut of = |policy: &str| {
            let all: Vec<Rollout> = (1..6).map(|seed| balance.baseline(policy, seed).unwrap()).collect();
            assert!(all.iter().all(|one| (one.total + one.info[0]).abs() < 1e-6 * one.info[0]));
            all.iter().map(|one| one.total).sum::<f64>()
        };
        let (random, work, end) = (of("random"), of("least-work"), of("soonest-end"));
        assert!(random < work && work < end, "{random} {work} {end}");
        assert!(balance.baseline("x", 1).is_err());
        assert!(LoadBalance::new(Settings { gap: f64::NAN, ..Settings::default() }).is_err());
    }
}
