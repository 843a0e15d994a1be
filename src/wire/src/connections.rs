//! The connections of a process: how many may be open, and which one is closed to admit another.
//!
//! Servers and networks ask here before they accept or open a connection, and close the connections that this module
//! names. It does no I/O.
//!
//! A connection is closed to admit another, or for a timeout, only while the process waits for bytes of its client: before its
//! first request, within a request, between two requests. A connection is never closed for these reasons while a request is
//! handled, while an answer or a stream is sent, or after it was [kept](Slot::keep).
//!
//! The connection to close comes from the source with the most waiting connections: an IPv4 address, or the first 64 bits of an
//! IPv6 address. Among those of a source it is the one that has waited for longest. So a source that opens connections without
//! end closes its own ones, and not those of others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::sync::lock;

/// Least time between two warnings of the same kind.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

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
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// The first byte.
    FirstRequest,
    /// The rest of a request's head.
    Head,
    /// More of a request's body.
    Body,
    /// The next request.
    NextRequest,
}

/// A connection that waits for its client.
#[derive(Debug)]
struct Waiting {
    /// When it is closed, if it waits for that long.
    deadline: Option<Instant>,
    /// Tells the connection's task to close it.
    close: Arc<Notify>,
}

/// Place of a source among the others: the last one has the most waiting connections; of several such sources, the one whose
/// first connection has waited for longest.
type Rank = (usize, Reverse<u64>, IpAddr);

#[derive(Debug, Default)]
struct Table {
    counts: ConnectionCounts,
    /// Incoming connections that were told to close and are still open.
    closing: usize,
    /// Number of the next connection that begins to wait.
    next: u64,
    /// The waiting connections of each source, in the order in which they began to wait.
    waiting: BTreeMap<IpAddr, BTreeMap<u64, Waiting>>,
    /// The sources of `waiting`.
    ranking: BTreeSet<Rank>,
    displaced_warning: Option<Instant>,
    refused_warning: Option<Instant>,
}

impl Table {
    fn open(&self) -> usize {
        self.counts.incoming + self.counts.outgoing - self.closing
    }

    /// Changes the waiting connections of a source and its rank.
    fn change<T>(&mut self, source: IpAddr, change: impl FnOnce(&mut BTreeMap<u64, Waiting>) -> T) -> T {
        let rank = |waiting: &BTreeMap<u64, Waiting>| -> Option<Rank> {
            let (first, _) = waiting.first_key_value()?;
            Some((waiting.len(), Reverse(*first), source))
        };
        let waiting = self.waiting.entry(source).or_default();
        let before = rank(waiting);
        let result = change(waiting);
        let after = rank(waiting);
        if after.is_none() {
            self.waiting.remove(&source);
        }
        if before != after {
            before.map(|before| self.ranking.remove(&before));
            after.map(|after| self.ranking.insert(after));
        }
        result
    }

    /// Tells one waiting connection to close and returns its source; None if none waits.
    fn displace(&mut self) -> Option<IpAddr> {
        let (_, _, source) = *self.ranking.last()?;
        let (_, waiting) = self.change(source, BTreeMap::pop_first)?;
        waiting.close.notify_one();
        self.closing += 1;
        self.counts.displaced += 1;
        Some(source)
    }

    /// Makes room for one more connection; false if there is none.
    fn make_room(&mut self, limit: usize, advice: &str) -> bool {
        if self.open() < limit {
            return true;
        }
        let Some(source) = self.displace() else { return false };
        if is_due(&mut self.displaced_warning) {
            tracing::warn!(
                "{limit} connections are open, which is the limit: idle ones are closed to admit others, at present one from \
                 {source}, which has the most; {advice}"
            );
        }
        true
    }
}

/// Whether a warning may be logged now; notes that it is.
fn is_due(last: &mut Option<Instant>) -> bool {
    let now = Instant::now();
    let due = last.is_none_or(|last| now.duration_since(last) >= WARNING_INTERVAL);
    if due {
        *last = Some(now);
    }
    due
}

/// What is counted as one source: an IPv4 address, or the network of an IPv6 address, of which a host may have 2^64.
fn source(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        ip => ip,
    }
}

impl Connections {
    /// No connection yet, and at most `limit` at the same time. `advice` says how an operator can allow more.
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
        if !table.make_room(self.limit, self.advice) {
            drop(table);
            self.refused(&format!("from {peer}"), "none of them is idle");
            return None;
        }
        table.counts.incoming += 1;
        drop(table);
        let mut slot = Slot {
            connections: self.clone(),
            source: source(peer),
            close: Arc::default(),
            place: None,
            is_closing: false,
            is_kept: false,
        };
        slot.wait(WaitsFor::FirstRequest, 0, None);
        Some(slot)
    }

    /// Enters a connection that this process is about to make, after closing another one if need be. None if there is no
    /// room.
    pub(crate) fn admit_outgoing(&self, to: &dyn std::fmt::Display) -> Option<OutgoingSlot> {
        let mut table = lock(&self.table);
        if !table.make_room(self.limit, self.advice) {
            drop(table);
            self.refused(&format!("to {to}"), "none of them is idle");
            return None;
        }
        table.counts.outgoing += 1;
        Some(OutgoingSlot(self.clone()))
    }

    /// Counts a refused connection, and logs it once in a while.
    pub(crate) fn refused(&self, which: &str, why: &str) {
        let mut table = lock(&self.table);
        table.counts.refused += 1;
        if is_due(&mut table.refused_warning) {
            let (open, refused) = (table.open(), table.counts.refused);
            drop(table);
            let (limit, advice) = (self.limit, self.advice);
            tracing::warn!(
                "refused a connection {which}: {open} connections are open, the limit is {limit}, and {why}; {advice} \
                 ({refused} refused since the start)"
            );
        }
    }

    /// Whether connections that were told to close are still open.
    pub(crate) fn is_closing(&self) -> bool {
        lock(&self.table).closing > 0
    }

    /// Closes an idle connection, for its descriptor; false if none is idle.
    pub(crate) fn displace(&self) -> bool {
        lock(&self.table).displace().is_some()
    }

    /// Closes the connections whose clients have sent nothing for too long.
    pub(crate) fn close_timed_out(&self) {
        let now = Instant::now();
        let mut table = lock(&self.table);
        let late = |waiting: &Waiting| waiting.deadline.is_some_and(|deadline| deadline <= now);
        let all = table.waiting.iter();
        let sources: Vec<IpAddr> = all.filter(|(_, of)| of.values().any(late)).map(|(source, _)| *source).collect();
        for source in sources {
            let closed = table.change(source, |waiting| {
                let before = waiting.len();
                waiting.retain(|_, waiting| {
                    let late = late(waiting);
                    if late {
                        waiting.close.notify_one();
                    }
                    !late
                });
                before - waiting.len()
            });
            table.closing += closed;
            table.counts.timed_out += closed as u64;
        }
    }
}

/// The entry of an open incoming connection. Dropping it says that the connection is closed.
#[derive(Debug)]
pub(crate) struct Slot {
    connections: Connections,
    source: IpAddr,
    close: Arc<Notify>,
    place: Option<Place>,
    is_closing: bool,
    is_kept: bool,
}

/// Where a waiting connection is in the table.
#[derive(Clone, Copy, Debug)]
struct Place {
    number: u64,
    what: WaitsFor,
    /// What the connection had read when it began to wait.
    read: u64,
}

impl Slot {
    /// Ready, as a notification, when the connection is to be closed.
    pub(crate) fn close(&self) -> Arc<Notify> {
        self.close.clone()
    }

    /// Says that the connection waits for its client, which has sent `read` bytes so far, and is closed after `limit`.
    /// While it waits for a head the time goes on, whatever comes of it.
    pub(crate) fn wait(&mut self, what: WaitsFor, read: u64, limit: Option<Duration>) {
        if self.is_kept || self.is_closing {
            return;
        }
        if let Some(place) = self.place
            && place.what == what
            && (place.read == read || what == WaitsFor::Head)
        {
            return;
        }
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut table = lock(&self.connections.table);
        let number = table.next;
        table.next += 1;
        let (old, close) = (self.place, &self.close);
        let present = table.change(self.source, |waiting| {
            if let Some(old) = old
                && waiting.remove(&old.number).is_none()
            {
                return false;
            }
            waiting.insert(number, Waiting { deadline, close: close.clone() });
            true
        });
        self.is_closing = !present;
        self.place = present.then_some(Place { number, what, read });
    }

    /// Says that the connection does not wait for its client.
    pub(crate) fn work(&mut self) {
        let Some(place) = self.place.take() else { return };
        let removed =
            lock(&self.connections.table).change(self.source, |waiting| waiting.remove(&place.number).is_some());
        self.is_closing = !removed;
    }

    /// Says that the end of the connection means something to its client, so that it is not closed for being idle.
    pub(crate) fn keep(&mut self) {
        if !self.is_kept {
            self.work();
            self.is_kept = true;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.work();
        let mut table = lock(&self.connections.table);
        table.counts.incoming -= 1;
        table.closing -= usize::from(self.is_closing);
    }
}

/// The entry of an outgoing connection. Dropping it says that the connection is closed.
#[derive(Debug)]
pub(crate) struct OutgoingSlot(Connections);

impl Drop for OutgoingSlot {
    fn drop(&mut self) {
        lock(&self.0.table).counts.outgoing -= 1;
    }
}

#[cfg(test)]
mod tests {
    //! Invariants, after every step: no more connections are open than the limit, except for those that are being closed; the
    //! connection that is closed to admit another is one that waits, of a source with the most waiting connections, and the one
    //! of them that waits for longest; a connection is refused only if none waits.

    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 6;

    #[derive(Clone, Debug)]
    enum Step {
        Admit(u8),
        AdmitOutgoing,
        Wait(usize),
        Work(usize),
        Keep(usize),
        Close(usize),
        CloseOutgoing,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u8..4).prop_map(Step::Admit),
            1 => Just(Step::AdmitOutgoing),
            2 => (0usize..8).prop_map(Step::Wait),
            2 => (0usize..8).prop_map(Step::Work),
            1 => (0usize..8).prop_map(Step::Keep),
            1 => (0usize..8).prop_map(Step::Close),
            1 => Just(Step::CloseOutgoing),
        ]
    }

    /// A connection as the test knows it.
    struct Known {
        slot: Slot,
        source: u8,
        /// Since which step it waits.
        waits: Option<usize>,
        kept: bool,
    }

    fn ip(source: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, source])
    }

    /// Which connection must be closed to admit another.
    fn expected(known: &[Known]) -> Option<usize> {
        let waiting = |source: u8| known.iter().filter(|one| one.source == source && one.waits.is_some()).count();
        let all = known.iter().enumerate().filter_map(|(index, one)| Some((one.source, one.waits?, index)));
        // The source with the most, the oldest of it; of several such sources the one with the oldest.
        let (_, _, index) = all.min_by_key(|(source, since, _)| (Reverse(waiting(*source)), *since))?;
        Some(index)
    }

    /// Removes the connection that was told to close, as its task does.
    fn close_chosen(known: &mut Vec<Known>, chosen: usize) {
        let mut gone = known.remove(chosen);
        gone.slot.work();
        assert!(gone.slot.is_closing, "another connection was closed");
    }

    proptest! {
        #[test]
        fn the_right_connection_is_closed(steps in prop::collection::vec(step(), 0..200)) {
            let connections = Connections::new(LIMIT, "this is a test");
            let (mut known, mut outgoing) = (Vec::<Known>::new(), Vec::new());
            for (time, step) in steps.into_iter().enumerate() {
                let (full, chosen) = (known.len() + outgoing.len() >= LIMIT, expected(&known));
                let refused = connections.counts().refused;
                match step {
                    Step::Admit(source) => {
                        let slot = connections.admit(ip(source));
                        prop_assert_eq!(slot.is_some(), !full || chosen.is_some());
                        if let Some(slot) = slot {
                            chosen.filter(|_| full).into_iter().for_each(|chosen| close_chosen(&mut known, chosen));
                            known.push(Known { slot, source, waits: Some(time), kept: false });
                        } else {
                            prop_assert_eq!(connections.counts().refused, refused + 1);
                        }
                    }
                    Step::AdmitOutgoing => {
                        let slot = connections.admit_outgoing(&"a peer");
                        prop_assert_eq!(slot.is_some(), !full || chosen.is_some());
                        if let Some(slot) = slot {
                            chosen.filter(|_| full).into_iter().for_each(|chosen| close_chosen(&mut known, chosen));
                            outgoing.push(slot);
                        }
                    }
                    Step::CloseOutgoing => drop(outgoing.pop()),
                    Step::Wait(index) | Step::Work(index) | Step::Keep(index) | Step::Close(index)
                        if index >= known.len() => {}
                    Step::Wait(index) => {
                        let one = &mut known[index];
                        // What was read differs each time.
                        one.slot.wait(WaitsFor::NextRequest, time as u64, None);
                        one.waits = Some(time).filter(|_| !one.kept);
                    }
                    Step::Work(index) => {
                        known[index].slot.work();
                        known[index].waits = None;
                    }
                    Step::Keep(index) => {
                        known[index].slot.keep();
                        (known[index].waits, known[index].kept) = (None, true);
                    }
                    Step::Close(index) => drop(known.remove(index)),
                }
                let counts = connections.counts();
                prop_assert_eq!((counts.incoming, counts.outgoing), (known.len(), outgoing.len()));
                prop_assert!(counts.incoming + counts.outgoing <= LIMIT);
                let table = lock(&connections.table);
                prop_assert_eq!(table.closing, 0);
                prop_assert_eq!(table.ranking.len(), table.waiting.len());
                let waiting: usize = table.waiting.values().map(BTreeMap::len).sum();
                prop_assert_eq!(waiting, known.iter().filter(|one| one.waits.is_some()).count());
            }
        }
    }

    #[test]
    fn an_ipv6_host_is_one_source_whatever_its_addresses() {
        for (ip, expected) in [
            ("10.1.2.3", "10.1.2.3"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
            ("::1", "::"),
        ] {
            assert_eq!(source(ip.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        }
    }
}
