//! Simulated annealing over policies (Kirkpatrick and others, 1983). What is best is the caller's.

use super::{SprintPolicy, Stream};

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Range {
    /// A setting that is what it is.
    pub fn only(value: f64) -> Range {
        Range { least: value, most: value }
    }

    /// Evenly within it.
    fn draw(&self, stream: &mut Stream) -> f64 {
        self.least + (self.most - self.least) * stream.part()
    }

    /// A step of at most this part of the range, within it.
    fn step(&self, value: f64, part: f64, stream: &mut Stream) -> f64 {
        let step = (self.most - self.least) * part * (2.0 * stream.part() - 1.0);
        (value + step).clamp(self.least, self.most)
    }
}

/// The policies among which one is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// Of timeouts.
    pub timeout: Range,
    /// Of budgets.
    pub budget: Range,
    /// Of what comes back.
    pub refill: Range,
    /// Of sprint rates.
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

    /// A policy of these ranges; a seed gives always the same.
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

/// The policy of the least cost that this many steps find, with its cost. Costs are relative: a step to one that is
/// worse by a part of the present cost is taken with a probability that falls with the part, and with time.
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
