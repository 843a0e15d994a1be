//! Random draws for plans and for the decisions of workers.

use std::time::Duration;

use rand_pcg::rand_core::Rng as _;

use crate::seeds::{Rng, Seed};

/// A random generator with the kinds of draws that plans need.
#[derive(Clone, Debug)]
pub(crate) struct FaultRng(Rng);

impl FaultRng {
    pub fn new(seed: Seed) -> FaultRng {
        FaultRng(seed.rng())
    }

    /// Draws a number less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// Draws a number from `least` to `most`, both included.
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Returns `true` with a probability of `percent` percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Draws one of the elements.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Draws a duration up to `most`. All orders of magnitude from a millisecond on are equally likely.
    pub fn span(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
        let bits = u64::from(64 - most.leading_zeros());
        let end = (1 << self.within(1, bits)).min(most);
        Duration::from_millis(self.within(end / 2, end))
    }
}
