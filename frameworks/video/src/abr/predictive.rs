//! Model-predictive control: chooses the sequence of rungs for the next chunks with the highest score, under the
//! assumption that bandwidth stays as it was, lowered by the largest error of the last predictions.

use super::Observation;

/// Chooses the first rung of the best sequence; the lowest before the first measurement.
pub(super) fn robust(view: &Observation<'_>) -> usize {
    let Some(bandwidth) = view.measured.robust_mean() else { return 0 };
    let mut best = (f64::NEG_INFINITY, 0);
    for rung in 0..view.ladder.len() {
        let worth = way(view, bandwidth, 0, rung, (view.buffer, view.last_rung));
        if worth > best.0 {
            best = (worth, rung);
        }
    }
    best.1
}

/// Returns the score of the best sequence that uses `rung` for the chunk at `place`.
fn way(view: &Observation<'_>, bandwidth: f64, place: usize, rung: usize, (buffer, last): (f64, usize)) -> f64 {
    let Some(bytes) = view.sizes.get(place).and_then(|sizes| sizes.get(rung)) else { return 0.0 };
    let download = bytes * 8e-6 / bandwidth.max(1e-6);
    let rebuffer = (download - buffer).max(0.0);
    let after = ((buffer - download).max(0.0) + view.chunk_seconds).min(view.buffer_limit);
    let change = (view.ladder[rung] - view.ladder[last.min(view.ladder.len() - 1)]).abs();
    let worth = view.ladder[rung] - view.quality.rebuffer * rebuffer - view.quality.change * change;
    if place + 1 >= view.sizes.len() {
        return worth;
    }
    let next = (0..view.ladder.len()).map(|next| way(view, bandwidth, place + 1, next, (after, rung)));
    worth + next.fold(f64::NEG_INFINITY, f64::max)
}
