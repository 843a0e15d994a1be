//! Limit of the bytes that wait for the readers of all streams together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit of unread bytes that streams share. Clones share it too.
#[derive(Clone, Debug)]
pub struct Backlog {
    limit: usize,
    waiting: Arc<AtomicUsize>,
}

impl Backlog {
    /// Creates a limit in bytes.
    pub fn new(limit: usize) -> Backlog {
        Backlog { limit, waiting: Arc::default() }
    }

    /// Returns the limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns whether more bytes wait than the limit. Then no stream should be opened that begins with a large record.
    pub fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > self.limit
    }

    /// Returns whether this many more bytes fit in the limit.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.waiting.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit
    }

    pub(super) fn add(&self, bytes: usize) {
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::stream::{self, StreamEnd};

    #[test]
    fn of_many_streams_those_are_cut_off_that_do_not_read() {
        let backlog = Backlog::new(1000);
        let open = || stream::open_bare(1 << 20, &backlog);
        let ((idle, unread), (other, mut reader)) = (open(), open());
        // The first record of a stream may be longer than the limit.
        idle.send(&[0; 2000]).unwrap();
        assert!(backlog.is_full());
        other.send(&[0; 10]).unwrap();
        assert_eq!(reader.try_next().map(|record| record.len()), Some(13));
        other.send(&[0; 10]).unwrap();
        assert_eq!(idle.send(&[0; 10]), Err(StreamEnd::Crowded { limit: 1000 }));
        assert!(!backlog.is_full() && backlog.has_room(1000 - 13));
        drop((unread, reader));
        assert!(backlog.has_room(1000));
    }
}
