//! What the core wants to do later.
//!
//! It holds instants and what they are for; it does not know what a due timer does.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{ExecutorId, FrameworkId, Time};

use crate::container::ContainerName;

/// What an instant is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Send the registration (again).
    Register,
    /// An attempt to authenticate has taken too long.
    Authentication,
    /// No ping has come for as long as the master said.
    PingTimeout,
    /// The executor of this container should have registered by now.
    ExecutorRegistration { framework: FrameworkId, executor: ExecutorId, container: ContainerName },
    /// The executor of this container was told to shut down and should be gone by now.
    ExecutorShutdown { framework: FrameworkId, executor: ExecutorId, container: ContainerName },
    /// Executors that have not come back after a restart are given up.
    ExecutorReregistration,
    /// It is to be estimated what may be offered a second time.
    Estimate,
    /// Those who use too much of what was offered a second time are to be found.
    CorrectUsage,
    /// Executors that have not come back are called again.
    ExecutorReconnect,
    /// Executors with a stream are told that it is still there.
    ExecutorHeartbeats,
    /// Some garbage may be old enough.
    CollectGarbage,
    /// The outcome of an operation is told again, and after `wait` once more.
    OperationRetry { uuid: Vec<u8>, wait: Duration },
}

/// Names one timer.
pub(crate) type TimerKey = (Time, u64);

/// All timers, by instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    queue: BTreeMap<TimerKey, Timer>,
    counter: u64,
}

impl Timers {
    /// Sets a timer.
    pub(crate) fn set(&mut self, at: Time, timer: Timer) -> TimerKey {
        self.counter += 1;
        let key = (at, self.counter);
        self.queue.insert(key, timer);
        key
    }

    /// Forgets a timer; one that has fired or was forgotten before is none.
    pub(crate) fn cancel(&mut self, key: Option<TimerKey>) {
        if let Some(key) = key {
            self.queue.remove(&key);
        }
    }

    /// The next timer that is due.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Timer> {
        let entry = self.queue.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        Some(entry.remove())
    }

    /// When the next timer is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }
}
