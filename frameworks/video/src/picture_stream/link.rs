//! A simulated link: the times at which bytes are transferred.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::bitrate::Trace;

/// The transfer times of a simulated link.
pub(crate) struct Link {
    trace: Arc<Trace>,
    began: Instant,
    /// Time in seconds since the start at which all bytes are transferred.
    through: f64,
}

impl Link {
    pub(crate) fn new(trace: Arc<Trace>) -> Link {
        Link { trace, began: Instant::now(), through: 0.0 }
    }

    /// Waits until this many further bytes are transferred.
    pub(crate) async fn carry(&mut self, bytes: usize) {
        let due = self.due(self.began.elapsed().as_secs_f64(), bytes);
        tokio::time::sleep_until(self.began + Duration::from_secs_f64(due)).await;
    }

    /// Returns the time at which bytes that are available now are transferred.
    fn due(&mut self, now: f64, bytes: usize) -> f64 {
        let from = self.through.max(now);
        self.through = from + self.trace.transfer(from, bytes as f64, 1.0);
        self.through
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_what_its_trace_says() {
        let mut link = Link::new(Arc::new(Trace::new(&[(1.0, 0.8), (1.0, 1.6)]).unwrap()));
        let first = link.due(0.0, 100_000);
        let second = link.due(0.2, 100_000);
        let third = link.due(3.0, 100_000);
        assert!((first - 1.0).abs() < 1e-9 && (second - 1.5).abs() < 1e-9 && (third - 3.5).abs() < 1e-9);
    }
}
