//! Seeded random numbers of environments, a stream for each name: those of the studies of `dag`.

pub(crate) use dag::study::random::Random;

/// Draws a size with a heavy tail (Pareto). One draw of the stream for each size.
pub(crate) fn pareto(scale: f64, shape: f64, random: &mut Random) -> f64 {
    scale / (1.0 - random.part()).powf(1.0 / shape)
}
