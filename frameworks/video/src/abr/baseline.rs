//! Baseline policies that use the buffer alone or the bandwidth alone.

use super::Observation;

/// Part of the buffer below which the lowest bitrate is chosen; above `FULL` the highest is chosen. These are the
/// values of Pensieve's comparison, 5 s and 15 s of 60 s. A longer chunk raises both.
const RESERVOIR: f64 = 5.0 / 60.0;
const FULL: f64 = 15.0 / 60.0;

/// Returns how far the buffer is between the reservoir and full, from 0 to 1.
fn filled(view: &Observation<'_>) -> f64 {
    let reservoir = (RESERVOIR * view.buffer_limit).max(view.chunk_seconds);
    let full = (FULL * view.buffer_limit).max(reservoir + view.chunk_seconds);
    ((view.buffer - reservoir) / (full - reservoir)).clamp(0.0, 1.0)
}

/// Chooses by BBA-0: the highest rung whose bitrate is below the line from the lowest to the highest bitrate.
pub(super) fn buffer(view: &Observation<'_>) -> usize {
    let (Some(lowest), Some(highest)) = (view.ladder.first(), view.ladder.last()) else { return 0 };
    below(view.ladder, lowest + (highest - lowest) * filled(view))
}

/// Chooses by BBA-1: as BBA-0, but with sizes of chunks. The line goes from a mean chunk of the lowest rung to one of
/// the highest.
pub(super) fn buffer_sizes(view: &Observation<'_>) -> usize {
    let (Some(lowest), Some(highest)) = (view.ladder.first(), view.ladder.last()) else { return 0 };
    let bytes = (lowest + (highest - lowest) * filled(view)) * view.chunk_seconds * 125_000.0;
    view.sizes.first().map_or(0, |sizes| below(sizes, bytes))
}

/// Chooses the highest rung whose bitrate is below the harmonic mean of the last downloads.
pub(super) fn rate(view: &Observation<'_>) -> usize {
    below(view.ladder, view.measured.mean().unwrap_or(0.0))
}

/// Returns the index of the last value that is not above the bound, or 0 if all are above it.
fn below(rising: &[f64], bound: f64) -> usize {
    rising.partition_point(|value| *value <= bound * (1.0 + 1e-9)).saturating_sub(1)
}
