//! Writes of an agent's checkpoints to its disk: refused writes are repeated, and the agent is notified.
//!
//! `store::Checkpoints` decides where something is written and `store::DiskHealth` what the agent learns, as in the
//! daemon. This module decides when.

use std::borrow::Cow;
use std::time::Duration;

use agent::{Input, Tree};
use base::Time;
use store::{Change, Checkpoints, DiskFailure, DiskHealth, Waits};

use super::disk::{Disk, DiskError, shown};
use super::event::Event;
use super::{Note, Observer, World};

/// An agent's checkpoints, and what its process knows of their disk.
pub(super) struct CheckpointStore {
    pub checkpoints: Checkpoints<Disk>,
    health: DiskHealth,
    /// Changes that the disk has refused; they are repeated.
    refused: Option<Vec<Change>>,
    waits: Waits,
    /// Whether an event is planned that checks the disk.
    check_is_planned: bool,
    check_waits: Waits,
    /// Whether the core has handled the report that checkpoints fail.
    pub is_reported: bool,
}

impl CheckpointStore {
    pub fn new() -> CheckpointStore {
        CheckpointStore {
            checkpoints: Checkpoints::new(Disk::default()),
            health: DiskHealth::default(),
            refused: None,
            waits: Waits::default(),
            check_is_planned: false,
            check_waits: Waits::default(),
            is_reported: false,
        }
    }

    pub fn disk(&mut self) -> &mut Disk {
        self.checkpoints.disk_mut()
    }

    /// Returns the checkpoints that a starting process reads: those in place, with the changes that are in the journal
    /// only.
    pub fn tree(&self) -> Cow<'_, Tree> {
        let tree = &self.checkpoints.disk().tree;
        match self.checkpoints.in_journal().next() {
            None => Cow::Borrowed(tree),
            Some(_) => Cow::Owned(shown(tree.clone(), self.checkpoints.in_journal())),
        }
    }

    /// Ends the process. Of the entries being written, the first `durable` modulo their number plus one are in place,
    /// and a half of the next one if it appends. A record of the journal exists as a whole or not at all.
    pub fn stop(&mut self, writing: Vec<Change>, durable: u32, now: Time) {
        let refused = self.refused.take().unwrap_or_default();
        let writing: Vec<Change> = refused.into_iter().chain(writing).collect();
        let refuses = self.disk().refuses(now).is_some();
        let in_journal: Vec<Change> = self.checkpoints.in_journal().cloned().collect();
        if !in_journal.is_empty() && !refuses {
            // The process may have been writing changes from the journal to their place.
            let whole = durable as usize % (in_journal.len() + 1);
            self.disk().tear(in_journal, whole);
        } else if refuses || !in_journal.is_empty() {
            if durable % 2 == 1 && !writing.is_empty() {
                let _ = self.checkpoints.write(&writing);
            }
        } else {
            let whole = durable as usize % (writing.len() + 1);
            self.disk().tear(writing, whole);
        }
        (self.health, self.waits, self.check_waits) = (DiskHealth::default(), Waits::default(), Waits::default());
        (self.check_is_planned, self.is_reported) = (false, false);
    }
}

impl<O: Observer> World<O> {
    /// Completes a write of an agent's batches: makes them durable and carries out their outputs. If the disk refuses,
    /// the write is repeated later.
    pub(super) fn agent_written(&mut self, agent: u32, generation: u32) {
        let host = &mut self.agents[agent as usize];
        if host.generation != generation {
            return;
        }
        if self.model.restarts && !self.write_checkpoints(agent) {
            return;
        }
        for batch in self.agents[agent as usize].writer.done() {
            for output in batch.outputs {
                self.agent_output(agent, output);
            }
            if self.agents[agent as usize].generation != generation {
                return;
            }
        }
        self.start_agent_write(agent);
    }

    /// Writes the entries of an agent's batches in progress. Returns `false` if the disk refuses; then the write is
    /// repeated later.
    fn write_checkpoints(&mut self, agent: u32) -> bool {
        let now = self.now;
        let host = &mut self.agents[agent as usize];
        let checkpoint_store = &mut host.checkpoint_store;
        checkpoint_store.disk().refuses(now);
        let changes = match checkpoint_store.refused.take() {
            Some(changes) => changes,
            None => super::defect::defective_checkpoints(self.defect, host.writer.take_entries()),
        };
        if changes.is_empty() {
            return true;
        }
        if self.defect == Some(super::Defect::IgnoredRefusals) && checkpoint_store.disk().refuses(now).is_some() {
            return true;
        }
        let outcome = checkpoint_store.checkpoints.write(&changes);
        let disk_failure = checkpoint_store.checkpoints.disk_failure().cloned();
        let wait = match &outcome {
            Ok(_) => None,
            Err(_) => {
                checkpoint_store.refused = Some(changes);
                Some(checkpoint_store.waits.next_wait())
            }
        };
        if wait.is_none() {
            checkpoint_store.waits.reset();
        }
        let generation = host.generation;
        if let Some(disk_failure) = disk_failure {
            self.agent_disk_fails(agent, &disk_failure);
        }
        if let Some(wait) = wait {
            self.observer.noted(&Note::WriteRefused { agent }, now);
            self.queue.push(now + wait, Event::AgentWritten { agent, generation });
            return false;
        }
        true
    }

    /// Handles a refused write: starts the background work, and notifies the core.
    fn agent_disk_fails(&mut self, agent: u32, disk_failure: &DiskFailure) {
        let host = &mut self.agents[agent as usize];
        let (generation, is_news) = (host.generation, host.checkpoint_store.health.record_failure(disk_failure));
        if !std::mem::replace(&mut host.checkpoint_store.check_is_planned, true) {
            self.queue.push(self.now, Event::AgentDiskCheck { agent, generation });
        }
        if is_news {
            let why = disk_failure.why.clone();
            self.observer.noted(&Note::CheckpointsFail { agent, why: &why }, self.now);
            self.agent_input(agent, Input::CheckpointsFailing { why, lacks_space: disk_failure.lacks_space });
        }
    }

    /// Tends an agent's disk, repeatedly until it works.
    pub(super) fn check_agent_disk(&mut self, agent: u32, generation: u32) {
        let now = self.now;
        let host = &mut self.agents[agent as usize];
        if host.generation != generation {
            return;
        }
        let checkpoint_store = &mut host.checkpoint_store;
        checkpoint_store.disk().refuses(now);
        match checkpoint_store.checkpoints.complete_pending() {
            Err(error) => {
                let wait = checkpoint_store.check_waits.next_wait();
                checkpoint_store.check_is_planned = true;
                self.queue.push(now + wait, Event::AgentDiskCheck { agent, generation });
                self.agent_disk_fails(agent, &error.disk_failure());
            }
            Ok(()) => {
                checkpoint_store.check_is_planned = false;
                checkpoint_store.check_waits.reset();
                if checkpoint_store.health.record_success() {
                    self.observer.noted(&Note::CheckpointsWork { agent }, now);
                    self.agent_input(agent, Input::CheckpointsWork);
                }
            }
        }
    }

    /// Returns why an agent's disk refuses to create files, if it does.
    pub(super) fn agent_disk_refuses(&mut self, agent: u32) -> Option<DiskError> {
        let now = self.now;
        self.agents[agent as usize].checkpoint_store.disk().refuses(now)
    }

    /// Makes an agent's disk refuse writes, for at most `span`.
    pub fn refuse_checkpoints(&mut self, agent: usize, refusal: super::Refusal, span: Duration) {
        let until = self.now + span;
        self.agents[agent].checkpoint_store.disk().refuse(refusal, until);
    }
}
