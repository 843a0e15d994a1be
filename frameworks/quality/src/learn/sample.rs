//! Pseudorandom numbers, which are the same for the same seed on every machine.

use rand_distr::{Distribution, Gamma, StandardNormal, StandardUniform};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

/// Returns a generator that is different for each pair of seed and stream.
pub(crate) fn generator(seed: u64, stream: u64) -> Pcg64 {
    // The multiplication keeps neighbouring streams apart.
    Pcg64::seed_from_u64(seed ^ stream.wrapping_add(1).wrapping_mul(base::GAMMA))
}

/// Draws a number in [0, 1).
pub(crate) fn uniform(generator: &mut Pcg64) -> f64 {
    StandardUniform.sample(generator)
}

/// Draws from the normal distribution with mean 0 and deviation 1.
pub(crate) fn normal(generator: &mut Pcg64) -> f64 {
    StandardNormal.sample(generator)
}

/// Draws from the gamma distribution with this shape and scale 1; 1 for an invalid shape.
pub(crate) fn gamma(generator: &mut Pcg64, shape: f64) -> f64 {
    Gamma::new(shape, 1.0).map_or(1.0, |g| g.sample(generator))
}

/// Draws an index below `count`.
pub(crate) fn index(generator: &mut Pcg64, count: usize) -> usize {
    ((uniform(generator) * count as f64) as usize).min(count.saturating_sub(1))
}

/// Returns the index of the interval that contains `at`, for consecutive intervals of these widths.
pub(crate) fn place(widths: impl IntoIterator<Item = f64>, at: f64) -> usize {
    let mut passed = 0.0;
    let mut last = 0;
    for (place, width) in widths.into_iter().enumerate() {
        passed += width;
        last = place;
        if at < passed {
            return place;
        }
    }
    last
}
