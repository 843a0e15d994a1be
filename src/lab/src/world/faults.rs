//! What goes wrong in a world because somebody wants it to: processes end, connections break, stall and part.
//!
//! Whoever is at the other end notices in its own time, by broken connections and by silence.

use std::time::Duration;

use base::Time;

use super::event::Event;
use super::{Observer, World};

impl<O: Observer> World<O> {
    /// The master's process ends without a word, and starts again on its registry after `away`.
    pub fn crash_master(&mut self, away: Duration) {
        self.stop_master();
        self.queue.push(self.now + away, Event::StartMaster);
    }

    /// An agent's process ends without a word, and starts again on its checkpoints after `away`. Its executors live on.
    pub fn crash_agent(&mut self, agent: usize, away: Duration) {
        self.stop_agent(agent as u32);
        self.queue.push(self.now + away, Event::StartAgent(agent as u32));
    }

    /// The connections between an agent and the master break; both ends are told.
    pub fn cut_agent(&mut self, agent: usize) {
        self.break_to_master(agent as u32);
        self.break_to_agent(agent as u32);
    }

    /// What an agent and the master say to each other until then is lost, and nobody is told.
    pub fn part_agent(&mut self, agent: usize, until: Time) {
        let host = &mut self.agents[agent];
        host.to_agent.part(until);
        host.to_master.part(until);
    }

    /// What an agent and the master say to each other from now on arrives after `until`.
    pub fn stall_agent(&mut self, agent: usize, until: Time) {
        let host = &mut self.agents[agent];
        host.to_agent.stall(until);
        host.to_master.stall(until);
    }

    /// A scheduler's connections break; both ends are told.
    pub fn cut_framework(&mut self, who: usize) {
        self.cut_scheduler(who as u32);
    }

    /// All that is said from now on arrives in its time.
    pub fn heal(&mut self) {
        for host in &mut self.agents {
            host.to_agent.heal();
            host.to_master.heal();
        }
    }
}
