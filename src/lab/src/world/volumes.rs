//! Persistent volumes on an agent's disk: directories that are created and destroyed as its core requests, in order.
//!
//! An operation that the disk refuses is repeated until it succeeds, as in the daemon.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::time::Duration;

use agent::{Input, RemovedVolume, VolumeLink};

use super::event::Event;
use super::{Note, Observer, World};

/// A change of volumes: those that are destroyed, and those that are created.
#[derive(Clone, Debug)]
pub(super) struct VolumeChange {
    pub change: u64,
    pub gone: Vec<RemovedVolume>,
    pub new: Vec<String>,
}

impl<O: Observer> World<O> {
    /// Queues a change of an agent's volumes, and performs it if nothing else waits.
    pub(super) fn change_volumes(&mut self, agent: u32, change: VolumeChange) {
        let host = &mut self.agents[agent as usize];
        host.volume_changes.push_back(change);
        if host.volume_changes.len() == 1 {
            let generation = host.generation;
            self.agent_volumes_change(agent, generation);
        }
    }

    /// Performs the queued changes of an agent's volumes, or repeats them later if the disk refuses.
    pub(super) fn agent_volumes_change(&mut self, agent: u32, generation: u32) {
        if self.agents[agent as usize].generation != generation {
            return;
        }
        let refuses = self.agent_disk_refuses(agent).is_some();
        let host = &mut self.agents[agent as usize];
        if refuses {
            let wait = host.volume_waits.next_wait();
            return self.queue.push(self.now + wait, Event::AgentVolumes { agent, generation });
        }
        host.volume_waits.reset();
        for change in std::mem::take(&mut host.volume_changes) {
            self.make_volumes(agent, change);
        }
    }

    /// Returns the reason why a container cannot see its volumes, if the creation of one is still queued.
    pub(super) fn missing_volume(&self, agent: u32, links: &[VolumeLink]) -> Option<String> {
        let waiting = &self.agents[agent as usize].volume_changes;
        let waits = |link: &&VolumeLink| waiting.iter().any(|change| change.new.contains(&link.directory));
        links.iter().find(waits).map(|link| format!("The volume's directory '{}' is missing", link.directory))
    }

    fn make_volumes(&mut self, agent: u32, VolumeChange { change, gone, mut new }: VolumeChange) {
        self.corrupt_directories(agent, &gone, &mut new);
        let volumes = &mut self.agents[agent as usize].volumes;
        for directory in gone.iter().map(|volume| volume.path.as_str()) {
            if volumes.remove(directory).is_some() {
                self.observer.noted(&Note::VolumeDestroyed { agent, directory }, self.now);
            }
        }
        for directory in new {
            if let Entry::Vacant(place) = volumes.entry(directory) {
                self.observer.noted(&Note::VolumeCreated { agent, directory: place.key() }, self.now);
                place.insert(BTreeSet::new());
            }
        }
        self.agent_input_later(agent, Duration::ZERO, Input::VolumesChanged { change });
    }
}
