//! Seeded random numbers with a stream for each name. One more draw in one place does not change another stream.

use rand_distr::{Distribution, Exp1, StandardNormal, StandardUniform};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// Creates the stream of this name for this seed.
    pub fn new(seed: u64, name: &str) -> Random {
        // FNV-1a, which never changes.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Random(Pcg64Mcg::seed_from_u64(base::scramble(base::scramble(seed) ^ hash)))
    }

    /// Draws a number uniformly from 0 to 1, without 1.
    pub fn part(&mut self) -> f64 {
        StandardUniform.sample(&mut self.0)
    }

    /// Draws an integer uniformly below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.part() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// Draws from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        let one: f64 = Exp1.sample(&mut self.0);
        one * mean
    }

    /// Draws from the normal distribution with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }

    /// Draws from the log-normal distribution with this mean, and this deviation of the logarithm.
    pub fn lognormal(&mut self, mean: f64, sigma: f64) -> f64 {
        mean * (sigma * self.normal() - sigma * sigma / 2.0).exp()
    }
}
