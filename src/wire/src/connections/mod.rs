//! The connections of a process: how many may be open, and which one is closed to admit another.
//!
//! Servers and networks call this module before they accept or open a connection, and close the connections that it
//! names. It does no I/O.
//!
//! A connection is closed to admit another, or for a timeout, only while the process waits for bytes of its client:
//! before its first request, within a request, between two requests. A connection is never closed for these reasons
//! while a request is handled, while a response or a stream is sent, or after it was [kept](Slot::never_close_idle).
//! Only a body that stalls or is too slow closes a kept connection.
//!
//! The connection to close comes from the source with the most waiting connections: an IPv4 address, or the first 64
//! bits of an IPv6 address. Among those of a source it is the one that has waited for longest. So a source that opens
//! connections without end closes its own ones, and not those of others. A source other than this machine has at most
//! half of the connections: those that are kept cannot be closed to admit others. Refused requests of a source have a
//! rate: beyond it their responses are delayed.

mod refusals;
mod slot;
mod table;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use slot::{OutgoingSlot, Slot, WaitsFor};
use table::Table;
pub(crate) use table::source;

use crate::sync::lock;

/// The connections of a process, shared by its servers and its networks. Clones share the same connections.
#[derive(Clone, Debug)]
pub struct Connections {
    limit: usize,
    /// Advice to the operator for more connections; the end of a warning.
    advice: &'static str,
    table: Arc<Mutex<Table>>,
}

/// Numbers of connections of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Maximum number of open connections.
    pub limit: usize,
    /// Number of open connections that clients made.
    pub incoming: usize,
    /// Number of open connections that this process made.
    pub outgoing: usize,
    /// Number of idle connections that were closed to admit others, since the start.
    pub displaced: u64,
    /// Number of connections that were closed because a client sent nothing for too long, or a body too slowly, since
    /// the start.
    pub timed_out: u64,
    /// Number of connections that were refused because the limit was reached and none was idle, since the start.
    pub refused: u64,
    /// Number of refused requests whose responses were delayed, since the start.
    pub delayed: u64,
}

impl Connections {
    /// Creates a table for at most `limit` open connections. `advice` tells an operator how to allow more.
    pub fn new(limit: usize, advice: &'static str) -> Connections {
        Connections { limit, advice, table: Arc::default() }
    }

    /// Returns the current numbers.
    pub fn counts(&self) -> ConnectionCounts {
        ConnectionCounts { limit: self.limit, ..lock(&self.table).counts }
    }

    /// Enters a connection that a client has made; closes another one if needed. Returns `None` if the connection
    /// cannot be admitted and must be closed.
    pub(crate) fn admit(&self, peer: IpAddr) -> Option<Slot> {
        let mut table = lock(&self.table);
        let source = table::source(peer);
        // Whole clusters run on one machine for tests and measurements.
        let is_own = peer.to_canonical().is_loopback();
        let refusal = if !is_own && !table.make_room_of(source, self.limit.div_ceil(2)) {
            Some("half of them are from that address, and none of those is idle")
        } else if !table.make_room(self.limit, self.advice) {
            Some("none of them is idle")
        } else {
            None
        };
        if let Some(why) = refusal {
            drop(table);
            self.refused(&format!("from {peer}"), why);
            return None;
        }
        table.enter(source);
        drop(table);
        Some(Slot::new(self.table.clone(), source))
    }

    /// Enters a connection that this process is about to make; closes another one if needed. Returns `None` if the
    /// connection cannot be admitted.
    pub(crate) fn admit_outgoing(&self, to: &dyn std::fmt::Display) -> Option<OutgoingSlot> {
        let mut table = lock(&self.table);
        if !table.make_room(self.limit, self.advice) {
            drop(table);
            self.refused(&format!("to {to}"), "none of them is idle");
            return None;
        }
        table.counts.outgoing += 1;
        Some(OutgoingSlot::new(self.table.clone()))
    }

    /// Counts a refused connection, and logs it at intervals.
    pub(crate) fn refused(&self, which: &str, why: &str) {
        let mut table = lock(&self.table);
        if table.refuse() {
            let (open, refused) = (table.open(), table.counts.refused);
            drop(table);
            let (limit, advice) = (self.limit, self.advice);
            tracing::warn!(
                "refused a connection {which}: {open} connections are open, the limit is {limit}, and {why}; {advice} \
                 ({refused} refused since the start)"
            );
        }
    }

    /// Enters a refused request of a client, and returns the delay of its response.
    pub(crate) fn refuse_request(&self, peer: IpAddr) -> Duration {
        lock(&self.table).refuse_request(table::source(peer), Instant::now())
    }

    /// Returns whether connections that must close are still open.
    pub(crate) fn is_closing(&self) -> bool {
        lock(&self.table).closing > 0
    }

    /// Closes an idle connection, to free its descriptor. Returns `false` if none is idle.
    pub(crate) fn displace(&self) -> bool {
        lock(&self.table).displace().is_some()
    }

    /// Closes the connections whose clients have sent nothing for too long, or a body too slowly.
    pub(crate) fn close_timed_out(&self) {
        lock(&self.table).close_late(Instant::now());
    }
}
