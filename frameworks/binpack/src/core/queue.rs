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
    /// A task became ready since this was asked last.
    fresh: bool,
}

impl Queue {
    /// A task waits, and not before this instant.
    pub(super) fn add(&mut self, key: JobKey, number: u32, not_before: Time, now: Time) {
        if not_before <= now {
            self.fresh |= self.ready.entry(key).or_default().insert(number);
        } else {
            self.delayed.insert((not_before, key, number));
        }
    }

    /// A task does not wait any more.
    pub(super) fn remove(&mut self, key: JobKey, number: u32) {
        if let Some(numbers) = self.ready.get_mut(&key) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.ready.remove(&key);
            }
        }
        self.delayed.retain(|(_, k, n)| (*k, *n) != (key, number));
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
        self.ready.remove(&key);
        self.delayed.retain(|(_, k, _)| *k != key);
    }

    /// Lets the tasks go whose instant has come.
    pub(super) fn mature(&mut self, now: Time) {
        while let Some(first) = self.delayed.first().copied().filter(|(at, _, _)| *at <= now) {
            self.delayed.remove(&first);
            self.add(first.1, first.2, now, now);
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

    /// Whether a task became ready since this was asked last.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// What waits counts as if it had just become ready.
    pub(super) fn refresh(&mut self) {
        self.fresh |= !self.ready.is_empty();
    }

    /// Whether a task became ready since [`take_fresh`](Queue::take_fresh).
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }
}
