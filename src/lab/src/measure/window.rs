//! Sums over a window: shares, use and offers exactly, and fair shares at the instants at which they are computed.

use super::area::Areas;
use super::fairness::{Sums, Unfairness};

/// What is summed up in a window.
#[derive(Clone, Debug)]
pub struct WindowSums {
    /// By framework, over contended moments.
    contended_sums: Vec<Sums>,
    /// By framework, over all moments, what would be fair.
    targets: Vec<f64>,
    contended: usize,
    moments: usize,
    /// The integrals at its beginning.
    begin: Option<Areas>,
    /// And at its end.
    end: Option<Areas>,
}

impl WindowSums {
    /// No moments yet, for this many frameworks.
    pub fn new(frameworks: usize) -> WindowSums {
        WindowSums {
            contended_sums: vec![Sums::default(); frameworks],
            targets: vec![0.0; frameworks],
            contended: 0,
            moments: 0,
            begin: None,
            end: None,
        }
    }

    /// It begins.
    pub fn begins(&mut self, areas: Areas) {
        self.begin = Some(areas);
    }

    /// It ends, unless it has.
    pub fn ends(&mut self, areas: Areas) {
        self.end.get_or_insert(areas);
    }

    /// Adds a sample: shares and targets by framework, and whether there is contention.
    pub fn add(&mut self, shares: &[f64], targets: &[f64], contended: bool) {
        self.moments += 1;
        for (at, (share, target)) in shares.iter().zip(targets).enumerate() {
            self.targets[at] += target;
            if contended {
                let sums = &mut self.contended_sums[at];
                sums.share += share;
                sums.target += target;
                sums.missing += (target - share).max(0.0);
            }
        }
        self.contended += usize::from(contended);
    }

    /// How unfair the window was.
    pub fn unfairness(&self) -> Unfairness {
        Unfairness::of(&self.contended_sums, self.contended, self.moments)
    }

    /// By resource, in the order of the cluster's, how much is used in the mean, in units.
    pub fn used(&self) -> Vec<f64> {
        self.means(|areas| &areas.used)
    }

    /// The part of the cluster in offers, in the mean.
    pub fn offered(&self) -> f64 {
        self.means(|areas| std::slice::from_ref(&areas.offered)).first().copied().unwrap_or_default()
    }

    /// By framework, the mean share.
    pub fn shares(&self) -> Vec<f64> {
        self.means(|areas| &areas.shares)
    }

    /// By framework, the mean fair share.
    pub fn targets(&self) -> Vec<f64> {
        self.targets.iter().map(|sum| sum / self.moments.max(1) as f64).collect()
    }

    /// Means over the window's time; zeros if the run did not reach it.
    fn means(&self, of: impl Fn(&Areas) -> &[f64]) -> Vec<f64> {
        let Some(end) = &self.end else { return Vec::new() };
        let Some(begin) = &self.begin else { return vec![0.0; of(end).len()] };
        let seconds = (end.at - begin.at).max(f64::MIN_POSITIVE);
        of(begin).iter().zip(of(end)).map(|(before, after)| (after - before) / seconds).collect()
    }
}
