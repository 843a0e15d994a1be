//! What the core wants to be woken for.
//!
//! It does not read a clock; [`Timers::due`] is told the time.

use std::collections::BTreeMap;

use base::Time;

use crate::state::{AgentKey, FrameworkKey, OfferKey};

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A framework's stream wants a heartbeat. Void if the framework has subscribed again since (`epoch`).
    SchedulerHeartbeat { framework: FrameworkKey, epoch: u64 },
    /// A disconnected framework's time is over. Void if it has subscribed again since (`epoch`).
    FrameworkFailover { framework: FrameworkKey, epoch: u64 },
    /// An operator's stream wants a heartbeat.
    OperatorHeartbeat { stream: crate::StreamId },
    /// An agent is to be pinged, and its last ping judged. Void if the agent has a new observer.
    Ping { agent: AgentKey, observer: u64 },
    /// A disconnected agent's time is over. Void if it has reregistered since (`epoch`).
    AgentReregister { agent: AgentKey, epoch: u64 },
    /// Agents that the removal rate limit has held back may go now.
    AgentRemoval,
    /// A message that a rate limit has held back may pass.
    Gate,
    /// The agents that the registry knew at the start had time enough.
    RecoveredAgents,
    /// An offer is too old.
    OfferTimeout { offer: OfferKey },
    /// The allocator is to run although nothing has happened: operators watch that it does.
    Allocation,
    /// An inverse offer is too old.
    InverseOfferTimeout { offer: OfferKey },
    /// The registry is to be swept.
    RegistryGc,
}

/// Names a timer, so that it can be taken back.
pub(crate) type Token = (Time, u64);

/// The timers that are set, soonest first; those of one instant in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: BTreeMap<Token, Timer>,
    set: u64,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Time, timer: Timer) -> Token {
        self.set += 1;
        let token = (at, self.set);
        self.queue.insert(token, timer);
        token
    }

    pub(crate) fn cancel(&mut self, token: Token) {
        self.queue.remove(&token);
    }

    /// Takes the first timer whose time has come.
    pub(crate) fn due(&mut self, now: Time) -> Option<Timer> {
        let entry = self.queue.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.first_key_value().map(|(token, _)| token.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn come_due_in_order() {
        let mut timers = Timers::default();
        let late = timers.set(Time::from_secs(9), Timer::RegistryGc);
        timers.set(Time::from_secs(2), Timer::AgentRemoval);
        timers.set(Time::from_secs(2), Timer::RecoveredAgents);
        assert_eq!(timers.due(Time::from_secs(1)), None);
        assert_eq!(timers.due(Time::from_secs(2)), Some(Timer::AgentRemoval));
        assert_eq!(timers.due(Time::from_secs(2)), Some(Timer::RecoveredAgents));
        assert_eq!(timers.next(), Some(Time::from_secs(9)));
        timers.cancel(late);
        assert_eq!(timers.next(), None);
    }
}
