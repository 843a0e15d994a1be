//! PingSlaveMessage, and its absence.

use std::sync::Arc;

use base::{Pid, Time};
use protos::mesos::internal::{PingSlaveMessage, PongSlaveMessage};

use crate::agent::{Agent, AgentState};
use crate::output::{Outbox, Output};
use crate::timers::Timer;

impl Agent {
    /// A ping is answered to its sender in every state. One with "not connected" makes the agent reregister.
    pub(crate) fn ping(&mut self, from: &Pid, ping: PingSlaveMessage, now: Time, out: &mut Outbox) {
        let pong = Output::Send { to: from.clone(), message: Arc::new(PongSlaveMessage {}.into()) };
        match ping.connected {
            // However long a write takes, the agent is there.
            true => out.at_once.push(pong),
            // For this master it means that what is listed from now on is true; what was listed before goes first.
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

    /// Waits for the next ping.
    pub(crate) fn expect_ping(&mut self, now: Time) {
        self.timers.cancel(self.ping.take());
        self.ping = Some(self.timers.set(now + self.ping_timeout, Timer::PingTimeout));
    }

    /// No ping for too long: perhaps the master has forgotten this agent.
    pub(crate) fn ping_timed_out(&mut self, out: &mut Outbox) {
        self.ping = None;
        if self.state == AgentState::Running {
            out.warn("No ping from the master for too long; detecting it anew");
            out.outputs.push(Output::RedetectMaster);
        }
    }

    /// The link to the master is broken: an agent that is registered detects the leader again, and one that is not
    /// registers again soon. A process that ends closes its connections and its port refuses new ones, so a master that
    /// restarts gets its agents back within seconds of its start.
    pub(crate) fn exited(&mut self, pid: &Pid, now: Time, out: &mut Outbox) {
        if self.master.as_ref() != Some(pid) {
            return;
        }
        if matches!(self.state, AgentState::Running | AgentState::Disconnected) && !self.has_complained {
            self.has_complained = true;
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
