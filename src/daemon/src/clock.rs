//! The live clock: the only place where the daemons read the system's time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::Time;

/// A clock that reads the wall clock once and the monotonic clock from then on, so that its time never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: Time,
    started: Instant,
}

#[allow(clippy::disallowed_methods, reason = "this is the clock that everything else is given the time by")]
impl Clock {
    /// Creates a clock that starts at the system's current time.
    pub fn start() -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { wall: Time::from_epoch(since_epoch), started: Instant::now() }
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.wall + self.started.elapsed()
    }

    /// Returns the monotonic instant of `time`, for timers; for a time before the clock's start, its start.
    pub fn instant(&self, time: Time) -> Instant {
        self.started.checked_add(time.since(self.wall)).unwrap_or_else(|| self.started + YEARS)
    }
}

/// Time to the instant of [`Time::NEVER`], longer than any timer.
const YEARS: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A stopwatch that measures how long the daemon's own work takes, for metrics. No decision depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    began: Instant,
}

impl Stopwatch {
    /// Starts a stopwatch.
    #[allow(clippy::disallowed_methods, reason = "this is where the time comes from")]
    pub fn start() -> Stopwatch {
        Stopwatch { began: Instant::now() }
    }

    /// Returns the time since the stopwatch was started.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the time from the start of this stopwatch to the start of `later`.
    pub fn until(&self, later: Stopwatch) -> Duration {
        later.began.saturating_duration_since(self.began)
    }
}
