//! The clocks of a world's processes: they differ from each other, and none goes back.
//!
//! It does not read the machine's clock.

use std::time::Duration;

use base::Time;

/// Parts of a million.
const MILLION: i128 = 1_000_000;

/// A process's clock, as a function of the world's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Since then it goes as it goes now.
    since: Time,
    /// What it showed then.
    shown: Time,
    /// How much too fast it goes, in parts of a million; less than a million either way.
    drift: i32,
}

impl Clock {
    /// A clock that equals the world's.
    pub fn exact() -> Clock {
        Clock { since: super::BEGIN, shown: super::BEGIN, drift: 0 }
    }

    /// It is ahead by so much from the beginning.
    pub fn ahead(&mut self, by: Duration) {
        self.shown = self.shown + by;
    }

    /// From `now` on it goes too fast by `drift` parts of a million, or too slow.
    pub fn drifts(&mut self, now: Time, drift: i32) {
        self.shown = self.show(now);
        self.since = now;
        self.drift = drift.clamp(-500_000, 500_000);
    }

    /// What it shows at an instant of the world.
    pub fn show(&self, at: Time) -> Time {
        let passed = at.since(self.since);
        if self.drift == 0 {
            return self.shown + passed;
        }
        let passed = i128::try_from(passed.as_nanos()).unwrap_or(i128::MAX / 2 / MILLION);
        self.shown + nanos(passed * (MILLION + i128::from(self.drift)) / MILLION)
    }

    /// The first instant of the world at which it shows `shown` or more.
    pub fn when(&self, shown: Time) -> Time {
        let ahead = shown.since(self.shown);
        if self.drift == 0 || shown == Time::NEVER {
            return self.since + ahead;
        }
        let ahead = i128::try_from(ahead.as_nanos()).unwrap_or(i128::MAX / 2 / MILLION);
        let rate = MILLION + i128::from(self.drift);
        // Rounded up, so that what is due then is due.
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
    fn what_is_due_is_due_when_the_clock_says_so() {
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
