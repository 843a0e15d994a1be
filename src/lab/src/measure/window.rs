//! Sums over a window of a run: shares, use and offers as exact integrals, fair shares as means over samples.

use super::area::Areas;
use super::fairness::{Sums, Unfairness};

/// The sums over a window of a run.
#[derive(Clone, Debug)]
pub struct WindowSums {
    /// Sums over contended samples, by framework.
    contended_sums: Vec<Sums>,
    /// Sums of fair shares over all samples, by framework.
    targets: Vec<f64>,
    contended: usize,
    moments: usize,
    /// Integrals at the beginning of the window; `None` before.
    begin: Option<Areas>,
    /// Integrals at the end of the window; `None` before.
    end: Option<Areas>,
}

impl WindowSums {
    /// Creates empty sums for this many frameworks.
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

    /// Begins the window.
    pub fn begins(&mut self, areas: Areas) {
        self.begin = Some(areas);
    }

    /// Ends the window, unless it has ended.
    pub fn ends(&mut self, areas: Areas) {
        self.end.get_or_insert(areas);
    }

    /// Adds a sample: shares and fair shares by framework, and whether there is contention.
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

    /// Returns the unfairness of the window.
    pub fn unfairness(&self) -> Unfairness {
        Unfairness::of(&self.contended_sums, self.contended, self.moments)
    }

    /// Returns the mean amount in use of each resource, in units and in the order of the cluster's resources.
    pub fn used(&self) -> Vec<f64> {
        self.means(|areas| &areas.used)
    }

    /// Returns the mean part of the cluster in offers.
    pub fn offered(&self) -> f64 {
        self.means(|areas| std::slice::from_ref(&areas.offered)).first().copied().unwrap_or_default()
    }

    /// Returns the mean share of each framework.
    pub fn shares(&self) -> Vec<f64> {
        self.means(|areas| &areas.shares)
    }

    /// Returns the mean fair share of each framework.
    pub fn targets(&self) -> Vec<f64> {
        self.targets.iter().map(|sum| sum / self.moments.max(1) as f64).collect()
    }

    /// Returns means over the window's time; zeros if the run did not reach it.
    fn means(&self, of: impl Fn(&Areas) -> &[f64]) -> Vec<f64> {
        let Some(end) = &self.end else { return Vec::new() };
        let Some(begin) = &self.begin else { return vec![0.0; of(end).len()] };
        let seconds = (end.at - begin.at).max(f64::MIN_POSITIVE);
        of(begin).iter().zip(of(end)).map(|(before, after)| (after - before) / seconds).collect()
    }
}
