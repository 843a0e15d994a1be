//! Policies that share the cores of the next epoch, as pure functions.
//!
//! They receive [`Bid`]s and a number of cores. They do not know offers, tasks or time.

mod fair;
mod slaq;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::predict::Forecast;

/// A policy that shares cores among jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// SLAQ's greedy allocation by predicted normalised gain.
    #[default]
    Slaq,
    /// SLAQ's allocation by a weighted mean of two gains: the normalised gain, and the share of a job's remaining work
    /// that is done.
    Towards(Objective),
    /// Equal shares; cores that one job cannot use go to the others.
    Fair,
    /// As many cores as a job can use, in the order of submission.
    Fifo,
    /// As many cores as a job can use, in the order of predicted remaining work.
    Shortest,
}

impl Policy {
    /// Returns the policy's name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Slaq | Policy::Towards(_) => "slaq",
            Policy::Fair => "fair",
            Policy::Fifo => "fifo",
            Policy::Shortest => "shortest",
        }
    }
}

/// The goal of sharing cores, between quality (0) and completion (1).
///
/// The value is the weight of completion. At 0 a core is worth the fall of the normalised loss that it brings in the
/// coming epoch. At 1 it is worth the share of the job's remaining work that it does, which prefers the job that ends
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objective(u16);

/// An error for a number that is not an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be between 0 (quality) and 1 (completion), not {0}")]
pub struct InvalidObjective(String);

impl Objective {
    /// Creates an objective, rounded to a thousandth.
    ///
    /// # Errors
    /// The value is not between 0 and 1.
    pub fn new(value: f64) -> Result<Objective, InvalidObjective> {
        match value {
            0.0..=1.0 => Ok(Objective((1000.0 * value).round() as u16)),
            _ => Err(InvalidObjective(value.to_string())),
        }
    }

    /// Returns the weight of completion.
    fn completion(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

/// An error for a text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a policy: slaq, fair, fifo or shortest")]
pub struct UnknownPolicy(String);

impl std::str::FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Policy, UnknownPolicy> {
        let all = [Policy::Slaq, Policy::Fair, Policy::Fifo, Policy::Shortest];
        let known = all.into_iter().find(|p| p.name() == text);
        known.ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

/// A job's state and demand in an allocation decision.
#[derive(Clone, Copy, Debug)]
pub struct Bid {
    /// Factor of the job's gain; 1 for ordinary jobs. Positive.
    pub priority: f64,
    /// Minimum number of cores, as far as there are enough.
    pub floor: u32,
    /// Maximum number of cores that the job can use.
    pub ceiling: u32,
    /// Number of cores that the job has now.
    pub held: u32,
    /// Prediction of the job's loss and of its times.
    pub forecast: Forecast,
    /// Whether the job has reached its target quality; then it keeps its floor only.
    pub reached: bool,
    /// Number of epochs since a core last worked for the job.
    pub waited: u32,
    /// Number of consecutive epochs up to now in which at least one core worked for the job.
    pub served: u32,
    /// Number of iterations that ended in the [`served`](Bid::served) epochs.
    pub done: u32,
    /// Core-seconds that the job has received so far.
    pub received: f64,
    /// Predicted core-seconds until the job ends; `None` if they cannot be predicted.
    pub remaining: Option<f64>,
}

/// Number of epochs after which a job without a core comes first, whatever other jobs would gain.
pub const MAX_EPOCHS_WAITING: u32 = 12;

/// Number of epochs for which a job keeps at least one core before it may lose its last one; the job keeps it also
/// until an iteration has ended in them. With less, the time would be spent on starting. The policy does not wait for
/// an iteration that takes longer than [`MAX_EPOCHS_WAITING`].
pub const MIN_EPOCHS_SERVED: u32 = 1;

impl Bid {
    /// Returns whether the job has received its first core so recently that it must not lose it yet (see
    /// [`MIN_EPOCHS_SERVED`]).
    fn must_keep_core(&self) -> bool {
        self.held > 0 && (self.served < MIN_EPOCHS_SERVED || self.done == 0 && self.served < MAX_EPOCHS_WAITING)
    }

    /// Returns whether the job has been without a core for [`MAX_EPOCHS_WAITING`] epochs or more.
    fn has_waited_too_long(&self) -> bool {
        self.waited >= MAX_EPOCHS_WAITING
    }
}

/// Returns the number of cores of each job. No job gets more than its ceiling, and all together never get more than
/// `cores`. All cores are given out as far as jobs can use them.
///
/// With at least one core for each job, each job gets one, and then the rest of its floor as far as there are cores for
/// that; [`Policy::Fair`] has no floors of more than one. With fewer cores than jobs a job may be without one. Then the
/// jobs whose turn has only begun come first, and after them the jobs that have waited for [`MAX_EPOCHS_WAITING`]
/// epochs, longest first.
///
/// `epoch` is the number of seconds for which the decision holds.
pub fn decide(policy: Policy, bids: &[Bid], cores: u32, epoch: f64) -> Vec<u32> {
    match policy {
        Policy::Slaq => slaq::slaq(bids, cores, epoch, 0.0),
        Policy::Towards(objective) => slaq::slaq(bids, cores, epoch, objective.completion()),
        Policy::Fair => fair::fair(bids, cores),
        Policy::Fifo => fill_in_order(bids, cores, (0..bids.len()).collect()),
        Policy::Shortest => {
            let mut order: Vec<usize> = (0..bids.len()).collect();
            // A job without a prediction runs first, to show its length.
            let length = |job: &usize| bids[*job].remaining.unwrap_or(0.0);
            order.sort_by(|a, b| length(a).total_cmp(&length(b)));
            fill_in_order(bids, cores, order)
        }
    }
}

/// Gives all jobs their floors first, and then their ceilings in this order.
fn fill_in_order(bids: &[Bid], cores: u32, order: Vec<usize>) -> Vec<u32> {
    let mut given = vec![0; bids.len()];
    let mut left = floors(bids, cores, &order, &mut given);
    for job in order {
        left -= raise(&mut given[job], bids[job].ceiling, left);
    }
    given
}

/// Gives each of these jobs a core: those in their turn first, then those that have waited too long, then the others in
/// this order. If every job can have a core, gives them the rest of their floors, too. Returns the number of cores that
/// are left.
fn floors(bids: &[Bid], cores: u32, order: &[usize], given: &mut [u32]) -> u32 {
    let mut order = order.to_vec();
    order.sort_by_key(|job| match &bids[*job] {
        bid if bid.must_keep_core() => (0, Reverse(0)),
        bid if bid.has_waited_too_long() => (1, Reverse(bid.waited)),
        _ => (2, Reverse(0)),
    });
    let mut left = cores;
    let most = if scarce(bids, cores) { 1 } else { u32::MAX };
    for most in [1, most] {
        for &job in &order {
            let floor = bids[job].floor.min(bids[job].ceiling).min(most);
            left -= raise(&mut given[job], floor, left);
        }
    }
    left
}

/// Returns whether there are fewer cores than jobs.
fn scarce(bids: &[Bid], cores: u32) -> bool {
    bids.iter().filter(|b| b.floor > 0).count() > cores as usize
}

/// Raises a job's cores to `to` as far as cores are left. Returns the number taken.
fn raise(given: &mut u32, to: u32, left: u32) -> u32 {
    let more = to.saturating_sub(*given).min(left);
    *given += more;
    more
}
