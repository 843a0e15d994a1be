//! Pings and pongs (wire/libprocess.md 9).

use protos::mesos::internal::PingSlaveMessage;

use crate::io::{Outbox, Output, Sender};
use crate::master::Master;
use crate::state::AgentKey;
use crate::timers::Timer;

impl Master {
    /// Judges the last ping, and sends the next one.
    pub(crate) fn ping(&mut self, key: AgentKey, observer: u64, out: &mut Outbox) {
        let max = self.config.max_agent_ping_timeouts;
        let Some(book) = self.agent_books.get_mut(&key).filter(|book| book.observer == observer) else { return };
        if !std::mem::replace(&mut book.ponged, false) {
            book.missed += 1;
        }
        let silent = book.missed >= max && !book.removal_scheduled;
        if silent {
            book.removal_scheduled = true;
            out.info(format!("An agent has not answered {max} pings"));
            self.schedule_removal(key, "health check timed out", out);
            if self.agent(key).is_none() {
                return;
            }
        }
        let Some(agent) = self.agents.get(key.0) else { return };
        let connected = agent.connected && !self.is_doubtful(key);
        out.push(Output::Send {
            to: agent.pid.clone(),
            from: Sender::Observer(observer),
            message: PingSlaveMessage { connected }.into(),
        });
        let at = self.now + self.config.agent_ping_timeout;
        let token = self.timers.set(at, Timer::Ping { agent: key, observer });
        if let Some(book) = self.agent_books.get_mut(&key) {
            book.ping = Some(token);
        }
    }
}
