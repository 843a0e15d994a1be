//! Tasks on agents that do not answer, and since when.
//!
//! What is done about them is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Time;

/// By task, and by the instant from which its agent was silent.
#[derive(Clone, Debug)]
pub struct Silent<Task> {
    since: BTreeMap<Task, Time>,
    order: BTreeSet<(Time, Task)>,
}

impl<Task> Default for Silent<Task> {
    fn default() -> Silent<Task> {
        Silent { since: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<Task: Copy + Ord> Silent<Task> {
    /// The agent of a task is silent; if it was so before, that counts.
    pub fn add(&mut self, task: Task, now: Time) {
        if let std::collections::btree_map::Entry::Vacant(free) = self.since.entry(task) {
            free.insert(now);
            self.order.insert((now, task));
        }
    }

    /// The agent answers again, or the task is gone.
    pub fn remove(&mut self, task: Task) {
        if let Some(since) = self.since.remove(&task) {
            self.order.remove(&(since, task));
        }
    }

    /// The tasks whose agents were silent for so long, those first that were so first.
    pub fn overdue(&self, longest: Duration, now: Time) -> Vec<Task> {
        self.order.iter().take_while(|(since, _)| *since + longest <= now).map(|(_, task)| *task).collect()
    }

    /// Since when the first is.
    pub fn first(&self) -> Option<Time> {
        self.order.first().map(|(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_silence_counts() {
        let (mut silent, at) = (Silent::default(), Time::from_secs);
        silent.add((1, 0), at(10));
        silent.add((1, 0), at(20));
        silent.add((2, 7), at(15));
        assert_eq!(silent.first(), Some(at(10)));
        assert_eq!(silent.overdue(Duration::from_secs(60), at(75)), [(1, 0), (2, 7)]);
        assert_eq!(silent.overdue(Duration::from_secs(60), at(74)), [(1, 0)]);
        silent.remove((1, 0));
        silent.remove((1, 0));
        assert_eq!(silent.first(), Some(at(15)));
    }
}
