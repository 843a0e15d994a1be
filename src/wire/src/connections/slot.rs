//! Entries of open connections, which the tasks of the connections hold. They record what a connection does; the table
//! decides what follows.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::table::{Table, Waiting};
use crate::Limits;
use crate::sync::lock;

/// Event that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// The first byte of a connection.
    FirstRequest,
    /// The rest of a request's head.
    Head,
    /// More of a request's body.
    Body,
    /// The next request.
    NextRequest,
    /// Nothing: the request is refused, and the response is delayed.
    Refusal,
}

/// Entry of an open incoming connection. Dropping it removes the connection.
///
/// A connection that is kept waits only for bodies, in a part of the table from which none is closed to admit others.
#[derive(Debug)]
pub(crate) struct Slot {
    table: Arc<Mutex<Table>>,
    source: IpAddr,
    close: Arc<Notify>,
    entry: Option<WaitEntry>,
    pub(super) is_closing: bool,
    is_kept: bool,
}

/// Position of a waiting connection in the table.
#[derive(Clone, Copy, Debug)]
struct WaitEntry {
    number: u64,
    what: WaitsFor,
    /// Number of bytes that the connection had read when it began to wait.
    read: u64,
    deadline: Option<Instant>,
}

impl Slot {
    /// Creates the entry of a new connection.
    pub(super) fn new(table: Arc<Mutex<Table>>, source: IpAddr) -> Slot {
        let close = Arc::default();
        let mut slot = Slot { table, source, close, entry: None, is_closing: false, is_kept: false };
        slot.wait(WaitsFor::FirstRequest, 0, None);
        slot
    }

    /// Returns the notification that the connection must be closed.
    pub(crate) fn close(&self) -> Arc<Notify> {
        self.close.clone()
    }

    /// Records that the connection waits for its client, which has sent `read` bytes so far, and is closed after
    /// `limit`. While it waits for a head, bytes that arrive do not extend the time.
    pub(crate) fn wait(&mut self, what: WaitsFor, read: u64, limit: Option<Duration>) {
        if self.is_kept {
            return self.stop_waiting();
        }
        if let Some(entry) = self.entry
            && entry.what == what
            && (entry.read == read || what == WaitsFor::Head)
        {
            return;
        }
        self.enter(what, read, limit.map(|limit| Instant::now() + limit));
    }

    /// Records that the connection waits for more of a request's body, and is closed once the body has stalled or is
    /// behind its rate ([`Limits::body_rate`]). The connection has read `read` bytes so far. A kept connection is
    /// closed, too, because the part of the body that has arrived counts in the limit of all bodies.
    pub(crate) fn wait_for_body(&mut self, read: u64, limits: &Limits) {
        let former = self.entry.filter(|entry| entry.what == WaitsFor::Body);
        if former.is_some_and(|former| former.read == read) {
            return;
        }
        let latest = Instant::now() + limits.stalled;
        let extended = |entry: WaitEntry| Some(entry.deadline? + limits.time_for(read.saturating_sub(entry.read)));
        let deadline = former.and_then(extended).map_or(latest, |extended| extended.min(latest));
        self.enter(WaitsFor::Body, read, Some(deadline));
    }

    fn enter(&mut self, what: WaitsFor, read: u64, deadline: Option<Instant>) {
        if self.is_closing {
            return;
        }
        let waiting = Waiting { deadline, close: self.close.clone() };
        let former = self.entry.map(|entry| entry.number);
        let mut table = lock(&self.table);
        let number = match self.is_kept {
            true => table.begin_kept_wait(self.source, former, waiting),
            false => table.begin_wait(self.source, former, waiting),
        };
        self.is_closing = number.is_none();
        self.entry = number.map(|number| WaitEntry { number, what, read, deadline });
    }

    /// Records that the connection does not wait for its client.
    pub(crate) fn stop_waiting(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        let mut table = lock(&self.table);
        let has_waited = match self.is_kept {
            true => table.end_kept_wait(entry.number),
            false => table.end_wait(self.source, entry.number),
        };
        self.is_closing = !has_waited;
    }

    /// Records that the client relies on the connection, so that it is never closed for being idle. A body that stalls
    /// or is too slow still closes it.
    pub(crate) fn never_close_idle(&mut self) {
        if !self.is_kept {
            self.stop_waiting();
            self.is_kept = true;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.stop_waiting();
        lock(&self.table).leave(self.source, self.is_closing);
    }
}

/// Entry of an open outgoing connection. Dropping it removes the connection.
#[derive(Debug)]
pub(crate) struct OutgoingSlot(Arc<Mutex<Table>>);

impl OutgoingSlot {
    pub(super) fn new(table: Arc<Mutex<Table>>) -> OutgoingSlot {
        OutgoingSlot(table)
    }
}

impl Drop for OutgoingSlot {
    fn drop(&mut self) {
        lock(&self.0).counts.outgoing -= 1;
    }
}
