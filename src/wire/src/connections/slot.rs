//! Entries of open connections, which the tasks of the connections hold. They record what a connection does; the table
//! decides what follows.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::table::{Table, Waiting};
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
        if self.is_kept || self.is_closing {
            return;
        }
        if let Some(entry) = self.entry
            && entry.what == what
            && (entry.read == read || what == WaitsFor::Head)
        {
            return;
        }
        let deadline = limit.map(|limit| Instant::now() + limit);
        let waiting = Waiting { deadline, close: self.close.clone() };
        let former = self.entry.map(|entry| entry.number);
        let number = lock(&self.table).begin_wait(self.source, former, waiting);
        self.is_closing = number.is_none();
        self.entry = number.map(|number| WaitEntry { number, what, read });
    }

    /// Records that the connection does not wait for its client.
    pub(crate) fn stop_waiting(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        self.is_closing = !lock(&self.table).end_wait(self.source, entry.number);
    }

    /// Records that the client relies on the connection, so that it is never closed for being idle.
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
