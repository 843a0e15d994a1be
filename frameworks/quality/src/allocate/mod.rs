//! Policies that share out the cores of the next epoch, as pure functions.
//!
//! They receive [`Bid`]s and a number of cores. They do not know offers, tasks or time.

mod fair;
mod slaq;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::predict::Outlook;

/// How cores are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// SLAQ's greedy allocation by predicted normalised gain.
    #[default]
    Slaq,
    /// The same by a mean of that gain and of the share of a job's remaining work that is done.
    Towards(Objective),
    /// Equally; what one job cannot use goes to the others.
    Fair,
    /// All that a job can use, in the order of submission.
    Fifo,
    /// All that a job can use, to the job first that will be done first.
    Shortest,
}

impl Policy {
    /// Its name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Slaq | Policy::Towards(_) => "slaq",
            Policy::Fair => "fair",
            Policy::Fifo => "fifo",
            Policy::Shortest => "shortest",
        }
    }
}

/// What cores are shared for: between quality, 0, and completion, 1.
///
/// Its value is the weight of completion: at 0 a core is worth the fall of the normalised loss that it brings in the
/// coming epoch, at 1 the share of the job's remaining work that it does, which prefers the job that is done first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objective(u16);

/// A number that is not an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be between 0 (quality) and 1 (completion), not {0}")]
pub struct InvalidObjective(String);

impl Objective {
    /// An objective, to the thousandth.
    ///
    /// # Errors
    /// It is not between 0 and 1.
    pub fn new(value: f64) -> Result<Objective, InvalidObjective> {
        match value {
            0.0..=1.0 => Ok(Objective((1000.0 * value).round() as u16)),
            _ => Err(InvalidObjective(value.to_string())),
        }
    }

    /// The weight of completion.
    fn completion(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

/// A text that names no policy.
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

/// What a job brings when cores are shared out.
#[derive(Clone, Copy, Debug)]
pub struct Bid {
    /// What the job's gain counts, against 1 for others. Positive.
    pub priority: f64,
    /// The least cores that it is to have, as far as there are enough.
    pub floor: u32,
    /// The most cores that it can use.
    pub ceiling: u32,
    /// Cores that it has now.
    pub held: u32,
    /// What may be expected of it.
    pub outlook: Outlook,
    /// Whether it has reached its target quality: it keeps its floor.
    pub reached: bool,
    /// For how many epochs no core has worked for it.
    pub waited: u32,
    /// For how many epochs a core at least has worked for it, without one in between in which none did.
    pub served: u32,
    /// How many iterations ended in these.
    pub done: u32,
    /// Core-seconds that it has had so far.
    pub received: f64,
    /// Remaining core-seconds, if they can be predicted.
    pub remaining: Option<f64>,
}

/// A job that has had no core for this many epochs comes first, whatever the policy gains by others.
pub const PATIENCE: u32 = 12;

/// For this many epochs, and until an iteration has ended in them, a job has a core at least before it may lose its
/// last one: less would be spent on starting. An iteration that takes longer than [`PATIENCE`] is not waited for.
pub const TURN: u32 = 1;

impl Bid {
    /// Whether it has begun with its first core only lately.
    fn in_turn(&self) -> bool {
        self.held > 0 && (self.served < TURN || self.done == 0 && self.served < PATIENCE)
    }

    /// Whether it has waited for too long.
    fn impatient(&self) -> bool {
        self.waited >= PATIENCE
    }
}

/// How many cores each job gets: never more than its ceiling, and all together never more than `cores`. All cores are
/// given out as far as jobs can use them. With at least one core a job, each job gets one, and then what is more of its
/// floor as far as there are cores for that, but with [`Policy::Fair`], which knows no floors of more than one. With
/// fewer cores than jobs a job may be without one. Those that have waited for [`PATIENCE`] epochs come first then,
/// longest first, after those whose turn has begun only lately.
///
/// `epoch` is for how many seconds the decision holds.
pub fn decide(policy: Policy, bids: &[Bid], cores: u32, epoch: f64) -> Vec<u32> {
    match policy {
        Policy::Slaq => slaq::slaq(bids, cores, epoch, 0.0),
        Policy::Towards(objective) => slaq::slaq(bids, cores, epoch, objective.completion()),
        Policy::Fair => fair::fair(bids, cores),
        Policy::Fifo => in_turn(bids, cores, (0..bids.len()).collect()),
        Policy::Shortest => {
            let mut order: Vec<usize> = (0..bids.len()).collect();
            // A job without a prediction has to show its length first.
            let length = |job: &usize| bids[*job].remaining.unwrap_or(0.0);
            order.sort_by(|a, b| length(a).total_cmp(&length(b)));
            in_turn(bids, cores, order)
        }
    }
}

/// Floors for all first, then ceilings in this order.
fn in_turn(bids: &[Bid], cores: u32, order: Vec<usize>) -> Vec<u32> {
    let mut given = vec![0; bids.len()];
    let mut left = floors(bids, cores, &order, &mut given);
    for job in order {
        left -= raise(&mut given[job], bids[job].ceiling, left);
    }
    given
}

/// Gives these jobs a core each: those in their turn first, then those that have waited too long, then the others in
/// this order. With one for every job there is, it gives them what is more of their floors, too. Says what is left.
fn floors(bids: &[Bid], cores: u32, order: &[usize], given: &mut [u32]) -> u32 {
    let mut order = order.to_vec();
    order.sort_by_key(|job| match &bids[*job] {
        bid if bid.in_turn() => (0, Reverse(0)),
        bid if bid.impatient() => (1, Reverse(bid.waited)),
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

/// Whether there are fewer cores than jobs.
fn scarce(bids: &[Bid], cores: u32) -> bool {
    bids.iter().filter(|b| b.floor > 0).count() > cores as usize
}

/// Raises a job's cores to `to` as far as cores are left. Returns the number taken.
fn raise(given: &mut u32, to: u32, left: u32) -> u32 {
    let more = to.saturating_sub(*given).min(left);
    *given += more;
    more
}
