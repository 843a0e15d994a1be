//! Read access to the state of a world, for checkers.

use std::sync::Arc;

use agent::Tree;
use base::Time;

use super::{Observer, World};

/// An executor whose process lives.
#[derive(Debug)]
pub(crate) struct Living<'a> {
    pub framework: &'a str,
    pub id: &'a str,
    /// Its tasks that have not ended.
    pub tasks: Vec<&'a str>,
}

impl<O: Observer> World<O> {
    /// How many batches of inputs masters have handled: as long as it is the same, no master has changed.
    pub(crate) fn batches(&self) -> u64 {
        self.batches
    }

    /// An agent's view of itself; none if its process does not run.
    pub(crate) fn agent_view(&mut self, agent: usize) -> Option<Arc<agent::Snapshot>> {
        self.agents[agent].core().map(agent::Agent::snapshot)
    }

    /// The files of an agent's disk.
    pub(crate) fn agent_disk(&self, agent: usize) -> &Tree {
        &self.agents[agent].keeper.checkpoints.disk().tree
    }

    /// What is not well yet about an agent's disk.
    pub(crate) fn disk_trouble(&self, agent: usize) -> Option<String> {
        let host = &self.agents[agent];
        let checkpoints = &host.keeper.checkpoints;
        let trouble = checkpoints.trouble().map(|trouble| format!("the disk was not well: {}", trouble.why));
        let aside = checkpoints.aside().next().map(|change| format!("this is not in place: {change:?}"));
        let reported = host.keeper.is_reported.then(|| "the agent takes its disk for one that refuses".to_owned());
        trouble.or(aside).or(reported)
    }

    /// The persistent volumes on an agent's disk.
    pub(crate) fn agent_volumes(&self, agent: usize) -> impl Iterator<Item = &str> {
        self.agents[agent].volumes.keys().map(String::as_str)
    }

    /// Whether a scheduler's process runs or has ended its work.
    pub(crate) fn scheduler_lives(&self, who: usize) -> bool {
        self.schedulers[who].runs() || self.schedulers[who].ended
    }

    /// The executors whose processes live.
    pub(crate) fn living(&self) -> impl Iterator<Item = Living<'_>> {
        self.executors.iter().map(|(_, executor)| executor.view())
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.queue.next_at()
    }
}
