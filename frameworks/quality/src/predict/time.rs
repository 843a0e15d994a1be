//! Duration of an iteration on a number of cores: the work is shared, the overhead is not.

use serde::{Deserialize, Serialize};

/// How much a new measurement counts.
const NEW: f64 = 0.3;

/// t(a) = work / a + overhead, learnt from past iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeModel {
    /// Seconds that one core would compute.
    pub work: f64,
    /// Seconds that do not become fewer with more cores: sending, waiting for the slowest, merging.
    pub overhead: f64,
    /// The share of the work that iterations skip in the mean.
    pub skipped: f64,
    measured: bool,
}

impl TimeModel {
    /// Of an iteration of so much work and overhead, in seconds.
    pub fn known(work: f64, overhead: f64) -> TimeModel {
        TimeModel { work, overhead, skipped: 0.0, measured: true }
    }

    /// Takes an iteration in that took `seconds` on `cores` cores, which computed `busy` seconds in all.
    pub fn learn(&mut self, seconds: f64, cores: u32, busy: f64) {
        self.learn_part(seconds, cores, busy, 1.0, 1.0);
    }

    /// The same of an iteration that did the share `now` of a whole one's work, among iterations that do the share
    /// `mean` of it in the mean.
    pub fn learn_part(&mut self, seconds: f64, cores: u32, busy: f64, now: f64, mean: f64) {
        let ok = |x: f64| x.is_finite() && x >= 0.0;
        if !ok(seconds) || !ok(busy) || cores == 0 || !ok(mean) || !ok(now) || now == 0.0 {
            return;
        }
        self.skipped = 1.0 - mean;
        let overhead = (seconds - busy / f64::from(cores)).max(0.0);
        let new = if self.measured { NEW } else { 1.0 };
        self.work += new * (busy / now - self.work);
        self.overhead += new * (overhead - self.overhead);
        self.measured = true;
    }

    /// How long an iteration takes on this many cores; zero before one was measured, forever without a core.
    pub fn seconds(&self, cores: u32) -> f64 {
        self.seconds_of(1.0 - self.skipped, cores)
    }

    /// The same for an iteration that does this share of the work.
    pub fn seconds_of(&self, share: f64, cores: u32) -> f64 {
        if self.measured { share * self.work / f64::from(cores) + self.overhead } else { 0.0 }
    }

    /// Number of iterations that fit into this many seconds on this many cores.
    pub fn iterations(&self, seconds: f64, cores: u32) -> f64 {
        if cores == 0 || !self.measured {
            return 0.0;
        }
        // A millisecond at least: what takes no time would gain without end.
        seconds / self.seconds(cores).max(1e-3)
    }

    /// How many cores, at most `most`, this many iterations need to be done in this many seconds; none if `most` are
    /// too few.
    pub fn cores_for(&self, iterations: f64, seconds: f64, most: u32) -> Option<u32> {
        (1..=most).find(|cores| self.iterations(seconds, *cores) >= iterations)
    }

    /// Whether an iteration has been measured.
    pub fn is_known(&self) -> bool {
        self.measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_shared_and_overhead_is_not() {
        let mut model = TimeModel::default();
        assert_eq!(model.iterations(10.0, 4), 0.0);
        for cores in [1, 2, 4, 2, 1, 8, 4, 2] {
            model.learn(2.0 / f64::from(cores) + 0.25, cores, 2.0);
        }
        assert!((model.iterations(9.0, 1) - 4.0).abs() < 1e-9);
        assert!((model.iterations(3.0, 4) - 4.0).abs() < 1e-9);
        assert_eq!(model.cores_for(4.0, 3.0, 16), Some(4));
        assert_eq!(model.cores_for(1000.0, 3.0, 16), None);
        // Iterations of a fifth of the work, and one of all of it among them.
        for _ in 0..20 {
            model.learn_part(0.4 / 2.0 + 0.25, 2, 0.4, 0.2, 0.2);
        }
        model.learn_part(2.0 / 2.0 + 0.25, 2, 2.0, 1.0, 0.2);
        assert!((model.work - 2.0).abs() < 1e-9 && (model.seconds(2) - 0.45).abs() < 1e-9, "{model:?}");
        assert!((model.seconds_of(1.0, 2) - 1.25).abs() < 1e-9);
        model.learn(2.25, 1, 2.0);
        model.learn(f64::NAN, 1, 1.0);
        model.learn(1.0, 0, 1.0);
        assert!((model.iterations(9.0, 1) - 4.0).abs() < 1e-9);
    }
}
