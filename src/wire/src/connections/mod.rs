//! The connections of a process: how many may be open, and which one is closed to admit another.
//!
//! Servers and networks ask here before they accept or open a connection, and close the connections that this module
//! names. It does no I/O.
//!
//! A connection is closed to admit another, or for a timeout, only while the process waits for bytes of its client:
//! before its first request, within a request, between two requests. A connection is never closed for these reasons
//! while a request is handled, while an answer or a stream is sent, or after it was [kept](Slot::keep).
//!
//! The connection to close comes from the source with the most waiting connections: an IPv4 address, or the first 64
//! bits of an IPv6 address. Among those of a source it is the one that has waited for longest. So a source that opens
//! connections without end closes its own ones, and not those of others. A source other than this machine has at most
//! half of the connections: those that are kept cannot be closed to admit others. Refused requests of a source have a
//! rate: beyond it their answers wait.

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

use crate::sync::lock;

/// The connections of a process, shared by its servers and its networks. Clones share the same connections.
#[derive(Clone, Debug)]
pub struct Connections {
    limit: usize,
    /// What an operator can do to allow more connections; the end of a warning.
    advice: &'static str,
    table: Arc<Mutex<Table>>,
}

/// Numbers of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections that may be open at the same time.
    pub limit: usize,
    /// Open connections that clients made.
    pub incoming: usize,
    /// Open connections that this process made.
    pub outgoing: usize,
    /// Idle connections that were closed to admit others, since the start.
    pub displaced: u64,
    /// Connections that were closed because a client sent nothing for too long, since the start.
    pub timed_out: u64,
    /// Connections that were refused because the limit was reached and none was idle, since the start.
    pub refused: u64,
    /// Refused requests whose answers had to wait, since the start.
    pub delayed: u64,
}

impl Connections {
    /// A table without connections, for at most `limit` at the same time. `advice` says how an operator allows more.
    pub fn new(limit: usize, advice: &'static str) -> Connections {
        Connections { limit, advice, table: Arc::default() }
    }

    /// The numbers as of now.
    pub fn counts(&self) -> ConnectionCounts {
        ConnectionCounts { limit: self.limit, ..lock(&self.table).counts }
    }

    /// Enters a connection that a client has made, after closing another one if need be. None if there is no room: the
    /// connection is to be closed.
    pub(crate) fn admit(&self, peer: IpAddr) -> Option<Slot> {
        let mut table = lock(&self.table);
        let source = table::source(peer);
        // Whole clusters run on one machine for tests and measurements.
        let is_own = peer.to_canonical().is_loopback();
        let refusal = if !is_own && !table.make_room_of(source, self.limit.div_ceil(2)) {
            Some("half of them are of that address, and none of those is idle")
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

    /// Enters a connection that this process is about to make, after closing another one if need be. None if there is
    /// no room.
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

    /// Counts a refused connection, and logs it once in a while.
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

    /// Enters a request of a client that is refused, and returns how long its answer waits.
    pub(crate) fn refuse_request(&self, peer: IpAddr) -> Duration {
        lock(&self.table).refuse_request(table::source(peer), Instant::now())
    }

    /// Whether connections that must close are still open.
    pub(crate) fn is_closing(&self) -> bool {
        lock(&self.table).closing > 0
    }

    /// Closes an idle connection, for its descriptor; false if none is idle.
    pub(crate) fn displace(&self) -> bool {
        lock(&self.table).displace().is_some()
    }

    /// Closes the connections whose clients have sent nothing for too long.
    pub(crate) fn close_timed_out(&self) {
        lock(&self.table).close_late(Instant::now());
    }
}
