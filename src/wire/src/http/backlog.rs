//! Limit of the bytes that wait for the readers of all streams together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Number of bytes behind the next record that a stream may have, however many wait for the readers of others.
pub(super) const OWN: usize = 64 << 10;

/// Length from which a record counts until the connection has sent it. Shorter ones count until the connection takes
/// them: it takes few of them before it has sent them.
const LONG: usize = 16 << 10;

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

    /// Returns whether a record of this length is too much as the first of a stream: it may be longer than what is left
    /// of the limit, but not many at once.
    pub(super) fn is_too_much(&self, bytes: usize) -> bool {
        bytes >= LONG && self.is_full()
    }

    pub(super) fn add(&self, bytes: usize) {
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns a record for the connection. It no longer counts once the returned bytes are dropped.
    pub(super) fn pass_on(&self, record: Bytes) -> Bytes {
        if record.len() < LONG {
            self.remove(record.len());
            return record;
        }
        Bytes::from_owner(Unsent { record, backlog: self.clone() })
    }
}

/// A record that a connection has taken and not sent.
struct Unsent {
    record: Bytes,
    backlog: Backlog,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.record
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.backlog.remove(self.record.len());
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
        idle.send(&[0; OWN / 2]).unwrap();
        let (third, _records) = open();
        assert_eq!(third.send(&[0; LONG]), Err(StreamEnd::Crowded { limit: 1000 }), "a large state for one more");
        other.send(&[0; 10]).unwrap();
        assert_eq!(reader.try_next().map(|record| record.len()), Some(13));
        other.send(&[0; 10]).unwrap();
        assert_eq!(idle.send(&[0; OWN / 2]), Err(StreamEnd::Crowded { limit: 1000 }));
        assert!(!backlog.is_full() && backlog.has_room(1000 - 13));
        drop((unread, reader));
        assert!(backlog.has_room(1000));
    }

    #[test]
    fn a_long_record_counts_until_it_is_sent() {
        let backlog = Backlog::new(LONG);
        let (stream, mut reader) = stream::open_bare(1 << 20, &backlog);
        stream.send(&[0; LONG]).unwrap();
        let taken = reader.try_next().unwrap();
        assert!(backlog.is_full());
        let rest = taken.slice(LONG..);
        drop(taken);
        assert!(backlog.is_full(), "the connection still has the rest");
        drop(rest);
        assert!(backlog.has_room(LONG));
        // The end of the stream does not remove it a second time.
        stream.send(&[0; LONG]).unwrap();
        let taken = reader.try_next().unwrap();
        drop((stream, reader));
        assert!(backlog.is_full());
        drop(taken);
        assert!(backlog.has_room(LONG));
    }
}
