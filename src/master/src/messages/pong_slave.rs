//! PongSlaveMessage: an agent answers a ping.

use base::Pid;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;

impl Master {
    pub(crate) fn pong_slave(&mut self, from: &Pid, observer: u64, out: &mut Outbox) {
        // The numbers of observers are easily guessed.
        let observed = self.agents.observed_by(observer).and_then(|key| self.agents.get(key));
        if observed.is_some_and(|agent| agent.pid != *from) {
            return;
        }
        let max = self.config.max_agent_ping_timeouts;
        let Some(pong) = self.agents.pong(observer, max, self.now) else { return };
        let Some(agent) = self.agents.get(pong.agent) else { return };
        if pong.removal_canceled {
            out.info(format!("An agent answers pings again (connected: {})", agent.connected));
        }
        if pong.settled {
            out.warn(format!("Agent {} has not reregistered as requested; continuing with its last report", agent.id));
            self.update_activity(pong.agent);
        }
        if pong.removal_canceled {
            self.count(Counter::SlaveUnreachableCanceled);
        }
    }
}
