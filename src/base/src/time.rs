//! Time as a value: cores receive it with their inputs.
//!
//! It does not read a clock; the shells make a [`Time`] from one.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant, as the time since the Unix epoch.
///
/// A shell guarantees that successive values never decrease: it reads the wall clock once at start and adds the
/// monotonic clock from then on. So one value serves for timers and for timestamps on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

impl Time {
    /// The Unix epoch: the start of most scripted tests.
    pub const EPOCH: Time = Time(Duration::ZERO);
    /// An instant later than all that occur.
    pub const NEVER: Time = Time(Duration::MAX);

    /// Returns the instant `since_epoch` after the Unix epoch.
    pub const fn from_epoch(since_epoch: Duration) -> Time {
        Time(since_epoch)
    }

    /// Returns the instant `seconds` after the Unix epoch; for tests and scripts.
    pub const fn from_secs(seconds: u64) -> Time {
        Time(Duration::from_secs(seconds))
    }

    /// Returns the time since the Unix epoch.
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// Returns the seconds since the Unix epoch, as Mesos writes timestamps.
    pub fn as_secs_f64(self) -> f64 {
        self.0.as_secs_f64()
    }

    /// Returns the nanoseconds since the Unix epoch, as `TimeInfo` has them; saturates in the year 2262.
    pub fn as_nanos(self) -> i64 {
        i64::try_from(self.0.as_nanos()).unwrap_or(i64::MAX)
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Adds a duration; saturates at [`Time::NEVER`].
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    /// Subtracts a duration; saturates at [`Time::EPOCH`].
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(duration))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0.as_secs(), self.0.subsec_millis())
    }
}
