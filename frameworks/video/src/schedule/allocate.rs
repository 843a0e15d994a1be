//! Allocates cores to queries by model-predictive control: by the lag that an allocation leads to at a horizon.
//!
//! The lag after `T` seconds with `a` cores in a configuration that needs `R` to keep up is `max(0, L + T (1 - a/R))`.
//! The utility of a configuration is therefore a straight line in the cores up to the amount that just meets the lag
//! goal. The maximum over all configurations is replaced by its concave hull, along which cores are given step by step
//! to the largest marginal utility. This is the paper's greedy heuristic without its fixed step. It is exact where all
//! steps that are taken end at corners of hulls. For a step that does not fit, either its query gets the remaining
//! cores in part, or flatter steps that fit get them, whichever is worth more. Between two corners a query has less
//! utility than its hull, by at most the difference in quality of its configurations.

use serde::{Deserialize, Serialize};

use super::goals::Goals;
use crate::profile::Point;

/// Time in seconds within which lag over its goal is to be removed. It is shorter than the horizon; otherwise a demand
/// that is slightly above its estimate would hold a query over its goal for as long as it lasts.
const CATCH_UP: f64 = 2.0;
/// Maximum number of steps off the hulls, with the cores that the steps along them left.
const LAST_STEPS: usize = 6;

/// The policy that divides the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Maximizes the utility of quality and lag (VideoStorm).
    Videostorm,
    /// Equal shares. Cores that a query cannot use go to the others, and each query gets the best configuration for its
    /// share.
    Fair,
}

/// Objective of the allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Objective {
    /// Maximizes the sum of utilities.
    #[serde(rename = "max-sum")]
    MaxSum,
    /// Maximizes the least utility.
    #[serde(rename = "max-min")]
    MaxMin,
}

/// Time that the allocation looks ahead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Horizon {
    /// Length of the horizon in seconds.
    pub seconds: f64,
}

impl Default for Horizon {
    fn default() -> Horizon {
        Horizon { seconds: 6.0 }
    }
}

/// Properties of a query that an allocation depends on.
#[derive(Clone, Debug)]
pub struct Demand<'a> {
    /// Goals for lag and quality.
    pub goals: Goals,
    /// Pareto-optimal configurations, from cheap to expensive. Not empty.
    pub points: &'a [Point],
    /// Present lag in seconds.
    pub lag: f64,
    /// Measured demand divided by that of the profile.
    pub correction: f64,
}

/// Allocation of a query: a configuration and cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Index of the configuration in the query's points.
    pub point: usize,
    /// Number of cores.
    pub cores: f64,
}

impl Demand<'_> {
    /// Returns the cores needed to keep up in this configuration.
    pub fn need(&self, point: usize) -> f64 {
        self.points.get(point).map_or(0.0, |p| p.cores * self.correction).max(1e-9)
    }

    /// Returns the cores needed to keep up in the cheapest configuration that meets the quality goal, or in the best
    /// one if none does.
    pub fn least_cores_for_goals(&self) -> f64 {
        let good = self.points.iter().position(|p| p.quality >= self.goals.min_quality);
        self.need(good.unwrap_or(self.points.len().saturating_sub(1)))
    }

    /// Returns the planned time in seconds: the horizon, or the shorter time in which the query must catch up.
    fn ahead(&self, horizon: Horizon) -> f64 {
        let over = self.lag > self.goals.planned().max_lag;
        if over { horizon.seconds.min(CATCH_UP) } else { horizon.seconds }
    }

    /// Returns the lag at the horizon in seconds.
    pub fn lag_after(&self, share: Share, horizon: Horizon) -> f64 {
        (self.lag + self.ahead(horizon) * (1.0 - share.cores / self.need(share.point))).max(0.0)
    }

    /// Returns the utility at the horizon, with a margin of the lag goal (see [`Goals::planned`]).
    pub fn utility(&self, share: Share, horizon: Horizon) -> f64 {
        let quality = self.points.get(share.point).map_or(0.0, |p| p.quality);
        self.goals.planned().utility(quality, self.lag_after(share, horizon))
    }

    /// Returns the least number of cores with which the lag goal is met at the horizon.
    fn to_goal(&self, point: usize, horizon: Horizon) -> f64 {
        (self.need(point) * (1.0 + (self.lag - self.goals.planned().max_lag) / self.ahead(horizon))).max(0.0)
    }

    /// Returns the least number of cores with which there is no lag at the horizon. More cores are of no use.
    pub fn useful(&self, point: usize, horizon: Horizon) -> f64 {
        self.need(point) * (1.0 + self.lag / self.ahead(horizon))
    }

    /// Returns the least number of cores that reaches this utility, with its configuration; `None` if it cannot be
    /// reached.
    fn cores_for(&self, utility: f64, horizon: Horizon) -> Option<Share> {
        let reach = |point: usize| {
            let spare = self.goals.of_quality(self.points[point].quality) - utility;
            if spare < -1e-12 {
                return None;
            }
            // This many seconds over the lag goal may remain.
            let over = spare.max(0.0) / self.goals.lag_weight.max(1e-9);
            let goal = self.goals.planned().max_lag + over;
            let cores = self.need(point) * (1.0 + (self.lag - goal) / self.ahead(horizon));
            Some(Share { point, cores: cores.max(0.0) })
        };
        let shares = (0..self.points.len()).rev().filter_map(reach);
        shares.min_by(|a, b| a.cores.total_cmp(&b.cores))
    }

    /// Returns the corners of the concave hull of the best utility over cores, from few cores to many.
    fn corners(&self, horizon: Horizon) -> Vec<(Share, f64)> {
        let mut all: Vec<(Share, f64)> = Vec::with_capacity(2 * self.points.len());
        for point in 0..self.points.len() {
            for cores in [0.0, self.to_goal(point, horizon)] {
                let share = Share { point, cores };
                all.push((share, self.utility(share, horizon)));
            }
        }
        all.sort_by(|a, b| a.0.cores.total_cmp(&b.0.cores).then(b.1.total_cmp(&a.1)));
        let mut hull: Vec<(Share, f64)> = Vec::new();
        for corner in all {
            if hull.last().is_some_and(|last| corner.1 <= last.1 + 1e-12) {
                continue;
            }
            while let [.., a, b] = hull.as_slice() {
                let slope = |from: &(Share, f64), to: &(Share, f64)| (to.1 - from.1) / (to.0.cores - from.0.cores);
                if slope(a, b) > slope(b, &corner) {
                    break;
                }
                hull.pop();
            }
            // Of two corners with equal cores only the better one is needed; the second is here only if it is better.
            if hull.last().is_some_and(|last| corner.0.cores - last.0.cores < 1e-12) {
                hull.pop();
            }
            hull.push(corner);
        }
        hull
    }

    /// Returns the best configuration for this many cores.
    fn best_for(&self, cores: f64, horizon: Horizon) -> Share {
        let shares = (0..self.points.len()).map(|point| Share { point, cores });
        let worth = |s: &Share| self.utility(*s, horizon);
        shares.max_by(|a, b| worth(a).total_cmp(&worth(b))).unwrap_or(Share { point: 0, cores })
    }
}

/// Returns the shares of all queries, in their order; together they have at most `cores`.
pub fn allocate(
    queries: &[Demand<'_>],
    cores: f64,
    policy: Policy,
    objective: Objective,
    horizon: Horizon,
) -> Vec<Share> {
    let cores = cores.max(0.0);
    match (policy, objective) {
        (Policy::Fair, _) => fair(queries, cores, horizon),
        (Policy::Videostorm, Objective::MaxSum) => max_sum(queries, cores, horizon),
        (Policy::Videostorm, Objective::MaxMin) => max_min(queries, cores, horizon),
    }
}

/// Divides the cores equally, up to what each query can use; the surplus is divided again.
fn fair(queries: &[Demand<'_>], cores: f64, horizon: Horizon) -> Vec<Share> {
    let caps: Vec<f64> = queries.iter().map(|q| q.useful(q.points.len().saturating_sub(1), horizon)).collect();
    let amounts = water(&caps, cores);
    let choose = |(q, amount): (&Demand<'_>, f64)| {
        let fits = (0..q.points.len()).rev().find(|p| q.need(*p) <= amount + 1e-9);
        Share { point: fits.unwrap_or(0), cores: amount }
    };
    queries.iter().zip(amounts).map(choose).collect()
}

/// Fills all caps up to a common level (water filling). Returns the amounts.
fn water(caps: &[f64], total: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..caps.len()).collect();
    order.sort_by(|a, b| caps[*a].total_cmp(&caps[*b]));
    let mut amounts = vec![0.0; caps.len()];
    let mut left = total;
    for (done, index) in order.iter().enumerate() {
        let level = left / (caps.len() - done) as f64;
        amounts[*index] = caps[*index].min(level);
        left -= amounts[*index];
    }
    amounts
}

/// A step from one corner of a query's hull to the next.
struct Step {
    slope: f64,
    query: usize,
    to: Share,
    cores: f64,
}

/// Shares after steps along the hulls.
struct Climb {
    shares: Vec<Share>,
    left: f64,
    /// Steps that did not fit, with the cores that were left for them and the utility of all steps before.
    blocked: Vec<(usize, f64, f64)>,
}

/// Takes the steps that fit, the steepest first.
fn climb(mut shares: Vec<Share>, steps: &[Step], cores: f64) -> Climb {
    // The first corner of a hull may hold cores already.
    let mut left = cores - shares.iter().map(|s| s.cores).sum::<f64>();
    let (mut gained, mut blocked) = (0.0, Vec::new());
    for (index, step) in steps.iter().enumerate() {
        // A step that did not fit blocks those after it on the same hull.
        if shares[step.query].cores + step.cores < step.to.cores - 1e-9 {
            continue;
        }
        if step.cores <= left {
            shares[step.query] = step.to;
            left -= step.cores;
            gained += step.slope * step.cores;
        } else {
            blocked.push((index, left, gained));
        }
    }
    Climb { shares, left, blocked }
}

/// Takes steps along the hulls, the steepest first. For a step that does not fit, its query gets the remaining cores,
/// or flatter steps do.
fn max_sum(queries: &[Demand<'_>], cores: f64, horizon: Horizon) -> Vec<Share> {
    let mut steps = Vec::new();
    let mut first = Vec::with_capacity(queries.len());
    for (query, demand) in queries.iter().enumerate() {
        let corners = demand.corners(horizon);
        first.push(corners.first().map_or(Share { point: 0, cores: 0.0 }, |c| c.0));
        for pair in corners.windows(2) {
            let wide = pair[1].0.cores - pair[0].0.cores;
            steps.push(Step { slope: (pair[1].1 - pair[0].1) / wide, query, to: pair[1].0, cores: wide });
        }
    }
    // Slopes fall along a hull, so the sort keeps the order of a query's steps.
    steps.sort_by(|a, b| b.slope.total_cmp(&a.slope).then(a.query.cmp(&b.query)));
    let all = climb(first.clone(), &steps, cores);
    let part = |(index, left, gained): &(usize, f64, f64)| {
        let (query, to) = (steps[*index].query, steps[*index].to);
        // The steps before this one on the same hull were taken.
        let now = all.shares[query];
        let share = queries[query].best_for(now.cores + left, horizon);
        debug_assert!(share.cores <= to.cores + 1e-9, "a step that does not fit is wider than what is left");
        let gain = queries[query].utility(share, horizon) - queries[query].utility(now, horizon);
        (*index, share, gained + gain)
    };
    let best_part = all.blocked.iter().map(part).max_by(|a, b| a.2.total_cmp(&b.2));
    let flatter = finish(queries, (all.shares, all.left), horizon);
    let Some((index, share, _)) = best_part else { return flatter };
    let mut before = climb(first, &steps[..index], cores);
    before.left -= share.cores - before.shares[steps[index].query].cores;
    before.shares[steps[index].query] = share;
    let in_part = finish(queries, (before.shares, before.left), horizon);
    let worth =
        |shares: &[Share]| queries.iter().zip(shares).map(|(query, share)| query.utility(*share, horizon)).sum::<f64>();
    if worth(&in_part) > worth(&flatter) { in_part } else { flatter }
}

/// Distributes the cores that the steps along the hulls left.
fn finish(queries: &[Demand<'_>], (mut shares, mut left): (Vec<Share>, f64), horizon: Horizon) -> Vec<Share> {
    for _ in 0..LAST_STEPS {
        let Some((query, share)) = best_step_within(queries, &shares, left, horizon) else { break };
        left -= share.cores - shares[query].cores;
        shares[query] = share;
    }
    spread(queries, &mut shares, left.max(0.0), horizon);
    shares
}

/// Returns the step of one query that gains most with at most `left` more cores; it need not end on a hull.
fn best_step_within(queries: &[Demand<'_>], shares: &[Share], left: f64, horizon: Horizon) -> Option<(usize, Share)> {
    if left <= 1e-12 {
        return None;
    }
    let mut best: Option<(usize, Share, f64)> = None;
    for (query, (demand, now)) in queries.iter().zip(shares).enumerate() {
        let worth = demand.utility(*now, horizon);
        for point in 0..demand.points.len() {
            let share = Share { point, cores: demand.to_goal(point, horizon).clamp(now.cores, now.cores + left) };
            let gain = demand.utility(share, horizon) - worth;
            if gain > best.map_or(1e-9, |(_, _, most)| most) {
                best = Some((query, share, gain));
            }
        }
    }
    best.map(|(query, share, _)| (query, share))
}

/// Finds by bisection the highest level of utility that all queries can reach; a query that cannot reach it gets its
/// best.
fn max_min(queries: &[Demand<'_>], cores: f64, horizon: Horizon) -> Vec<Share> {
    let best = |q: &Demand<'_>| q.points.iter().map(|p| q.goals.of_quality(p.quality)).fold(f64::MIN, f64::max);
    let bests: Vec<f64> = queries.iter().map(best).collect();
    let at = |level: f64| -> Vec<Share> {
        let each = queries.iter().zip(&bests).map(|(q, best)| q.cores_for(level.min(*best), horizon));
        each.map(|share| share.unwrap_or(Share { point: 0, cores: 0.0 })).collect()
    };
    let total = |shares: &[Share]| shares.iter().map(|s| s.cores).sum::<f64>();
    let worst = queries.iter().map(|q| q.best_for(0.0, horizon)).zip(queries).map(|(s, q)| q.utility(s, horizon));
    let (mut low, mut high) = (worst.fold(0.0, f64::min) - 1.0, bests.iter().copied().fold(0.0, f64::max));
    if total(&at(high)) <= cores {
        low = high;
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if total(&at(middle)) <= cores { low = middle } else { high = middle }
    }
    let mut shares = at(low);
    let left = (cores - total(&shares)).max(0.0);
    spread(queries, &mut shares, left, horizon);
    shares
}

/// Gives the remaining cores to queries that lag or would begin to, each up to what it can use. It costs nothing now,
/// and saves cores later.
fn spread(queries: &[Demand<'_>], shares: &mut [Share], left: f64, horizon: Horizon) {
    if left <= 1e-12 {
        return;
    }
    let room: Vec<f64> =
        queries.iter().zip(shares.iter()).map(|(q, s)| (q.useful(s.point, horizon) - s.cores).max(0.0)).collect();
    for (share, more) in shares.iter_mut().zip(water(&room, left)) {
        share.cores += more;
    }
}
