//! The timers of a core.
//!
//! They read no clock: [`Timers::pop_due`] receives the time.

use std::collections::BTreeMap;

use base::Time;

/// The id of a timer that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey(Time, u64);

/// The timers that are set, earliest first; timers for the same instant are in the order in which they were set.
#[derive(Clone, Debug)]
pub struct Timers<T> {
    queue: BTreeMap<TimerKey, T>,
    set: u64,
}

impl TimerKey {
    /// Returns the instant for which the timer was set.
    pub fn at(self) -> Time {
        self.0
    }
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Timers { queue: BTreeMap::new(), set: 0 }
    }
}

impl<T> Timers<T> {
    /// Sets a timer for the instant `at`.
    pub fn set(&mut self, at: Time, timer: T) -> TimerKey {
        self.set += 1;
        let key = TimerKey(at, self.set);
        self.queue.insert(key, timer);
        key
    }

    /// Removes a timer. Does nothing for `None`, or if the timer was removed or due before.
    pub fn cancel(&mut self, key: impl Into<Option<TimerKey>>) {
        if let Some(key) = key.into() {
            self.queue.remove(&key);
        }
    }

    /// Removes and returns the first timer that is due.
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        let entry = self.queue.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// Returns the instant of the earliest timer; `None` if no timer is set.
    pub fn next(&self) -> Option<Time> {
        self.queue.first_key_value().map(|(key, _)| key.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_due_in_order_unless_cancelled() {
        let mut timers = Timers::default();
        let late = timers.set(Time::from_secs(9), "late");
        timers.set(Time::from_secs(2), "first");
        timers.set(Time::from_secs(2), "second");
        assert_eq!(timers.pop_due(Time::from_secs(1)), None);
        assert_eq!(timers.pop_due(Time::from_secs(2)), Some("first"));
        assert_eq!(timers.pop_due(Time::from_secs(2)), Some("second"));
        assert_eq!(timers.next(), Some(Time::from_secs(9)));
        timers.cancel(late);
        timers.cancel(None);
        assert_eq!(timers.next(), None);
    }
}
