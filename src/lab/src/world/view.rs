//! Read access to the state of a world, for checkers.

use std::sync::Arc;

use agent::Tree;
use base::Time;

use super::{Observer, World};

/// A running executor.
#[derive(Debug)]
pub(crate) struct RunningExecutor<'a> {
    pub framework: &'a str,
    pub id: &'a str,
    /// Tasks of the executor that have not ended.
    pub tasks: Vec<&'a str>,
}

impl<O: Observer> World<O> {
    /// Returns the number of batches that masters have handled. While it is the same, no master's state has changed.
    pub(crate) fn batches(&self) -> u64 {
        self.batches
    }

    /// Returns an agent's snapshot of itself; `None` if its process does not run.
    pub(crate) fn agent_view(&mut self, agent: usize) -> Option<Arc<agent::Snapshot>> {
        self.agents[agent].core().map(agent::Agent::snapshot)
    }

    /// Returns the files on an agent's disk.
    pub(crate) fn agent_disk(&self, agent: usize) -> &Tree {
        &self.agents[agent].checkpoint_store.checkpoints.disk().tree
    }

    /// Returns why an agent's disk does not work normally yet; `None` if it does.
    pub(crate) fn disk_trouble(&self, agent: usize) -> Option<String> {
        let host = &self.agents[agent];
        let checkpoints = &host.checkpoint_store.checkpoints;
        let disk_failure =
            checkpoints.disk_failure().map(|disk_failure| format!("the disk failed: {}", disk_failure.why));
        let in_journal =
            checkpoints.in_journal().next().map(|change| format!("this change is not applied: {change:?}"));
        let reported = host.checkpoint_store.is_reported.then(|| "the agent reports its disk as failing".to_owned());
        disk_failure.or(in_journal).or(reported)
    }

    /// Returns the directories of persistent volumes on an agent's disk.
    pub(crate) fn agent_volumes(&self, agent: usize) -> impl Iterator<Item = &str> {
        self.agents[agent].volumes.keys().map(String::as_str)
    }

    /// Returns whether a scheduler's process runs or has ended its work.
    pub(crate) fn scheduler_lives(&self, scheduler: usize) -> bool {
        self.schedulers[scheduler].runs() || self.schedulers[scheduler].ended
    }

    /// Returns the running executors.
    pub(crate) fn running_executors(&self) -> impl Iterator<Item = RunningExecutor<'_>> {
        self.executors.iter().map(|(_, executor)| executor.view())
    }

    /// Returns the time of the next event.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.queue.next_at()
    }
}
