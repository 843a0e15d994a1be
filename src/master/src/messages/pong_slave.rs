//! PongSlaveMessage: an agent answers a ping.

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;

impl Master {
    pub(crate) fn pong_slave(&mut self, observer: u64, out: &mut Outbox) {
        let max = self.config.max_agent_ping_timeouts;
        let Some(pong) = self.agents.pong(observer, max, self.now) else { return };
        let Some(agent) = self.agents.get(pong.agent) else { return };
        if pong.removal_canceled {
            out.info(format!("An agent answers again (connected: {})", agent.connected));
        }
        if pong.settled {
            out.warn(format!("Agent {} does not register anew when told to; what it has listed must do", agent.id));
            self.update_activity(pong.agent);
        }
        if pong.removal_canceled {
            self.count(Counter::SlaveUnreachableCanceled);
        }
    }
}
