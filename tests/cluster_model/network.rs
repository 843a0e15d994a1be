//! Modelled connections: in order, with delay, and without duplication; what is in flight when one breaks is lost.
//!
//! It does not know who is told of a break; the processes at the ends do.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;

use crate::world::{Event, World};

/// One direction of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// The master's libprocess messages to an agent.
    ToAgent(usize),
    /// An agent's to the master.
    ToMaster(usize),
    /// A scheduler's HTTP calls.
    Calls(usize),
    /// The answers and events for a scheduler.
    Events(usize),
    /// An executor's HTTP calls.
    ExecutorCalls(usize),
    /// The answers and events for an executor.
    ExecutorEvents(usize),
}

#[derive(Default)]
struct State {
    epoch: u64,
    last: Time,
    stalled: Time,
    parted: Time,
}

/// All connections.
#[derive(Default)]
pub struct Network {
    channels: BTreeMap<Channel, State>,
}

impl Network {
    /// Whether what was sent in this epoch still arrives.
    pub fn is_current(&self, channel: Channel, epoch: u64) -> bool {
        self.channels.get(&channel).map_or(0, |state| state.epoch) == epoch
    }

    /// What is in flight is lost.
    pub fn break_channel(&mut self, channel: Channel) {
        let state = self.channels.entry(channel).or_default();
        state.epoch += 1;
        state.last = Time::EPOCH;
    }

    /// What is sent until then is lost.
    pub fn part(&mut self, channel: Channel, until: Time) {
        self.channels.entry(channel).or_default().parted = until;
    }

    /// What is sent from now on arrives after `until`. With delays of more than half a minute each way an old
    /// registration could arrive after its agent had been given up, and hide what was launched since: agents and masters
    /// of this protocol cannot tell, so such connections are to be broken instead.
    pub fn stall(&mut self, channel: Channel, until: Time) {
        self.channels.entry(channel).or_default().stalled = until;
    }

    /// All that is sent from now on arrives soon.
    pub fn heal(&mut self) {
        for state in self.channels.values_mut() {
            (state.stalled, state.parted) = (Time::EPOCH, Time::EPOCH);
        }
    }
}

impl World {
    /// Sends something; it arrives after all that was sent before it on the same channel, or is lost.
    pub fn post(&mut self, channel: Channel, payload: Event) {
        let most = if self.rng.one_in(10) { 2000 } else { 20 };
        let delay = Duration::from_millis(self.rng.below(most));
        let state = self.net.channels.entry(channel).or_default();
        if state.parted > self.now {
            return;
        }
        let at = (self.now + delay).max(state.last).max(state.stalled);
        state.last = at;
        let event = Event::Deliver { channel, epoch: state.epoch, payload: Box::new(payload) };
        self.schedule(at, event);
    }
}
