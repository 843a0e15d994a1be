//! Tasks on agents that do not answer, with the times at which the agents became silent.
//!
//! It does not decide what is done about them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Time;

/// Tasks on agents that do not answer, by task and by time.
#[derive(Clone, Debug)]
pub struct UnreachableTasks<Task> {
    since: BTreeMap<Task, Time>,
    order: BTreeSet<(Time, Task)>,
}

impl<Task> Default for UnreachableTasks<Task> {
    fn default() -> UnreachableTasks<Task> {
        UnreachableTasks { since: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<Task: Copy + Ord> UnreachableTasks<Task> {
    /// Records that the agent of a task does not answer. If this was recorded before, the earlier time is kept.
    pub fn add(&mut self, task: Task, now: Time) {
        if let std::collections::btree_map::Entry::Vacant(free) = self.since.entry(task) {
            free.insert(now);
            self.order.insert((now, task));
        }
    }

    /// Removes a task that has ended or whose agent answers again.
    pub fn remove(&mut self, task: Task) {
        if let Some(since) = self.since.remove(&task) {
            self.order.remove(&(since, task));
        }
    }

    /// Returns the tasks whose agents have not answered for `longest`, the earliest first.
    pub fn overdue(&self, longest: Duration, now: Time) -> Vec<Task> {
        self.order.iter().take_while(|(since, _)| *since + longest <= now).map(|(_, task)| *task).collect()
    }

    /// Returns the earliest time at which an agent became silent.
    pub fn first(&self) -> Option<Time> {
        self.order.first().map(|(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_silence_counts() {
        let (mut unreachable_tasks, at) = (UnreachableTasks::default(), Time::from_secs);
        unreachable_tasks.add((1, 0), at(10));
        unreachable_tasks.add((1, 0), at(20));
        unreachable_tasks.add((2, 7), at(15));
        assert_eq!(unreachable_tasks.first(), Some(at(10)));
        assert_eq!(unreachable_tasks.overdue(Duration::from_secs(60), at(75)), [(1, 0), (2, 7)]);
        assert_eq!(unreachable_tasks.overdue(Duration::from_secs(60), at(74)), [(1, 0)]);
        unreachable_tasks.remove((1, 0));
        unreachable_tasks.remove((1, 0));
        assert_eq!(unreachable_tasks.first(), Some(at(15)));
    }
}
