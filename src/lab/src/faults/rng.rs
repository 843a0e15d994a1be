//! Random draws for plans and for the decisions of workers.

use std::time::Duration;

use rand_pcg::rand_core::Rng as _;

use crate::seeds::{Rng, Seed};

/// A generator with the questions that plans ask.
#[derive(Clone, Debug)]
pub(crate) struct FaultRng(Rng);

impl FaultRng {
    pub fn new(seed: Seed) -> FaultRng {
        FaultRng(seed.rng())
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// A number from `least` to `most`.
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True in `percent` of a hundred draws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A time up to `most`; short ones as likely as long ones in the sense of orders of magnitude, from a millisecond
    /// on.
    pub fn span(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
        let bits = u64::from(64 - most.leading_zeros());
        let end = (1 << self.within(1, bits)).min(most);
        Duration::from_millis(self.within(end / 2, end))
    }
}
