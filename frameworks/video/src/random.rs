//! A seeded random number generator: the same numbers on every machine, for scenes and for training.
//!
//! It must not be used for secrets.

/// A SplitMix64 random number generator.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator whose numbers follow from the seed.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        base::split_mix(&mut self.0)
    }

    /// Returns a number in `0..end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias is `end` in 2^64, which is not visible in a picture.
        if end == 0 { 0 } else { self.bits() % end }
    }

    /// Returns a number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        base::fraction(self.bits())
    }

    /// Returns a number in `from..to`.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + self.unit() * (to - from)
    }

    /// Returns an exponentially distributed time with this mean.
    pub fn wait(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }

    /// Returns an approximately normal number with mean 0 and deviation 1: the sum of four uniform numbers.
    pub fn normal(&mut self) -> f64 {
        let sum: f64 = (0..4).map(|_| self.unit()).sum();
        (sum - 2.0) * 1.732_050_8
    }
}
