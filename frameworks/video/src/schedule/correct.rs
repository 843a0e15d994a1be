//! Correction of a profile: the ratio of a query's measured demand to that of its profile.
//!
//! VideoStorm (NSDI 2017), section 5: wrongly estimated demands are corrected by a running ratio. Its weights are
//! tepui's choice.

use crate::profile::Point;

/// Least weight of a new measurement; the first ones weigh more.
const LEARN: f64 = 0.3;
/// Length of a measurement, in seconds of the stream.
const SECONDS: f64 = 1.0;
/// Range of the ratio.
const RANGE: (f64, f64) = (0.2, 5.0);

/// A running ratio of the cores used to those of the profile, over all configurations of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    factor: f64,
    measurements: u32,
    /// Position in the stream and core-seconds at the last report.
    last: Option<(f64, f64)>,
    seconds: f64,
    used: f64,
    profiled: f64,
}

impl Correction {
    /// Creates a correction that starts with a former ratio, or with 1.
    pub fn new(factor: f64) -> Correction {
        let factor = if factor.is_finite() { factor.clamp(RANGE.0, RANGE.1) } else { 1.0 };
        Correction { factor, measurements: 0, last: None, seconds: 0.0, used: 0.0, profiled: 0.0 }
    }

    /// Returns the measured demand divided by that of the profile.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// Records the progress of a query in this configuration, and its core-seconds. Both only increase.
    pub fn record(&mut self, point: &Point, position: f64, core_seconds: f64) {
        let (before, used) = self.last.replace((position, core_seconds)).unwrap_or((position, core_seconds));
        let moved = (position - before).max(0.0);
        self.seconds += moved;
        self.used += (core_seconds - used).max(0.0);
        self.profiled += moved * point.cores;
        if self.seconds < SECONDS || self.profiled <= 0.0 {
            return;
        }
        // The first measurements count more than the initial guess.
        self.measurements += 1;
        let weight = LEARN.max(1.0 / f64::from(self.measurements + 1));
        let next = self.factor * (1.0 - weight) + self.used / self.profiled * weight;
        self.factor = next.clamp(RANGE.0, RANGE.1);
        (self.seconds, self.used, self.profiled) = (0.0, 0.0, 0.0);
    }

    /// Records that another worker has started, whose counters start from zero.
    pub fn restart(&mut self) {
        self.last = None;
        (self.seconds, self.used, self.profiled) = (0.0, 0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Config;

    fn point(cores: f64) -> Point {
        Point { config: Config::GOLDEN, quality: 1.0, cores }
    }

    #[test]
    fn a_profile_that_is_off_is_corrected_while_configurations_change() {
        let mut correction = Correction::new(1.0);
        let (mut position, mut used) = (0.0, 0.0);
        for step in 0..40 {
            let point = point(if step % 2 == 0 { 0.1 } else { 0.02 });
            position += 0.4;
            used += 0.4 * point.cores * 1.7;
            correction.record(&point, position, used);
        }
        assert!((correction.factor() - 1.7).abs() < 0.05, "{correction:?}");
        correction.restart();
        correction.record(&point(0.1), 50.0, 0.0);
        assert!((correction.factor() - 1.7).abs() < 0.05, "counters that start anew are no news: {correction:?}");
    }

    #[test]
    fn no_measurement_takes_it_out_of_its_range() {
        let mut correction = Correction::new(f64::NAN);
        assert_eq!(correction.factor(), 1.0);
        correction.record(&point(0.001), 0.0, 0.0);
        for second in 1..20 {
            correction.record(&point(0.001), f64::from(second), f64::from(second) * 10.0);
        }
        assert_eq!(correction.factor(), 5.0);
    }
}
