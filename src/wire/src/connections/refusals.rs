//! The rate at which requests of a source are refused; beyond it the responses are delayed.
//!
//! A client that is refused usually tries again at once, and thousands of such clients keep a process busy with
//! accepting, reading and closing. Each refusal takes a turn in the queue of its source, so that a client waits the
//! longer for its response the more of them try. Requests that are not refused never wait. It does no I/O.

use std::net::IpAddr;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

/// Number of refusals of a source that are not delayed: a script may try every endpoint of a cluster with a wrong
/// password.
const IMMEDIATE: u32 = 200;
/// Time between two further refusals.
const INTERVAL: Duration = Duration::from_millis(10);
/// Longest delay of a refusal.
const LONGEST: Duration = Duration::from_secs(30);
/// Maximum number of remembered sources. Beyond it the sources with the shortest queues are removed.
const SOURCES_MAX: usize = 1 << 14;

/// Times at which the queues of the sources are empty.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    free_at: FxHashMap<IpAddr, Instant>,
}

impl Refusals {
    /// Enters a refusal of a source, and returns its delay.
    pub(super) fn enter(&mut self, source: IpAddr, now: Instant) -> Duration {
        if self.free_at.len() >= SOURCES_MAX && !self.free_at.contains_key(&source) {
            self.forget(now);
        }
        let free_at = self.free_at.entry(source).or_insert(now);
        *free_at = (*free_at).max(now) + INTERVAL;
        let queue = *free_at - now;
        let longest = LONGEST + IMMEDIATE * INTERVAL;
        if queue > longest {
            *free_at = now + longest;
        }
        queue.min(longest).saturating_sub(IMMEDIATE * INTERVAL)
    }

    /// Removes the half of the sources whose queues are the shortest.
    fn forget(&mut self, now: Instant) {
        self.free_at.retain(|_, free_at| *free_at > now);
        if self.free_at.len() < SOURCES_MAX {
            return;
        }
        let mut times: Vec<Instant> = self.free_at.values().copied().collect();
        let (_, median, _) = times.select_nth_unstable(SOURCES_MAX / 2);
        let median = *median;
        self.free_at.retain(|_, free_at| *free_at > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn the_wait_grows_with_the_queue_of_a_source_and_ends_with_it() {
        let (mut refusals, begin) = (Refusals::default(), Instant::now());
        assert!((0..IMMEDIATE).all(|_| refusals.enter(ip(1), begin).is_zero()));
        assert_eq!(refusals.enter(ip(1), begin), INTERVAL);
        assert_eq!(refusals.enter(ip(1), begin), 2 * INTERVAL);
        assert!(refusals.enter(ip(2), begin).is_zero(), "another source");
        let longest = (0..100_000).map(|_| refusals.enter(ip(1), begin)).max();
        assert_eq!(longest, Some(LONGEST));
        let later = begin + LONGEST + IMMEDIATE * INTERVAL;
        assert!((0..IMMEDIATE).all(|_| refusals.enter(ip(1), later).is_zero()), "the queue is empty again");
    }

    #[test]
    fn the_number_of_remembered_sources_is_limited() {
        let (mut refusals, begin) = (Refusals::default(), Instant::now());
        assert!((0..2 * IMMEDIATE).map(|_| refusals.enter(ip(0), begin)).is_sorted());
        for number in 1..4 * SOURCES_MAX as u32 {
            refusals.enter(ip(number), begin);
            assert!(refusals.free_at.len() <= SOURCES_MAX);
        }
        assert!(!refusals.enter(ip(0), begin).is_zero(), "the longest queue is remembered");
    }
}
