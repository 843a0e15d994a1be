//! Keeping to an allotment of cores: work is let through as processor time is earned.
//!
//! Beside the `cpus` of the task this is what holds a query to its share: shares change every second, tasks do not. The
//! measure is the thread's own processor time, so a machine that is shared with others does not distort it.

/// How much processor time can be saved up, in seconds of the allotment; and at least, in core-seconds. Frames cost
/// differently (one with many cars, one after many that are skipped): what a cheap one leaves is for the next dear one.
const SAVED: (f64, f64) = (2.0, 0.02);

/// Processor time earned and spent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    credit: f64,
    used: f64,
    at: Option<f64>,
}

impl Pace {
    /// For how many seconds to wait before the next piece of work: 0 if it may begin. `now` is a time in seconds,
    /// `used` the core-seconds used so far, `cores` the allotment; without one there is nothing to wait for but a
    /// change.
    pub fn wait(&mut self, now: f64, used: f64, cores: f64) -> f64 {
        let passed = self.at.map_or(0.0, |at| (now - at).max(0.0));
        self.at = Some(now);
        self.credit += passed * cores - (used - self.used);
        self.used = used;
        self.credit = self.credit.min((cores * SAVED.0).max(SAVED.1));
        if self.credit >= 0.0 && cores > 0.0 {
            0.0
        } else if cores > 1e-6 {
            (-self.credit / cores).clamp(0.001, 1.0)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works in pieces of this many core-seconds for so long; what it used.
    fn work(cores: f64, piece: f64, seconds: f64) -> f64 {
        let (mut pace, mut now, mut used) = (Pace::default(), 0.0, 0.0);
        while now < seconds {
            let wait = pace.wait(now, used, cores);
            if wait > 0.0 {
                now += wait;
            } else {
                now += piece;
                used += piece;
            }
        }
        used
    }

    #[test]
    fn the_allotment_is_kept_to() {
        for (cores, piece) in [(0.1, 0.004), (0.5, 0.03), (0.02, 0.002), (1.0, 0.01)] {
            let used = work(cores, piece, 100.0);
            assert!((used / 100.0 - cores).abs() < cores * 0.05 + 0.001, "{cores}: {used}");
        }
        assert_eq!(work(0.0, 0.01, 10.0), 0.0);
    }
}
