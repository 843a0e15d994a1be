//! The queue of waiting tasks: those that are ready, and those that must wait until a time first.
//!
//! A gang is in the queue once, as its task 0.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use base::Time;

/// Key of a job in the queue: jobs are ordered by priority, then by submission.
pub(super) type JobKey = (Reverse<i32>, u64);

/// Waiting tasks, by job and number.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    ready: BTreeMap<JobKey, BTreeSet<u32>>,
    delayed: BTreeSet<(Time, JobKey, u32)>,
    /// Times in `delayed`, by task.
    launch_times: BTreeMap<(JobKey, u32), Time>,
    /// Whether a task became ready since the last call of `take_fresh`.
    fresh: bool,
    /// Whether the ready tasks have changed since the last call of `take_changed`.
    changed: bool,
}

impl Queue {
    /// Adds a task that may be placed at `not_before` at the earliest.
    pub(super) fn add(&mut self, key: JobKey, number: u32, not_before: Time, now: Time) {
        self.cancel_delay(key, number);
        if not_before <= now {
            let added = self.ready.entry(key).or_default().insert(number);
            self.fresh |= added;
            self.changed |= added;
        } else {
            self.delayed.insert((not_before, key, number));
            self.launch_times.insert((key, number), not_before);
        }
    }

    /// Removes a task that no longer waits.
    pub(super) fn remove(&mut self, key: JobKey, number: u32) {
        self.changed = true;
        self.launched(key, number);
        self.cancel_delay(key, number);
    }

    fn cancel_delay(&mut self, key: JobKey, number: u32) {
        if let Some(at) = self.launch_times.remove(&(key, number)) {
            self.delayed.remove(&(at, key, number));
        }
    }

    /// Removes a ready task that was launched.
    pub(super) fn launched(&mut self, key: JobKey, number: u32) {
        if let Some(numbers) = self.ready.get_mut(&key) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.ready.remove(&key);
            }
        }
    }

    /// Removes all tasks of a job.
    pub(super) fn remove_job(&mut self, key: JobKey) {
        self.changed = true;
        self.ready.remove(&key);
        let numbers: Vec<u32> = self.launch_times.range((key, 0)..=(key, u32::MAX)).map(|((_, n), _)| *n).collect();
        for number in numbers {
            self.cancel_delay(key, number);
        }
    }

    /// Makes the delayed tasks ready whose time has come.
    pub(super) fn queue_due_tasks(&mut self, now: Time) {
        while let Some((_, key, number)) = self.delayed.first().copied().filter(|(at, _, _)| *at <= now) {
            self.cancel_delay(key, number);
            self.add(key, number, now, now);
        }
    }

    /// Returns whether no task is ready.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Returns the jobs with ready tasks, in the order of the queue.
    pub(super) fn jobs(&self) -> Vec<JobKey> {
        self.ready.keys().copied().collect()
    }

    /// Returns the ready tasks of a job.
    pub(super) fn of(&self, key: JobKey) -> impl Iterator<Item = u32> + '_ {
        self.ready.get(&key).into_iter().flatten().copied()
    }

    /// Returns the next time at which a delayed task becomes ready.
    pub(super) fn next(&self) -> Option<Time> {
        self.delayed.first().map(|(at, _, _)| *at)
    }

    /// Returns whether the ready tasks have changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns whether a task became ready since the last call.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// Marks the ready tasks as if they had just become ready.
    pub(super) fn refresh(&mut self) {
        self.fresh |= !self.ready.is_empty();
        self.changed |= !self.ready.is_empty();
    }

    /// Returns whether a task became ready since [`take_fresh`](Queue::take_fresh).
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
        queue.queue_due_tasks(at(8));
        assert_eq!((queue.jobs(), queue.next()), (vec![second], None));
        assert!(queue.take_changed() && !queue.take_changed() && queue.take_fresh());
    }
}
