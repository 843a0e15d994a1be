//! PongSlaveMessage: an agent is there.

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::Doubt;

impl Master {
    pub(crate) fn pong_slave(&mut self, observer: u64, out: &mut Outbox) {
        let Some(key) = self.observers.get(&observer).copied() else { return };
        let connected = self.agent(key).is_some_and(|agent| agent.connected);
        let Some(book) = self.agent_books.get_mut(&key) else { return };
        book.ponged = true;
        if book.doubt == Doubt::Lists {
            book.doubt = Doubt::Answered;
        }
        let silent = std::mem::take(&mut book.missed) >= self.config.max_agent_ping_timeouts;
        // A pong takes back what missed pings have scheduled, not what the end of the time to reregister has.
        if silent && std::mem::take(&mut book.removal_scheduled) {
            self.count(Counter::SlaveUnreachableCanceled);
            out.info(format!("An agent answers again (connected: {connected})"));
        }
    }
}
