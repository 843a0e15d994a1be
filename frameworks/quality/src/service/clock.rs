//! The only place where the service reads the clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns the time of a monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the service is a shell: it measures how long real work takes")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Returns the seconds since the Unix epoch, for the date of a model.
#[expect(clippy::disallowed_methods, reason = "a model says when it was trained")]
pub(super) fn seconds_since_epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
