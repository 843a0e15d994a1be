//! Reads the system's clock as monotonic values. No other module of this crate reads it.

use std::time::{Instant, SystemTime};

use base::Time;

/// A clock that reads the wall clock once and adds the monotonic clock from then on.
pub(super) struct Clock {
    start: Time,
    began: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the driver is where time comes from")]
    pub(super) fn start() -> Clock {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Clock { start: Time::from_epoch(since_epoch), began: Instant::now() }
    }

    pub(super) fn now(&self) -> Time {
        self.start + self.began.elapsed()
    }

    /// Waits until this instant; returns at once if it is over.
    pub(super) async fn sleep_until(&self, at: Time) {
        if at == Time::NEVER {
            return std::future::pending().await;
        }
        tokio::time::sleep(at.since(self.now())).await;
    }
}

/// Returns a number that differs from scheduler to scheduler.
pub(super) fn seed() -> u64 {
    u64::from(Clock::start().start.since_epoch().subsec_nanos()) ^ (u64::from(std::process::id()) << 32)
}
