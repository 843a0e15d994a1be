//! The time for which a candidate may rely on the last answer of ZooKeeper.
//!
//! The servers end a session after its timeout without messages, and another candidate leads then. A process that was
//! stopped or disconnected must not assume that it leads because it has received nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// A time limit that is over when the session may be over, counted from the last request that was answered.
#[derive(Debug)]
pub struct Lease {
    began: Instant,
    /// End of the lease, in milliseconds since `began`.
    until: AtomicU64,
}

impl Lease {
    /// Creates a lease that is over.
    #[allow(clippy::new_without_default, reason = "it begins now")]
    pub fn new() -> Lease {
        Lease { began: Instant::now(), until: AtomicU64::new(0) }
    }

    /// Extends the lease after the answer to a request that was sent at `asked`, in a session of this timeout.
    pub(crate) fn extend(&self, asked: Instant, session: Duration) {
        self.end_at((asked + session).into_std());
    }

    /// Sets the end of the lease.
    pub fn end_at(&self, end: std::time::Instant) {
        let until = Instant::from_std(end).saturating_duration_since(self.began);
        self.until.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns whether the lease is over, that is, the session may be over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end()
    }

    fn end(&self) -> Instant {
        self.began + Duration::from_millis(self.until.load(Ordering::Relaxed))
    }

    /// Waits until the lease is over.
    pub(crate) async fn over(&self) {
        while !self.is_over() {
            tokio::time::sleep_until(self.end()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_counts_from_the_question() {
        let lease = Lease::new();
        assert!(lease.is_over(), "no request was sent yet");
        let now = Instant::now();
        lease.extend(now, Duration::from_secs(600));
        assert!(!lease.is_over());
        lease.extend(now, Duration::from_millis(1));
        lease.over().await;
        assert!(lease.is_over());
    }
}
