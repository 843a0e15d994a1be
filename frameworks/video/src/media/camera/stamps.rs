//! Capture times of a live source's pictures, on this machine's clock. Performs no I/O.
//!
//! A source has its own clock, which starts at any value and may jump. The offset between both clocks is the least
//! observed difference between a picture's timestamp and its arrival: pictures that arrive later than that were delayed
//! on their way.

/// Difference in seconds between consecutive timestamps above which the offset is measured again.
const JUMP: f64 = 5.0;
/// Largest growth of the offset, in seconds a second: more than two clocks differ.
const DRIFT: f64 = 0.0005;
/// Least difference between two capture times, in seconds.
const STEP: f64 = 0.001;

/// Converts timestamps of a source to capture times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamps {
    /// Last timestamp and its arrival time.
    last: Option<(f64, f64)>,
    offset: f64,
    given: Option<f64>,
}

impl Stamps {
    /// Returns the capture time of a picture that arrives at `arrival`, in seconds of this machine's clock. `stamp` is
    /// the source's timestamp; `None` if its format has none. Times rise strictly and are not after the arrival, as far
    /// as both are possible.
    pub fn capture(&mut self, stamp: Option<f64>, arrival: f64) -> f64 {
        let time = match stamp.filter(|stamp| stamp.is_finite()) {
            None => arrival,
            Some(stamp) => {
                let now = arrival - stamp;
                self.offset = match self.last {
                    Some((before, at)) if (stamp - before).abs() <= JUMP => {
                        now.min(self.offset + DRIFT * (arrival - at).max(0.0))
                    }
                    _ => now,
                };
                self.last = Some((stamp, arrival));
                stamp + self.offset
            }
        };
        let time = self.given.map_or(time, |given| time.max(given + STEP));
        self.given = Some(time);
        time
    }

    /// Measures the offset again after a reconnection; times continue to rise.
    pub fn restart(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_picture_that_is_late_has_the_time_at_which_it_was_taken() {
        let mut stamps = Stamps::default();
        let times: Vec<f64> = [(1000.0, 50.0), (1000.1, 50.1), (1000.2, 53.0), (1000.3, 53.0), (1003.0, 53.0)]
            .into_iter()
            .map(|(stamp, arrival)| stamps.capture(Some(stamp), arrival))
            .collect();
        for (time, wanted) in times.iter().zip([50.0, 50.1, 50.2, 50.3, 53.0]) {
            assert!((time - wanted).abs() < 0.01, "{times:?}");
        }
    }

    #[test]
    fn a_clock_that_jumps_begins_a_new_count() {
        let mut stamps = Stamps::default();
        assert_eq!(stamps.capture(Some(0.0), 10.0), 10.0);
        assert_eq!(stamps.capture(Some(9000.0), 11.0), 11.0);
        assert_eq!(stamps.capture(Some(1.0), 12.0), 12.0);
        stamps.restart();
        assert_eq!(stamps.capture(Some(1.5), 40.0), 40.0);
        assert_eq!(stamps.capture(None, 41.0), 41.0);
    }

    proptest! {
        // For any timestamps: times are finite, rise, and never fall behind arrivals by more than timestamps say.
        #[test]
        fn times_grow(pictures in proptest::collection::vec((-1e6_f64..1e6, 0.0_f64..3.0), 1..60)) {
            let (mut stamps, mut arrival, mut before) = (Stamps::default(), 0.0, f64::NEG_INFINITY);
            for (stamp, pause) in pictures {
                arrival += pause;
                let time = stamps.capture(Some(stamp), arrival);
                prop_assert!(time.is_finite() && time > before);
                prop_assert!(time <= (arrival + STEP).max(before + 2.0 * STEP));
                before = time;
            }
        }
    }
}
