//! The queue of what will happen: by time, and in the order of scheduling where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use base::Time;
use slab::Slab;

/// What will happen, earliest first.
#[derive(Debug)]
pub struct Queue<E> {
    /// Nanoseconds, sequence number, place in `events`: small, because the heap moves them about.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    events: Slab<E>,
    sequence: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), events: Slab::new(), sequence: 0 }
    }
}

fn nanos(at: Time) -> u64 {
    u64::try_from(at.since_epoch().as_nanos()).unwrap_or(u64::MAX)
}

impl<E> Queue<E> {
    /// Puts an event in.
    pub fn push(&mut self, at: Time, event: E) {
        let place = self.events.insert(event);
        // Four thousand million events never wait at once: the memory would end before.
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        self.heap.push(Reverse((nanos(at), self.sequence, place)));
        self.sequence += 1;
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| Time::from_epoch(Duration::from_nanos(*at)))
    }

    /// Takes the next event out.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let Reverse((at, _, place)) = self.heap.pop()?;
        Some((Time::from_epoch(Duration::from_nanos(at)), self.events.remove(place as usize)))
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
}
