//! Handles PingSlaveMessage, and its absence.

use std::sync::Arc;

use base::{Pid, Time};
use protos::mesos::internal::{PingSlaveMessage, PongSlaveMessage};

use crate::agent::{Agent, AgentState};
use crate::output::{Outbox, Output};
use crate::timers::Timer;

impl Agent {
    /// Answers a ping in every state. A ping with `connected` false makes the agent reregister.
    pub(crate) fn ping(&mut self, from: &Pid, ping: PingSlaveMessage, now: Time, out: &mut Outbox) {
        let pong = Output::Send { to: from.clone(), message: Arc::new(PongSlaveMessage {}.into()) };
        match ping.connected {
            // A pong does not wait for a slow write to the disk.
            true => out.at_once.push(pong),
            // For this master a pong means that what the agent lists from now on is true, so earlier messages go first.
            false => out.outputs.push(pong),
        }
        let is_of_master = self.master.as_ref().is_some_and(|master| master.address() == from.address());
        if self.state != AgentState::Running || !is_of_master {
            return;
        }
        if ping.connected {
            self.expect_ping(now);
        } else {
            out.outputs.push(Output::RedetectMaster);
        }
    }

    /// Restarts the timer of the next ping.
    pub(crate) fn expect_ping(&mut self, now: Time) {
        self.timers.cancel(self.ping.take());
        self.ping = Some(self.timers.set(now + self.ping_timeout, Timer::PingTimeout));
    }

    /// Handles the absence of pings: the master may have removed this agent, so the leader is detected again.
    pub(crate) fn ping_timed_out(&mut self, out: &mut Outbox) {
        self.ping = None;
        if self.state == AgentState::Running {
            out.warn("No ping from the master for too long; detecting it anew");
            out.outputs.push(Output::RedetectMaster);
        }
    }

    /// Handles a broken link. If it was the link to the master, a registered agent detects the leader again, and any
    /// other one registers again soon.
    ///
    /// A process that ends closes its connections and its port refuses new ones, so agents are registered within
    /// seconds after a master has restarted.
    pub(crate) fn exited(&mut self, pid: &Pid, now: Time, out: &mut Outbox) {
        if self.master.as_ref() != Some(pid) {
            return;
        }
        if matches!(self.state, AgentState::Running | AgentState::Disconnected) && !self.has_warned_of_master {
            self.has_warned_of_master = true;
            out.warn(format!("No connection to the master at {}: trying again; tasks continue", pid.address()));
        }
        match self.state {
            AgentState::Running => out.outputs.push(Output::RedetectMaster),
            AgentState::Disconnected => {
                self.forget_authentication();
                self.register_soon(now);
            }
            AgentState::Recovering | AgentState::Terminating => {}
        }
    }
}
