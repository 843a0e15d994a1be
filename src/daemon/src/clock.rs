//! The live clock: the one place where the daemons read the system's time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::Time;

/// Reads the wall clock once and the monotonic clock from then on, so that its time never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: Time,
    started: Instant,
}

#[allow(clippy::disallowed_methods, reason = "this is the clock that everything else is given the time by")]
impl Clock {
    /// A clock that starts at the system's present time.
    pub fn start() -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { wall: Time::from_epoch(since_epoch), started: Instant::now() }
    }

    /// What time it is.
    pub fn now(&self) -> Time {
        self.wall + self.started.elapsed()
    }

    /// The monotonic instant of `time`, for timers; an instant of the past is "now".
    pub fn instant(&self, time: Time) -> Instant {
        self.started.checked_add(time.since(self.wall)).unwrap_or_else(|| self.started + YEARS)
    }
}

/// Further away than any timer: what [`Time::NEVER`] becomes.
const YEARS: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Measures how long the daemon's own work takes, for metrics. Nothing is decided by it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    began: Instant,
}

impl Stopwatch {
    /// Begins now.
    #[allow(clippy::disallowed_methods, reason = "this is where the time comes from")]
    pub fn start() -> Stopwatch {
        Stopwatch { began: Instant::now() }
    }

    /// How long ago it began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// How long it ran when `later` began.
    pub fn until(&self, later: Stopwatch) -> Duration {
        later.began.saturating_duration_since(self.began)
    }
}
