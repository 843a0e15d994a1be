//! The only place where the service reads the clock.

use std::time::Instant;

/// Now, on a clock that never goes back.
#[expect(clippy::disallowed_methods, reason = "the service is a shell: it measures how long real work takes")]
pub(super) fn now() -> Instant {
    Instant::now()
}
