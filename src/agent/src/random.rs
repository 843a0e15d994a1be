//! Pseudo-random generator of the core, its only source of randomness (SplitMix64).
//!
//! It is good enough for jitter and for ids that must differ, but not for secrets.

use std::time::Duration;

/// A pseudo-random generator with a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        base::split_mix(&mut self.0)
    }

    /// Returns a duration between zero and `max`.
    pub(crate) fn up_to(&mut self, max: Duration) -> Duration {
        max.mul_f64(base::fraction(self.next()))
    }

    /// Returns the 16 bytes of a new UUID.
    pub(crate) fn uuid(&mut self) -> [u8; 16] {
        base::uuid(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_below_its_limit() {
        let mut random = Random::new(7);
        let max = Duration::from_secs(2);
        assert!((0..1000).all(|_| random.up_to(max) <= max));
    }
}
