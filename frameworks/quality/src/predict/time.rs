//! Predicts the duration of an iteration on a number of cores: the work is divided among them, the overhead is not.

use serde::{Deserialize, Serialize};

/// Weight of a new measurement.
const NEW: f64 = 0.3;

/// A model of an iteration's duration, t(a) = work / a + overhead on a cores, learnt from past iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeModel {
    /// Seconds that one core would compute in an iteration.
    pub work: f64,
    /// Seconds that more cores do not shorten: sending, waiting for the slowest, merging.
    pub overhead: f64,
    /// Share of the work that iterations skip on average.
    pub skipped: f64,
    measured: bool,
}

impl TimeModel {
    /// Creates a model with a known work and overhead, in seconds.
    pub fn known(work: f64, overhead: f64) -> TimeModel {
        TimeModel { work, overhead, skipped: 0.0, measured: true }
    }

    /// Records an iteration that took `seconds` on `cores` cores, which computed `busy` seconds in all.
    pub fn learn(&mut self, seconds: f64, cores: u32, busy: f64) {
        self.learn_part(seconds, cores, busy, 1.0, 1.0);
    }

    /// Records an iteration that did the share `now` of a whole one's work, among iterations that do the share `mean`
    /// of it on average.
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

    /// Returns the duration of an iteration on this many cores; zero before one was measured, infinite without a core.
    pub fn seconds(&self, cores: u32) -> f64 {
        self.seconds_of(1.0 - self.skipped, cores)
    }

    /// Returns the duration of an iteration that does this share of the work.
    pub fn seconds_of(&self, share: f64, cores: u32) -> f64 {
        if self.measured { share * self.work / f64::from(cores) + self.overhead } else { 0.0 }
    }

    /// Returns the number of iterations that fit into this many seconds on this many cores.
    pub fn iterations(&self, seconds: f64, cores: u32) -> f64 {
        if cores == 0 || !self.measured {
            return 0.0;
        }
        // An iteration counts as a millisecond at least; otherwise the gain of a very short one would be unlimited.
        seconds / self.seconds(cores).max(1e-3)
    }

    /// Returns the number of cores, at most `most`, that this many iterations need to be done in this many seconds;
    /// `None` if `most` are too few.
    pub fn cores_for(&self, iterations: f64, seconds: f64, most: u32) -> Option<u32> {
        (1..=most).find(|cores| self.iterations(seconds, *cores) >= iterations)
    }

    /// Returns whether an iteration has been measured.
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
        // Most iterations do a fifth of the work, and one does all of it.
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
