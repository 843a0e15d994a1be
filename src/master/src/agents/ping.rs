//! Pings of agents (docs/mesos/libprocess.md).

use protos::mesos::internal::PingSlaveMessage;

use crate::io::{Outbox, Output, Sender};
use crate::master::Master;
use crate::state::AgentKey;

impl Master {
    /// Counts the last ping of an agent if it was not answered, and sends the next one.
    pub(crate) fn ping(&mut self, key: AgentKey, observer: u64, out: &mut Outbox) {
        let max = self.config.max_agent_ping_timeouts;
        let Some(is_silent) = self.agents.count_missed_ping(key, observer, max) else { return };
        if is_silent {
            out.info(format!("An agent has not answered {max} pings"));
            self.schedule_removal(key, "health check timed out", out);
        }
        let Some(agent) = self.agents.get(key) else { return };
        let connected = agent.connected && !self.agents.is_task_list_uncertain(key);
        out.push(Output::Send {
            to: agent.pid.clone(),
            from: Sender::Observer(observer),
            message: PingSlaveMessage { connected }.into(),
        });
        self.agents.set_ping(key, self.now + self.config.agent_ping_timeout, &mut self.timers);
    }
}
