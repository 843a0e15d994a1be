//! PongSlaveMessage: an agent is there.

use std::time::Duration;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::Doubt;

/// An agent that is told that it is not connected registers anew within a second or so, by Mesos's defaults. One that has not by then,
/// and answers pings, will not: what it has listed must do, or it would never be offered again.
const REGISTERS_WITHIN: Duration = Duration::from_secs(10);

impl Master {
    pub(crate) fn pong_slave(&mut self, observer: u64, out: &mut Outbox) {
        let Some(key) = self.observers.get(&observer).copied() else { return };
        let connected = self.agent(key).is_some_and(|agent| agent.connected);
        let Some(book) = self.agent_books.get_mut(&key) else { return };
        let before = book.doubt;
        book.ponged = true;
        match book.doubt {
            Doubt::None => {}
            Doubt::Lists => book.doubt = Doubt::Answered(self.now),
            Doubt::Answered(at) if self.now.since(at) < REGISTERS_WITHIN => {}
            Doubt::Answered(_) => book.doubt = Doubt::None,
        }
        let settled = before != Doubt::None && book.doubt == Doubt::None;
        let silent = std::mem::take(&mut book.missed) >= self.config.max_agent_ping_timeouts;
        // A pong takes back what missed pings have scheduled, not what the end of the time to reregister has.
        if silent && std::mem::take(&mut book.removal_scheduled) {
            self.count(Counter::SlaveUnreachableCanceled);
            out.info(format!("An agent answers again (connected: {connected})"));
        }
        if settled && let Some(agent) = self.agent(key) {
            out.warn(format!("Agent {} does not register anew when told to; what it has listed must do", agent.id));
            self.tell_activity(key);
        }
    }
}
