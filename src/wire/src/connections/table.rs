//! Table of the waiting connections of each source, which chooses the connection to close. It closes nothing itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::ConnectionCounts;
use super::refusals::Refusals;

/// Shortest time between two warnings of the same kind.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// A connection that waits for its client.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Time at which the connection is closed if it still waits; `None`: it may wait without a limit.
    pub(super) deadline: Option<Instant>,
    /// Notification for the connection's task to close it.
    pub(super) close: Arc<Notify>,
}

impl Waiting {
    fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Notifies the connection that it must close if its deadline has passed. Returns whether it has.
    fn notify_late(&self, now: Instant) -> bool {
        let is_late = self.is_late(now);
        if is_late {
            self.close.notify_one();
        }
        is_late
    }
}

/// Rank of a source among the others. The last one has the most waiting connections; of several such sources, it is the
/// one whose first connection has waited for longest.
type Rank = (usize, Reverse<u64>, IpAddr);

/// All open connections of a process.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) counts: ConnectionCounts,
    /// Number of incoming connections that must close and are still open.
    pub(super) closing: usize,
    /// Number of open incoming connections of each source, without those that must close.
    pub(super) by_source: BTreeMap<IpAddr, usize>,
    /// Number of the next entry of a connection that begins to wait.
    next: u64,
    /// Waiting connections of each source, in the order in which they began to wait.
    pub(super) waiting: BTreeMap<IpAddr, BTreeMap<u64, Waiting>>,
    /// Sources of `waiting` by rank.
    pub(super) ranking: BTreeSet<Rank>,
    /// Kept connections that wait for a body, with their sources. They are closed for a timeout, but not to admit
    /// others.
    kept: BTreeMap<u64, (IpAddr, Waiting)>,
    refusals: Refusals,
    displaced_warning: Option<Instant>,
    refused_warning: Option<Instant>,
}

impl Table {
    /// Returns the number of open connections, without those that must close.
    pub(super) fn open(&self) -> usize {
        self.counts.incoming + self.counts.outgoing - self.closing
    }

    /// Adds an incoming connection to the counts.
    pub(super) fn enter(&mut self, source: IpAddr) {
        self.counts.incoming += 1;
        *self.by_source.entry(source).or_default() += 1;
    }

    /// Removes a closed connection from the counts; `was_closing` if it had to close.
    pub(super) fn leave(&mut self, source: IpAddr, was_closing: bool) {
        self.counts.incoming -= 1;
        if was_closing {
            self.closing -= 1;
        } else {
            self.uncount(source, 1);
        }
    }

    /// Subtracts closed connections of a source.
    fn uncount(&mut self, source: IpAddr, number: usize) {
        if let Some(count) = self.by_source.get_mut(&source) {
            *count -= number;
            if *count == 0 {
                self.by_source.remove(&source);
            }
        }
    }

    /// Makes sure that a source with the limit `limit` can have one more connection, by closing an idle one of it.
    /// Returns `false` if that is impossible.
    pub(super) fn make_room_of(&mut self, source: IpAddr, limit: usize) -> bool {
        self.by_source.get(&source).is_none_or(|count| *count < limit) || self.displace_of(source)
    }

    /// Changes the waiting connections of a source, and updates its rank.
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

    /// Adds a waiting connection, replacing its former entry if there is one. Returns the new entry's number; `None` if
    /// the former entry is gone, because the connection must close.
    pub(super) fn begin_wait(&mut self, source: IpAddr, former: Option<u64>, waiting: Waiting) -> Option<u64> {
        let number = self.next;
        self.next += 1;
        self.change(source, |entries| {
            if former.is_some_and(|former| entries.remove(&former).is_none()) {
                return None;
            }
            entries.insert(number, waiting);
            Some(number)
        })
    }

    /// Removes the entry of a waiting connection. Returns `false` if it is gone, because the connection must close.
    pub(super) fn end_wait(&mut self, source: IpAddr, number: u64) -> bool {
        self.change(source, |entries| entries.remove(&number).is_some())
    }

    /// Adds a kept connection that waits for a body, replacing its former entry, as [`begin_wait`](Table::begin_wait)
    /// does.
    pub(super) fn begin_kept_wait(&mut self, source: IpAddr, former: Option<u64>, waiting: Waiting) -> Option<u64> {
        if former.is_some_and(|former| !self.end_kept_wait(former)) {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.kept.insert(number, (source, waiting));
        Some(number)
    }

    /// Removes the entry of a kept connection. Returns `false` if it is gone, because the connection must close.
    pub(super) fn end_kept_wait(&mut self, number: u64) -> bool {
        self.kept.remove(&number).is_some()
    }

    /// Notifies the connections whose deadline has passed that they must close.
    pub(super) fn close_late(&mut self, now: Instant) {
        let has_late = |of: &BTreeMap<u64, Waiting>| of.values().any(|waiting| waiting.is_late(now));
        let all = self.waiting.iter();
        let sources: Vec<IpAddr> = all.filter(|(_, of)| has_late(of)).map(|(source, _)| *source).collect();
        for source in sources {
            let closed = self.change(source, |entries| {
                let before = entries.len();
                entries.retain(|_, waiting| !waiting.notify_late(now));
                before - entries.len()
            });
            self.count_timed_out(source, closed);
        }
        let mut closed = Vec::new();
        self.kept.retain(|_, (source, waiting)| {
            let is_late = waiting.notify_late(now);
            closed.extend(is_late.then_some(*source));
            !is_late
        });
        closed.into_iter().for_each(|source| self.count_timed_out(source, 1));
    }

    /// Counts connections of a source that must close for a timeout.
    fn count_timed_out(&mut self, source: IpAddr, number: usize) {
        self.closing += number;
        self.uncount(source, number);
        self.counts.timed_out += number as u64;
    }

    /// Notifies one waiting connection that it must close, and returns its source; `None` if no connection waits.
    pub(super) fn displace(&mut self) -> Option<IpAddr> {
        let (_, _, source) = *self.ranking.last()?;
        self.displace_of(source).then_some(source)
    }

    /// Notifies the longest waiting connection of a source that it must close. Returns `false` if none waits.
    fn displace_of(&mut self, source: IpAddr) -> bool {
        let Some((_, waiting)) = self.change(source, BTreeMap::pop_first) else { return false };
        waiting.close.notify_one();
        self.closing += 1;
        self.uncount(source, 1);
        self.counts.displaced += 1;
        true
    }

    /// Makes sure that one more connection can be opened, by closing an idle one. Returns `false` if that is
    /// impossible.
    pub(super) fn make_room(&mut self, limit: usize, advice: &str) -> bool {
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

    /// Enters a refused request of a source, and returns the delay of its response.
    pub(super) fn refuse_request(&mut self, source: IpAddr, now: Instant) -> Duration {
        let delay = self.refusals.enter(source, now);
        self.counts.delayed += u64::from(!delay.is_zero());
        delay
    }

    /// Counts a refused connection. Returns whether a warning about it may be logged now.
    pub(super) fn refuse(&mut self) -> bool {
        self.counts.refused += 1;
        is_due(&mut self.refused_warning)
    }
}

/// Returns whether a warning may be logged now, and records that it is.
fn is_due(last: &mut Option<Instant>) -> bool {
    let now = Instant::now();
    let due = last.is_none_or(|last| now.duration_since(last) >= WARNING_INTERVAL);
    if due {
        *last = Some(now);
    }
    due
}

/// Returns the source that an address counts for: an IPv4 address, or the network of an IPv6 address, of which a host
/// may have 2^64.
pub(crate) fn source(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        ip => ip,
    }
}
