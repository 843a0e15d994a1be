//! Chance with a seed: the same numbers on every machine, for scenes and for training.
//!
//! Not for secrets.

/// A SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// A generator whose numbers follow from the seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        base::split_mix(&mut self.0)
    }

    /// A number from 0 up to and without `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias is `end` in 2^64, which no picture shows.
        if end == 0 { 0 } else { self.bits() % end }
    }

    /// A number from 0 up to and without 1.
    pub fn unit(&mut self) -> f64 {
        base::fraction(self.bits())
    }

    /// A number from `from` up to and without `to`.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + self.unit() * (to - from)
    }

    /// A waiting time with this mean (exponential).
    pub fn wait(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }

    /// About normal with mean 0 and deviation 1: the sum of four uniform numbers.
    pub fn normal(&mut self) -> f64 {
        let sum: f64 = (0..4).map(|_| self.unit()).sum();
        (sum - 2.0) * 1.732_050_8
    }
}
