//! A master that no longer leads and does not know it: disconnected from ZooKeeper, it serves the processes that have
//! not detected the next leader, until it detects that itself.
//!
//! While it handles an event, it takes the place of the leading master, with its own connections. It writes nothing to
//! the registry, so outputs that depend on a write never happen.

use std::time::Duration;

use base::Time;

use super::event::Event;
use super::master::MasterHost;
use super::network::OneWayConnection;
use super::{Note, Observer, World};

/// A deposed master, with its ends of all connections.
pub(super) struct DeposedMaster {
    pub host: MasterHost,
    /// Connections to each agent, and from it.
    agents: Vec<(OneWayConnection, OneWayConnection)>,
    /// Connections to each scheduler, and from it.
    schedulers: Vec<(OneWayConnection, OneWayConnection)>,
}

impl DeposedMaster {
    /// Returns whether a message that was sent to an agent in this epoch of the connection still arrives.
    pub fn reaches(&self, agent: u32, epoch: u32) -> bool {
        self.agents[agent as usize].0.carries(epoch)
    }
}

impl<O: Observer> World<O> {
    /// Deposes the leading master: another one is elected on another host with the same registry and leads after
    /// `downtime`, and the former one detects that after `lasts`.
    ///
    /// Agents and schedulers detect the new leader within `lasts`. Of the pending writes, the first `durable` batches
    /// modulo their number plus one are durable; the outputs that follow them are still sent if `arrives`.
    pub fn depose_master(&mut self, lasts: Duration, downtime: Duration, durable: u32, arrives: bool) {
        if self.master.core.is_none() || self.deposed.is_some() {
            return self.fail_master_over(downtime, durable, arrives);
        }
        let generation = self.master.generation;
        self.observer.noted(&Note::MasterDeposed { generation }, self.now);
        let mut batches = self.master.writer.broken();
        let whole = durable as usize % (batches.len() + 1);
        let lost = whole < batches.len() || (whole > 0 && !arrives);
        batches.truncate(whole);
        for batch in batches {
            self.master.written.extend(batch.persist);
            if arrives {
                batch.outputs.into_iter().for_each(|output| self.master_output(output, self.now));
            }
        }
        let host = self.master.next(lost);
        let agents = self.agents.iter().map(|host| (host.to_agent.next(), host.to_master.next())).collect();
        let schedulers = self.schedulers.iter().map(|host| (host.events.next(), host.calls.next())).collect();
        let mut other = DeposedMaster { host, agents, schedulers };
        self.swap(&mut other);
        self.deposed = Some(Box::new(other));
        self.queue.push(self.now + downtime, Event::StartMaster);
        self.queue.push(self.now + lasts, Event::DepositionDetected { generation });
        self.all_hosts_detect(lasts);
        for scheduler in 0..self.schedulers.len() {
            let at = self.now + lasts.mul_f64(Self::unit(&mut self.network_rng));
            self.schedulers[scheduler].detects = at;
            self.queue.push(at, Event::SchedulerDetects(scheduler as u32));
        }
    }

    /// Returns the core of the deposed master, if there is one.
    pub(crate) fn deposed(&mut self) -> Option<&mut ::master::Master> {
        self.deposed.as_mut()?.host.core.as_mut()
    }

    /// Returns whether the master with this life number is the deposed one.
    pub(super) fn is_deposed(&self, generation: u32) -> bool {
        self.deposed.as_ref().is_some_and(|other| other.host.generation == generation)
    }

    /// Performs an action with the deposed master in place of the leading one. Does nothing if there is none.
    pub(super) fn as_deposed(&mut self, act: impl FnOnce(&mut Self)) {
        let Some(mut other) = self.deposed.take() else { return };
        self.swap(&mut other);
        act(self);
        self.swap(&mut other);
        if other.host.core.is_some() {
            self.deposed = Some(other);
        }
    }

    fn swap(&mut self, other: &mut DeposedMaster) {
        std::mem::swap(&mut self.master, &mut other.host);
        for (host, (to, from)) in self.agents.iter_mut().zip(&mut other.agents) {
            std::mem::swap(&mut host.to_agent, to);
            std::mem::swap(&mut host.to_master, from);
        }
        for (host, (to, from)) in self.schedulers.iter_mut().zip(&mut other.schedulers) {
            std::mem::swap(&mut host.events, to);
            std::mem::swap(&mut host.calls, from);
        }
    }

    /// Ends the deposed master, which has detected that it no longer leads.
    pub(super) fn end_deposed_master(&mut self, generation: u32) {
        if self.is_deposed(generation) {
            self.as_deposed(|world| world.stop_master(0, true));
        }
    }

    /// Makes a scheduler detect the leading master and disconnect from a deposed one.
    pub(super) fn scheduler_detects(&mut self, scheduler: u32) {
        let host = &mut self.schedulers[scheduler as usize];
        host.detects = Time::EPOCH;
        let (at, connected) = (host.master_generation, host.connection.is_some());
        if connected && self.is_deposed(at) {
            self.as_deposed(|world| world.close_connection(scheduler));
            self.session_input(scheduler, sdk::Input::Disconnected("another master leads".to_owned()));
        }
    }
}
