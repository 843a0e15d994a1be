//! Limits a worker to its share of cores: work may begin when enough processor time is earned.
//!
//! Shares change every second and the `cpus` of a task do not, so this holds a query to its share. It measures the
//! processor time of the thread, so other load on the machine does not distort it.

/// Largest credit of processor time in seconds of the share, and its lower bound in core-seconds. Frames differ in cost
/// (one with many cars, one after many that are skipped): what a cheap one leaves is for the next expensive one.
const SAVED: (f64, f64) = (2.0, 0.02);

/// Credit of processor time of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    credit: f64,
    used: f64,
    at: Option<f64>,
}

impl Pace {
    /// Returns the seconds to wait before the next piece of work; 0 if it may begin. `now` is a time in seconds, `used`
    /// the core-seconds used so far, `cores` the share. Without a share it returns 1, after which the caller asks
    /// again.
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

    /// Simulates work in pieces of this many core-seconds for a time. Returns the core-seconds that it used.
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
