//! Sums over the moments of a window.

use resources::{Name, Quantities};

use super::fairness::{Sums, Unfairness};

/// Sums over the moments of a window.
#[derive(Clone, Debug)]
pub struct WindowSums {
    /// By framework, over contended moments.
    contended_sums: Vec<Sums>,
    /// By framework, over all moments: share and target.
    all: Vec<(f64, f64)>,
    /// By resource, of what is used, in units.
    used: Vec<(Name, f64)>,
    offered: f64,
    contended: usize,
    moments: usize,
}

impl WindowSums {
    /// No moments yet, for so many frameworks.
    pub fn new(frameworks: usize) -> WindowSums {
        WindowSums {
            contended_sums: vec![Sums::default(); frameworks],
            all: vec![(0.0, 0.0); frameworks],
            used: Vec::new(),
            offered: 0.0,
            contended: 0,
            moments: 0,
        }
    }

    /// A moment: shares and targets by framework, whether it matters who gets what, what is used, and the part of the
    /// cluster in offers.
    pub fn add(&mut self, shares: &[f64], targets: &[f64], contended: bool, used: &Quantities, offered: f64) {
        self.moments += 1;
        self.offered += offered;
        for (name, amount) in used.iter() {
            match self.used.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += amount.to_f64(),
                None => self.used.push((name, amount.to_f64())),
            }
        }
        for (at, (share, target)) in shares.iter().zip(targets).enumerate() {
            self.all[at].0 += share;
            self.all[at].1 += target;
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

    /// The part of a resource in use, in the mean.
    pub fn utilisation(&self, name: &Name, total: &Quantities) -> f64 {
        let sum = self.used.iter().find(|(known, _)| known == name).map_or(0.0, |(_, sum)| *sum);
        self.mean(sum) / total.get(name).to_f64().max(f64::MIN_POSITIVE)
    }

    /// The part of the cluster in offers, in the mean.
    pub fn offered(&self) -> f64 {
        self.mean(self.offered)
    }

    /// By framework, the mean share.
    pub fn shares(&self) -> Vec<f64> {
        self.all.iter().map(|(share, _)| self.mean(*share)).collect()
    }

    /// By framework, the mean fair share.
    pub fn targets(&self) -> Vec<f64> {
        self.all.iter().map(|(_, target)| self.mean(*target)).collect()
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.moments.max(1) as f64
    }
}
