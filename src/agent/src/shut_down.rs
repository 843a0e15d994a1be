//! Ends the agent: on ShutdownMessage from the master, SIGUSR1 or SIGTERM.

use base::Time;
use protos::mesos::internal::{ShutdownMessage, UnregisterSlaveMessage};

use crate::agent::{Agent, AgentState};
use crate::config::RecoverMode;
use crate::disk::paths;
use crate::output::{Outbox, Output, Persist};

impl Agent {
    /// Handles ShutdownMessage: the master refuses this agent.
    pub(crate) fn shutdown_message(&mut self, message: ShutdownMessage, now: Time, out: &mut Outbox) {
        out.warn(format!("The master asks this agent to shut down: {}", message.message()));
        self.leave(now, out);
    }

    /// Handles a signal: leaves the cluster for good, or only stops.
    pub(crate) fn shut_down(&mut self, unregister: bool, now: Time, out: &mut Outbox) {
        if unregister {
            if self.id.is_some() {
                self.send_to_master(UnregisterSlaveMessage { slave_id: self.slave_id() }, out);
            }
            self.unregistered = true;
            return self.leave(now, out);
        }
        // Executors of frameworks that checkpoint keep running without the agent. Others could not reconnect to the
        // next one.
        let lost = self.frameworks.values().filter(|framework| !framework.checkpoints());
        for executor in lost.flat_map(|framework| framework.executors.values()) {
            if self.frameworks.has_container(&executor.container) {
                out.outputs.push(Output::Destroy { container: executor.container.clone() });
            }
        }
        self.exit(0, "stopped by a signal".to_owned(), out);
    }

    /// Releases the outputs of an agent that ends while checkpoints cannot be written, because it does not wait for
    /// such a disk. Checkpoints that were not written are lost with the process, as in a crash.
    ///
    /// `earlier_outputs` is the number of outputs of earlier inputs.
    pub(crate) fn end_without_disk(&self, earlier_outputs: usize, out: &mut Outbox) {
        if self.checkpoint_failure.is_some() && self.state == AgentState::Terminating {
            out.at_once.extend(out.outputs.split_off(earlier_outputs));
        }
    }

    /// Shuts down all frameworks, and then the agent.
    pub(crate) fn leave(&mut self, now: Time, out: &mut Outbox) {
        self.state = AgentState::Terminating;
        self.streams.pause();
        let frameworks: Vec<_> = self.frameworks.values().map(|framework| framework.id.clone()).collect();
        if frameworks.is_empty() {
            return self.finish_shut_down(out);
        }
        for framework in frameworks {
            self.shut_down_framework(&framework, now, out);
        }
    }

    /// Exits once no framework is left.
    ///
    /// An agent that has unregistered gets a new id at its next start. One that the master has refused restarts with
    /// its old id, so that a master which has marked it gone recognizes it.
    pub(crate) fn finish_shut_down(&mut self, out: &mut Outbox) {
        let cleans_up = self.config.recover == RecoverMode::Cleanup;
        // Standalone containers are waited for, too: nothing else would end them.
        if cleans_up && self.nested.iter().any(|(name, nested)| name.parent().is_none() && nested.ended.is_none()) {
            return;
        }
        if self.unregistered {
            out.persist.push(Persist::Remove { path: paths::LATEST.to_owned() });
        }
        let done = if cleans_up { "cleaned up after an earlier agent" } else { "the agent has left the cluster" };
        self.exit(0, done.to_owned(), out);
    }
}
