//! How good findings are against better ones: the F1 score, the harmonic mean of precision and recall.

use serde::{Deserialize, Serialize};

use super::events::Finding;
use super::query::QueryKind;

/// Findings this far apart in time can be the same, in seconds.
const APART_SECONDS: f64 = 1.0;
/// And this far apart from the left, as a fraction of the width.
const APART_X: f32 = 0.06;
/// Boxes that overlap at least so much are the same.
const OVERLAP: f32 = 0.3;

/// Counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// Found, and right.
    pub right: u64,
    /// Found, and wrong.
    pub wrong: u64,
    /// There, and not found.
    pub missed: u64,
}

impl Score {
    /// The F1 score, 0 to 1; 1 if there was nothing and nothing was found.
    pub fn f1(&self) -> f64 {
        let both = 2 * self.right + self.wrong + self.missed;
        if both == 0 { 1.0 } else { 2.0 * self.right as f64 / both as f64 }
    }
}

/// Compares what was found with what should have been. Each can be matched once, nearest times first come first.
pub fn score(kind: QueryKind, found: &[Finding], wanted: &[Finding]) -> Score {
    let mut free: Vec<&Finding> = wanted.iter().collect();
    free.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut taken = vec![false; free.len()];
    let mut right = 0;
    for finding in found {
        let from = free.partition_point(|w| w.at < finding.at - APART_SECONDS);
        let near = (from..free.len()).take_while(|i| free[*i].at <= finding.at + APART_SECONDS);
        let fits = near.filter(|i| !taken[*i] && same(kind, finding, free[*i]));
        let best = fits.min_by(|a, b| {
            let off = |i: usize| (free[i].at - finding.at).abs() - f64::from(free[i].place.iou(&finding.place));
            off(*a).total_cmp(&off(*b))
        });
        if let Some(best) = best {
            taken[best] = true;
            right += 1;
        }
    }
    Score { right, wrong: found.len() as u64 - right, missed: wanted.len() as u64 - right }
}

fn same(kind: QueryKind, a: &Finding, b: &Finding) -> bool {
    match kind {
        QueryKind::Tracks => (a.at - b.at).abs() < 1e-3 && a.label == b.label && a.place.iou(&b.place) >= OVERLAP,
        QueryKind::Plates => a.label == b.label,
        _ => a.label == b.label && a.line == b.line && (a.place.centre().0 - b.place.centre().0).abs() <= APART_X,
    }
}
