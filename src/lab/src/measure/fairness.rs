//! Fairness of a window of a run: the three measures of unfairness of docs/papers/saha.md, and Jain's index.
//!
//! S is a framework's mean dominant share in use, F its mean fair share: what water-filling over the current demand
//! would give it. Only contended instants count: those at which at least two frameworks want more than is available.

use serde::{Deserialize, Serialize};

/// The measures of unfairness over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unfairness {
    /// 1 - min S / max S: the relative gap between shares, whatever each should be.
    pub gap: f64,
    /// The largest |S - F| / F of any framework.
    pub deviation: f64,
    /// Share-seconds that were missing, as a part of those that were due, for the framework treated worst.
    pub lost: f64,
    /// Jain's index of S / F over all frameworks.
    pub jain: f64,
    /// Contended instants, as a part of the window.
    pub contended: f64,
}

/// Sums over contended instants for one framework.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub share: f64,
    pub target: f64,
    pub missing: f64,
}

impl Unfairness {
    /// Returns the measures at one instant, from the shares and the fair shares of all frameworks.
    pub fn at(shares: &[f64], targets: &[f64]) -> Unfairness {
        let sums =
            |(share, target): (&f64, &f64)| Sums { share: *share, target: *target, missing: (target - share).max(0.0) };
        Unfairness::of(&shares.iter().zip(targets).map(sums).collect::<Vec<_>>(), 1, 1)
    }

    /// Returns the measures from the sums of each framework, over `contended` of `moments`.
    pub(super) fn of(sums: &[Sums], contended: usize, moments: usize) -> Unfairness {
        let competing: Vec<Sums> = sums.iter().copied().filter(|sums| sums.target > 0.0).collect();
        let mut result = Unfairness { jain: 1.0, ..Unfairness::default() };
        if moments > 0 {
            result.contended = contended as f64 / moments as f64;
        }
        if competing.len() < 2 {
            return result;
        }
        let (mut least, mut most, mut sum, mut squares) = (f64::INFINITY, 0.0_f64, 0.0, 0.0);
        for one in &competing {
            let part = one.share / one.target;
            (least, most) = (least.min(one.share), most.max(one.share));
            (sum, squares) = (sum + part, squares + part * part);
            result.deviation = result.deviation.max((part - 1.0).abs());
            result.lost = result.lost.max(one.missing / one.target);
        }
        if most > 0.0 {
            result.gap = 1.0 - least / most;
            result.jain = sum * sum / (competing.len() as f64 * squares);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions() {
        let one = |share: f64, target: f64| Sums { share, target, missing: (target - share).max(0.0) };
        let even = Unfairness::of(&[one(5.0, 5.0), one(5.0, 5.0)], 10, 10);
        assert_eq!((even.gap, even.deviation, even.lost, even.jain), (0.0, 0.0, 0.0, 1.0));
        let uneven = Unfairness::of(&[one(8.0, 5.0), one(2.0, 5.0)], 5, 10);
        assert!((uneven.gap - 0.75).abs() < 1e-9 && (uneven.deviation - 0.6).abs() < 1e-9);
        assert!((uneven.lost - 0.6).abs() < 1e-9 && (uneven.contended - 0.5).abs() < 1e-9);
        assert!((uneven.jain - 4.0 / (2.0 * 2.72)).abs() < 1e-9);
        assert_eq!(Unfairness::of(&[one(1.0, 1.0)], 1, 1).gap, 0.0);
    }
}
