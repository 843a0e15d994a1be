//! A grey-box model of sprints (after "Model-driven computational sprinting", EuroSys 2018): it predicts how long jobs
//! take under a policy that was never tried. It lifts no limit itself.
//!
//! The white part is known: jobs wait in a queue, sprint after a timeout, and a budget pays for it ([`simulate`]). The
//! black part is learned: how much faster a sprint makes a job in effect, which is less than for a job that sprints
//! alone from its start (its marginal rate). Each profiled policy gives the effective rate with which the simulator is
//! closest to the observation. A random forest ([`Forest`]) predicts it for other policies, and the simulator computes
//! response times from it ([`GreyBoxModel`]). [`anneal`](fn@anneal) searches for the best policy.

mod anneal;
mod forest;
mod grey;
mod queue;

#[cfg(test)]
mod tests;

pub use anneal::{Range, Ranges, anneal};
pub use forest::{Forest, ForestSettings, Sample};
pub use grey::{GreyBoxModel, ProfiledPolicy, direct};
pub use queue::{Arrivals, Outcome, simulate};

use serde::{Deserialize, Serialize};

/// A policy of sprints: when and for how long jobs sprint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SprintPolicy {
    /// Seconds from a job's arrival until it sprints, if it has not ended by then.
    pub timeout: f64,
    /// Seconds of sprinting of one server that can be used at once.
    pub budget: f64,
    /// Seconds of sprinting that are added to the budget in a second.
    pub refill: f64,
    /// Amount of the boosted resource in a sprint relative to the normal one: cores, cycles, or time of a core.
    pub rate: f64,
}

/// A stream of seeded random numbers.
#[derive(Clone, Debug)]
struct Stream(u64);

impl Stream {
    fn new(seed: u64) -> Stream {
        Stream(base::scramble(seed))
    }

    /// Draws a number uniformly from 0 to 1, without 1.
    fn part(&mut self) -> f64 {
        base::fraction(base::split_mix(&mut self.0))
    }

    /// Draws an integer below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        ((self.part() * end as f64) as usize).min(end.saturating_sub(1))
    }
}
