//! The clocks of a world's processes: they differ from each other, and none goes back.
//!
//! The machine's clock is not read.

use std::time::Duration;

use base::Time;

/// Denominator of drifts.
const MILLION: i128 = 1_000_000;

/// The clock of a process, as a function of the world's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// World time of the last change.
    since: Time,
    /// Time that the clock showed then.
    shown: Time,
    /// Drift in parts of a million: positive if the clock runs too fast. The absolute value is less than a million.
    drift: i32,
}

impl Clock {
    /// Returns a clock that equals the world's.
    pub fn exact() -> Clock {
        Clock { since: super::BEGIN, shown: super::BEGIN, drift: 0 }
    }

    /// Sets the clock ahead from the beginning on.
    pub fn ahead(&mut self, by: Duration) {
        self.shown = self.shown + by;
    }

    /// Makes the clock run too fast by `drift` parts of a million from `now` on, or too slow if it is negative.
    pub fn drifts(&mut self, now: Time, drift: i32) {
        self.shown = self.show(now);
        self.since = now;
        self.drift = drift.clamp(-500_000, 500_000);
    }

    /// Returns the time that the clock shows at a world time.
    pub fn show(&self, at: Time) -> Time {
        let passed = at.since(self.since);
        if self.drift == 0 {
            return self.shown + passed;
        }
        let passed = i128::try_from(passed.as_nanos()).unwrap_or(i128::MAX / 2 / MILLION);
        self.shown + nanos(passed * (MILLION + i128::from(self.drift)) / MILLION)
    }

    /// Returns the first world time at which the clock shows `shown` or more.
    pub fn when(&self, shown: Time) -> Time {
        let ahead = shown.since(self.shown);
        if self.drift == 0 || shown == Time::NEVER {
            return self.since + ahead;
        }
        let ahead = i128::try_from(ahead.as_nanos()).unwrap_or(i128::MAX / 2 / MILLION);
        let rate = MILLION + i128::from(self.drift);
        // Rounds up, so that what is due at that time is due.
        self.since + nanos((ahead * MILLION + rate - 1) / rate)
    }
}

fn nanos(nanos: i128) -> Duration {
    u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::BEGIN;

    #[test]
    fn when_is_the_inverse_of_show() {
        let mut clock = Clock::exact();
        assert_eq!(clock.show(BEGIN + Duration::from_secs(5)), BEGIN + Duration::from_secs(5));
        clock.ahead(Duration::from_millis(17));
        for (n, drift) in [(1, 333), (2, -77_777), (3, 0), (4, 49_999)] {
            let now = BEGIN + Duration::from_secs(n * 1000);
            let before = clock.show(now);
            clock.drifts(now, drift);
            assert_eq!(clock.show(now), before);
            for later in [1, 999, 1_000_007, 86_400_000_000_007] {
                let wanted = before + Duration::from_nanos(later);
                let at = clock.when(wanted);
                assert!(clock.show(at) >= wanted && clock.show(at - Duration::from_nanos(2)) < wanted, "{drift}");
            }
        }
        assert_eq!(clock.when(Time::NEVER), Time::NEVER);
    }
}
