//! Decides which errors of a disk are reported to the agent's core, and the waits between repeated writes.
//!
//! The shell sends the reports and waits.

use std::time::Duration;

use crate::error::DiskFailure;

/// The first wait before a failed write is repeated, and the longest one.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// State of a disk, as it was last reported to the core.
#[derive(Clone, Debug, Default)]
pub struct DiskHealth {
    reported: Option<DiskFailure>,
}

impl DiskHealth {
    /// Records an error. Returns whether it must be reported.
    pub fn record_failure(&mut self, disk_failure: &DiskFailure) -> bool {
        let is_news = self.reported.as_ref() != Some(disk_failure);
        if is_news {
            self.reported = Some(disk_failure.clone());
        }
        is_news
    }

    /// Records that the disk works. Returns whether that must be reported.
    pub fn record_success(&mut self) -> bool {
        self.reported.take().is_some()
    }
}

/// Waits between attempts, each twice as long as the one before, up to 10 seconds.
#[derive(Clone, Debug)]
pub struct Waits {
    next: Duration,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { next: FIRST_WAIT }
    }
}

impl Waits {
    /// Returns the next wait.
    pub fn next_wait(&mut self) -> Duration {
        let next = (self.next * 2).min(LONGEST_WAIT);
        std::mem::replace(&mut self.next, next)
    }

    /// Restarts with the first wait, after a success.
    pub fn reset(&mut self) {
        *self = Waits::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_receives_changes_only() {
        let full = DiskFailure { why: "No space left on device".to_owned(), lacks_space: true };
        let other = DiskFailure { why: "Input/output error".to_owned(), lacks_space: false };
        let mut health = DiskHealth::default();
        assert!(!health.record_success());
        assert!(health.record_failure(&full) && !health.record_failure(&full) && health.record_failure(&other));
        assert!(health.record_success() && !health.record_success());
    }

    #[test]
    fn waits_grow_to_ten_seconds() {
        let mut waits = Waits::default();
        let all: Vec<u128> = (0..8).map(|_| waits.next_wait().as_millis()).collect();
        assert_eq!(all, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        waits.reset();
        assert_eq!(waits.next_wait(), FIRST_WAIT);
    }
}
