//! A queue of events, sorted by time and, at equal times, in the order in which they were added.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use base::Time;
use slab::Slab;

/// Nanoseconds within which an event may be added to [`Queue::soon`].
const SOON: u64 = 5_000_000;
/// Length of the parts of [`Queue::far`] in nanoseconds, as a power of two: an eighth of a second.
const PART: u32 = 27;

/// A queue of events, earliest first.
#[derive(Debug)]
pub struct Queue<E> {
    /// Events in order: nanoseconds, sequence number, event. Most events happen soon, and not before earlier ones,
    /// because they take the same way through the network: they cost no more than a push at the end.
    soon: VecDeque<(u64, u64, E)>,
    /// Other events before `horizon`: nanoseconds, sequence number, index in `events`. The entries are small, because
    /// the heap moves them.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    events: Slab<E>,
    /// Later events, by parts of time and unsorted. Hundreds of thousands may wait there, and in a heap each would be
    /// moved past a dozen others that are in no cache.
    far: BTreeMap<u64, Vec<(u64, u64, E)>>,
    /// Nanoseconds from which on events are in `far`.
    horizon: u64,
    sequence: u64,
    /// Nanoseconds of the last event that was removed.
    now: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue {
            soon: VecDeque::new(),
            heap: BinaryHeap::new(),
            events: Slab::new(),
            far: BTreeMap::new(),
            horizon: 0,
            sequence: 0,
            now: 0,
        }
    }
}

fn nanos(at: Time) -> u64 {
    u64::try_from(at.since_epoch().as_nanos()).unwrap_or(u64::MAX)
}

fn time(nanos: u64) -> Time {
    Time::from_epoch(Duration::from_nanos(nanos))
}

impl<E> Queue<E> {
    /// Adds an event that happens at a time.
    pub fn push(&mut self, at: Time, event: E) {
        let (at, sequence) = (nanos(at), self.sequence);
        self.sequence += 1;
        let last = self.soon.back().map_or(self.now, |(last, ..)| *last);
        if (last..=self.now.saturating_add(SOON)).contains(&at) {
            self.soon.push_back((at, sequence, event));
        } else if at < self.horizon {
            self.come_near(at, sequence, event);
        } else {
            self.far.entry(at >> PART).or_default().push((at, sequence, event));
        }
        self.look_ahead();
    }

    fn come_near(&mut self, at: u64, sequence: u64, event: E) {
        let place = self.events.insert(event);
        // There is not enough memory for 2^32 events.
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        self.heap.push(Reverse((at, sequence, place)));
    }

    /// Moves events from `far` to the heap, so that the next event is not a far one.
    fn look_ahead(&mut self) {
        while self.head().is_none_or(|(at, _)| at >= self.horizon) {
            let Some((part, events)) = self.far.pop_first() else { return };
            // The end of the last part of time exceeds `u64`.
            self.horizon = (part + 1).saturating_mul(1 << PART);
            events.into_iter().for_each(|(at, sequence, event)| self.come_near(at, sequence, event));
        }
    }

    /// Returns the time of the next event.
    pub fn next_at(&self) -> Option<Time> {
        let (at, _) = self.head()?;
        Some(time(at))
    }

    /// Returns the time of the next event, and whether it is in `soon`.
    fn head(&self) -> Option<(u64, bool)> {
        match (self.soon.front(), self.heap.peek()) {
            (None, None) => None,
            (Some((at, ..)), None) => Some((*at, true)),
            (None, Some(Reverse((at, ..)))) => Some((*at, false)),
            (Some((soon, one, _)), Some(Reverse((later, two, _)))) => {
                let first = (soon, one) < (later, two);
                Some((if first { *soon } else { *later }, first))
            }
        }
    }

    /// Removes and returns the next event.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.pop_until(Time::NEVER)
    }

    /// Removes and returns the next event if it happens until `end`.
    pub fn pop_until(&mut self, end: Time) -> Option<(Time, E)> {
        let (at, soon) = self.head()?;
        if at > nanos(end) {
            return None;
        }
        self.now = at;
        let event = if soon {
            self.soon.pop_front()?.2
        } else {
            let Reverse((_, _, place)) = self.heap.pop()?;
            self.events.remove(place as usize)
        };
        self.look_ahead();
        Some((time(at), event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut queue = Queue::default();
        for (at, name) in [(2, "c"), (1, "a"), (2, "d"), (1, "b")] {
            queue.push(Time::from_secs(at), name);
        }
        assert_eq!(queue.next_at(), Some(Time::from_secs(1)));
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, name)| name).collect();
        assert_eq!(order, "abcd");
    }

    #[test]
    fn time_has_an_end() {
        let mut queue = Queue::default();
        for (n, at) in [Time::NEVER, Time::from_secs(1), Time::NEVER].into_iter().enumerate() {
            queue.push(at, n);
        }
        assert_eq!(queue.pop_until(Time::from_secs(2)), Some((Time::from_secs(1), 1)));
        queue.push(Time::NEVER, 3);
        let rest: Vec<usize> = std::iter::from_fn(|| queue.pop()).map(|(_, n)| n).collect();
        assert_eq!(rest, [0, 2, 3]);
    }

    #[test]
    fn what_happens_soon_and_what_happens_later_come_in_one_order() {
        // Events of each kind: soon and in order, soon but before another one, later, in another part of time, and at
        // equal times.
        let mut queue = Queue::default();
        let mut wanted = Vec::new();
        let (mut now, mut state) = (Time::from_secs(1), 7_u64);
        for n in 0..5_000_u32 {
            let draw = base::split_mix(&mut state);
            let steps = (draw >> 33) % 8;
            let delay = Duration::from_micros(match draw >> 61 {
                0 => 2_500 * steps,
                1 => 70_000 * steps,
                _ => 250 * (steps % 2),
            });
            queue.push(now + delay, n);
            wanted.push((now + delay, n));
            if n % 3 == 0 {
                let (at, event) = queue.pop().unwrap();
                let place = wanted.iter().enumerate().min_by_key(|(_, entry)| **entry).unwrap().0;
                assert_eq!(wanted.remove(place), (at, event));
                assert!(at >= now);
                now = at;
            }
        }
        wanted.sort_unstable();
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), wanted);
    }
}
