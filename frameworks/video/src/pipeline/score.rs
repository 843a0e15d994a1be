//! Scores findings against better ones with the F1 score, the harmonic mean of precision and recall.

use serde::{Deserialize, Serialize};

use super::events::Finding;
use super::query::QueryKind;

/// Largest difference in time between matching findings, in seconds.
const APART_SECONDS: f64 = 1.0;
/// Largest horizontal distance between matching crossings, as a fraction of the width.
const APART_X: f32 = 0.06;
/// Least overlap (intersection over union) of matching positions.
const OVERLAP: f32 = 0.3;

/// Counts of a comparison of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// Number of true positives.
    pub right: u64,
    /// Number of false positives.
    pub wrong: u64,
    /// Number of false negatives.
    pub missed: u64,
}

impl Score {
    /// Returns the F1 score, 0 to 1; 1 if nothing was found and nothing should have been.
    pub fn f1(&self) -> f64 {
        let both = 2 * self.right + self.wrong + self.missed;
        if both == 0 { 1.0 } else { 2.0 * self.right as f64 / both as f64 }
    }
}

/// Compares findings with the expected ones. Each expected finding is matched at most once, with the nearest in time
/// and place.
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
