//! UnregisterSlaveMessage: an agent leaves the cluster.

use base::Pid;
use protos::mesos::internal::UnregisterSlaveMessage;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;

impl Master {
    /// Removes an agent that unregisters. Only the agent's own process may do so.
    pub(crate) fn unregister_slave(&mut self, from: &Pid, message: &UnregisterSlaveMessage, out: &mut Outbox) {
        self.count(Counter::MessagesUnregisterSlave);
        let id = &message.slave_id.value;
        match self.agent_by_id(id) {
            Some(key) if self.agent(key).is_some_and(|agent| agent.pid == *from) => {
                self.remove_agent(key, "the agent unregistered", Some(Counter::SlaveRemovalsUnregistered), out);
            }
            Some(_) => out.warn(format!("Ignoring that {from} unregisters agent {id}: it is not its own")),
            None => out.warn(format!("Ignoring that {from} unregisters agent {id}: it is not registered")),
        }
    }
}
