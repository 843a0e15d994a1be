//! Simulated annealing over policies (Kirkpatrick and others, 1983). The caller defines the cost.

use super::{SprintPolicy, Stream};

/// The range of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Least value of the setting.
    pub least: f64,
    /// Greatest value of the setting.
    pub most: f64,
}

impl Range {
    /// Creates the range of a fixed setting.
    pub fn only(value: f64) -> Range {
        Range { least: value, most: value }
    }

    /// Draws a value uniformly.
    fn draw(&self, stream: &mut Stream) -> f64 {
        self.least + (self.most - self.least) * stream.part()
    }

    /// Returns a value after a step of at most the fraction `part` of the range, clamped to it.
    fn step(&self, value: f64, part: f64, stream: &mut Stream) -> f64 {
        let step = (self.most - self.least) * part * (2.0 * stream.part() - 1.0);
        (value + step).clamp(self.least, self.most)
    }
}

/// The set of policies that a search considers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// Range of timeouts.
    pub timeout: Range,
    /// Range of budgets.
    pub budget: Range,
    /// Range of refills.
    pub refill: Range,
    /// Range of sprint rates.
    pub rate: Range,
}

impl Ranges {
    fn map(&self, mut of: impl FnMut(&Range) -> f64) -> SprintPolicy {
        SprintPolicy {
            timeout: of(&self.timeout),
            budget: of(&self.budget),
            refill: of(&self.refill),
            rate: of(&self.rate),
        }
    }

    /// Draws a policy of these ranges; the same seed gives the same policy.
    pub fn draw(&self, seed: u64) -> SprintPolicy {
        let mut stream = Stream::new(seed);
        self.map(|range| range.draw(&mut stream))
    }

    fn near(&self, policy: &SprintPolicy, part: f64, stream: &mut Stream) -> SprintPolicy {
        SprintPolicy {
            timeout: self.timeout.step(policy.timeout, part, stream),
            budget: self.budget.step(policy.budget, part, stream),
            refill: self.refill.step(policy.refill, part, stream),
            rate: self.rate.step(policy.rate, part, stream),
        }
    }
}

/// Returns the policy of least cost that is found in this many steps, with its cost.
///
/// Costs are relative: a step to a policy that is worse by a fraction of the present cost is accepted with a
/// probability that decreases with the fraction and with time.
pub fn anneal(
    ranges: &Ranges,
    steps: u32,
    seed: u64,
    mut cost: impl FnMut(&SprintPolicy) -> f64,
) -> (SprintPolicy, f64) {
    let mut stream = Stream::new(seed ^ 0x5a);
    let start = ranges.map(|range| (range.least + range.most) / 2.0);
    let mut at = (start, cost(&start));
    let mut best = at;
    for n in 0..steps {
        let left = 1.0 - f64::from(n) / f64::from(steps);
        let next = ranges.near(&at.0, 0.05 + 0.45 * left, &mut stream);
        let next = (next, cost(&next));
        let worse = (next.1 - at.1) / at.1.abs().max(1e-9);
        if worse <= 0.0 || stream.part() < (-worse / (0.2 * left + 1e-3)).exp() {
            at = next;
        }
        if at.1 < best.1 {
            best = at;
        }
    }
    best
}
