//! The tasks that wait: those that may go at once, and those that must wait for an instant first.
//!
//! A gang stands here once, as its task 0.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use base::Time;

/// The order of jobs: by priority, then by submission.
pub(super) type JobKey = (Reverse<i32>, u64);

/// Waiting tasks, by job and number.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    ready: BTreeMap<JobKey, BTreeSet<u32>>,
    delayed: BTreeSet<(Time, JobKey, u32)>,
    /// The instants in `delayed`, by task.
    instants: BTreeMap<(JobKey, u32), Time>,
    /// A task became ready since the last call.
    fresh: bool,
    /// What is ready has changed since the last call.
    changed: bool,
}

impl Queue {
    /// A task waits, and not before this instant.
    pub(super) fn add(&mut self, key: JobKey, number: u32, not_before: Time, now: Time) {
        self.delay_no_more(key, number);
        if not_before <= now {
            let added = self.ready.entry(key).or_default().insert(number);
            self.fresh |= added;
            self.changed |= added;
        } else {
            self.delayed.insert((not_before, key, number));
            self.instants.insert((key, number), not_before);
        }
    }

    /// A task does not wait any more.
    pub(super) fn remove(&mut self, key: JobKey, number: u32) {
        self.changed = true;
        self.launched(key, number);
        self.delay_no_more(key, number);
    }

    fn delay_no_more(&mut self, key: JobKey, number: u32) {
        if let Some(at) = self.instants.remove(&(key, number)) {
            self.delayed.remove(&(at, key, number));
        }
    }

    /// A task that was ready was launched.
    pub(super) fn launched(&mut self, key: JobKey, number: u32) {
        if let Some(numbers) = self.ready.get_mut(&key) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.ready.remove(&key);
            }
        }
    }

    /// No task of a job waits any more.
    pub(super) fn remove_job(&mut self, key: JobKey) {
        self.changed = true;
        self.ready.remove(&key);
        let numbers: Vec<u32> = self.instants.range((key, 0)..=(key, u32::MAX)).map(|((_, n), _)| *n).collect();
        for number in numbers {
            self.delay_no_more(key, number);
        }
    }

    /// Releases the tasks that are due.
    pub(super) fn mature(&mut self, now: Time) {
        while let Some((_, key, number)) = self.delayed.first().copied().filter(|(at, _, _)| *at <= now) {
            self.delay_no_more(key, number);
            self.add(key, number, now, now);
        }
    }

    /// Whether any task may go now.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// The jobs with tasks that may go now, in their order.
    pub(super) fn jobs(&self) -> Vec<JobKey> {
        self.ready.keys().copied().collect()
    }

    /// The tasks of a job that may go now.
    pub(super) fn of(&self, key: JobKey) -> impl Iterator<Item = u32> + '_ {
        self.ready.get(&key).into_iter().flatten().copied()
    }

    /// The next instant at which a task may go.
    pub(super) fn next(&self) -> Option<Time> {
        self.delayed.first().map(|(at, _, _)| *at)
    }

    /// Whether what is ready has changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether a task became ready since the last call.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// What waits counts as if it had just become ready.
    pub(super) fn refresh(&mut self) {
        self.fresh |= !self.ready.is_empty();
        self.changed |= !self.ready.is_empty();
    }

    /// Whether a task became ready since [`take_fresh`](Queue::take_fresh).
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_waits_once_and_is_found_again() {
        let (mut queue, at) = (Queue::default(), Time::from_secs);
        let (first, second) = ((Reverse(0), 1), (Reverse(0), 2));
        queue.add(first, 0, at(5), at(1));
        queue.add(first, 0, at(9), at(1));
        queue.add(first, 1, at(7), at(1));
        queue.add(second, 0, at(8), at(1));
        assert_eq!(queue.next(), Some(at(7)), "only its last instant counts");
        queue.remove_job(first);
        assert_eq!(queue.next(), Some(at(8)));
        queue.add(first, 2, at(6), at(1));
        queue.remove(first, 2);
        queue.mature(at(8));
        assert_eq!((queue.jobs(), queue.next()), (vec![second], None));
        assert!(queue.take_changed() && !queue.take_changed() && queue.take_fresh());
    }
}
