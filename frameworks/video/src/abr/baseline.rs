//! Policies by the buffer alone, and by the bandwidth alone.

use super::View;

/// The part of the buffer below which the lowest bitrate is taken, and that above which the highest is. Those of
/// Pensieve's comparison, 5 s and 15 s of 60 s, as long as they are a chunk and more.
const RESERVOIR: f64 = 5.0 / 60.0;
const FULL: f64 = 15.0 / 60.0;

/// Where the buffer is between reservoir and full, 0 to 1.
fn filled(view: &View<'_>) -> f64 {
    let reservoir = (RESERVOIR * view.buffer_limit).max(view.chunk_seconds);
    let full = (FULL * view.buffer_limit).max(reservoir + view.chunk_seconds);
    ((view.buffer - reservoir) / (full - reservoir)).clamp(0.0, 1.0)
}

/// BBA-0: the highest rung whose bitrate is below the line from the lowest to the highest.
pub(super) fn buffer(view: &View<'_>) -> usize {
    let (Some(lowest), Some(highest)) = (view.ladder.first(), view.ladder.last()) else { return 0 };
    below(view.ladder, lowest + (highest - lowest) * filled(view))
}

/// BBA-1: the same with sizes of chunks: the line goes from a mean chunk of the lowest rung to one of the highest.
pub(super) fn buffer_sizes(view: &View<'_>) -> usize {
    let (Some(lowest), Some(highest)) = (view.ladder.first(), view.ladder.last()) else { return 0 };
    let bytes = (lowest + (highest - lowest) * filled(view)) * view.chunk_seconds * 125_000.0;
    view.sizes.first().map_or(0, |sizes| below(sizes, bytes))
}

/// The highest rung whose bitrate is below the harmonic mean of the last downloads.
pub(super) fn rate(view: &View<'_>) -> usize {
    below(view.ladder, view.measured.mean().unwrap_or(0.0))
}

/// The last that is not above a bound; the first if all are.
fn below(rising: &[f64], bound: f64) -> usize {
    rising.partition_point(|value| *value <= bound * (1.0 + 1e-9)).saturating_sub(1)
}
