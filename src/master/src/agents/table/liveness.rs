//! Liveness of agents: pings and pongs, the reregistration timeout, and whether an agent's list of tasks may be out of
//! date.
//!
//! It sends no pings and removes no agents.

use std::time::Duration;

use base::Time;
use cores::TimerKey;

use super::Agents;
use crate::state::AgentKey;
use crate::timers::{Timer, Timers};

/// Time within which an agent reregisters after a ping that says that it is not connected. By Mesos's defaults it takes
/// a second or so. An agent that answers pings and has not reregistered by then will not: its last list is accepted, or
/// its resources would never be offered again.
const REREGISTERS_WITHIN: Duration = Duration::from_secs(10);

/// Whether the tasks that a reregistered agent has listed are all that run there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TaskListState {
    /// The list is complete.
    #[default]
    Complete,
    /// The list may be old, or lack tasks that were still on their way to the agent. Pings tell the agent that it is
    /// not connected, so that it lists all tasks again.
    Uncertain,
    /// The agent has answered such a ping at this time. It has received all that was sent before, and its next list is
    /// complete.
    PingAnswered(Time),
}

#[derive(Debug)]
pub(super) struct Liveness {
    /// Number of the agent's `slave-observer`.
    pub observer: u64,
    /// Timer of the next ping.
    ping: Option<TimerKey>,
    /// Whether the last ping was answered.
    ponged: bool,
    /// Number of pings in a row without a pong.
    missed: u32,
    task_list: TaskListState,
    /// Timer of the reregistration timeout, while the agent is disconnected.
    reregister: Option<TimerKey>,
    /// Number of the agent's registrations.
    epoch: u64,
    /// Whether the agent waits for a permit to become unreachable.
    removal_scheduled: bool,
}

impl Default for Liveness {
    fn default() -> Liveness {
        Liveness {
            observer: 0,
            ping: None,
            ponged: true,
            missed: 0,
            task_list: TaskListState::Complete,
            reregister: None,
            epoch: 0,
            removal_scheduled: false,
        }
    }
}

impl Liveness {
    /// Records that the agent has reregistered. Returns whether it was about to become unreachable.
    pub(super) fn reconnect(&mut self, timers: &mut Timers) -> bool {
        self.epoch += 1;
        self.missed = 0;
        self.ponged = true;
        if matches!(self.task_list, TaskListState::PingAnswered(_)) {
            self.task_list = TaskListState::Complete;
        }
        timers.cancel(self.reregister.take());
        std::mem::take(&mut self.removal_scheduled)
    }

    pub(super) fn cancel(self, timers: &mut Timers) {
        self.ping.into_iter().chain(self.reregister).for_each(|token| timers.cancel(token));
    }
}

/// Consequences of a pong.
pub(crate) struct Pong {
    pub agent: AgentKey,
    /// Whether the pong has canceled the agent's removal.
    pub removal_canceled: bool,
    /// Whether the agent's last list of tasks is accepted as complete from now on, since the agent does not reregister.
    pub settled: bool,
}

impl Agents {
    /// Gives an agent a new observer, which pings it at once.
    pub(super) fn observe(&mut self, key: AgentKey, now: Time, timers: &mut Timers) {
        let observer = self.next_observer;
        self.next_observer += 1;
        let ping = timers.set(now, Timer::Ping { agent: key, observer });
        let Some(data) = self.private_data.get_mut(&key) else { return };
        self.by_observer.remove(&std::mem::replace(&mut data.liveness.observer, observer));
        self.by_observer.insert(observer, key);
        timers.cancel(data.liveness.ping.replace(ping));
    }

    /// Records that the list of a reregistered agent may be out of date. The next ping tells the agent that it is not
    /// connected.
    pub(crate) fn mark_task_list_uncertain(&mut self, key: AgentKey) {
        if let Some(data) = self.private_data.get_mut(&key) {
            data.liveness.task_list = TaskListState::Uncertain;
        }
    }

    /// Records that an agent's list may lack tasks, so that the agent must list all of them again. Pings start again
    /// with a new observer, so that no answer to an earlier one counts.
    pub(crate) fn request_task_list(&mut self, key: AgentKey, now: Time, timers: &mut Timers) {
        self.observe(key, now, timers);
        self.mark_task_list_uncertain(key);
        if let Some(data) = self.private_data.get_mut(&key) {
            data.liveness.ponged = true;
        }
    }

    /// Returns whether the tasks that an agent runs are not known for sure. Its resources are not offered then: those
    /// that seem to be free may be in use.
    pub(crate) fn is_task_list_uncertain(&self, key: AgentKey) -> bool {
        self.private_data.get(&key).is_some_and(|data| data.liveness.task_list != TaskListState::Complete)
    }

    /// Returns whether an agent's resources may be offered.
    pub(crate) fn is_offerable(&self, key: AgentKey) -> bool {
        self.get(key).is_some_and(|agent| agent.active()) && !self.is_task_list_uncertain(key)
    }

    /// Counts the last ping if it was not answered. Returns `Some(true)` if `max` pings in a row were not answered,
    /// which schedules the agent's removal, and `None` if the observer is no longer the agent's.
    pub(crate) fn count_missed_ping(&mut self, key: AgentKey, observer: u64, max: u32) -> Option<bool> {
        let liveness = &mut self.private_data.get_mut(&key).filter(|data| data.liveness.observer == observer)?.liveness;
        if !std::mem::replace(&mut liveness.ponged, false) {
            liveness.missed += 1;
        }
        let is_silent = liveness.missed >= max && !liveness.removal_scheduled;
        liveness.removal_scheduled |= is_silent;
        Some(is_silent)
    }

    /// Sets the timer of an agent's next ping.
    pub(crate) fn set_ping(&mut self, key: AgentKey, at: Time, timers: &mut Timers) {
        let Some(data) = self.private_data.get_mut(&key) else { return };
        let timer = Timer::Ping { agent: key, observer: data.liveness.observer };
        data.liveness.ping = Some(timers.set(at, timer));
    }

    /// Returns the agent that an observer pings.
    pub(crate) fn observed_by(&self, observer: u64) -> Option<AgentKey> {
        self.by_observer.get(&observer).copied()
    }

    /// Records a pong, which cancels a removal that `max` unanswered pings in a row had scheduled. Returns `None` if
    /// the observer is not an agent's.
    pub(crate) fn pong(&mut self, observer: u64, max: u32, now: Time) -> Option<Pong> {
        let agent = *self.by_observer.get(&observer)?;
        let liveness = &mut self.private_data.get_mut(&agent)?.liveness;
        liveness.ponged = true;
        let before = liveness.task_list;
        match before {
            TaskListState::Complete => {}
            TaskListState::Uncertain => liveness.task_list = TaskListState::PingAnswered(now),
            TaskListState::PingAnswered(at) if now.since(at) < REREGISTERS_WITHIN => {}
            TaskListState::PingAnswered(_) => liveness.task_list = TaskListState::Complete,
        }
        let settled = before != TaskListState::Complete && liveness.task_list == TaskListState::Complete;
        // A removal that was scheduled by the reregistration timeout is not canceled.
        let was_silent = std::mem::take(&mut liveness.missed) >= max;
        let removal_canceled = was_silent && std::mem::take(&mut liveness.removal_scheduled);
        Some(Pong { agent, removal_canceled, settled })
    }

    /// Starts the reregistration timeout of a disconnected agent.
    pub(crate) fn await_reregistration(&mut self, key: AgentKey, until: Time, timers: &mut Timers) {
        let Some(data) = self.private_data.get_mut(&key) else { return };
        let timer = Timer::AgentReregister { agent: key, epoch: data.liveness.epoch };
        let token = timers.set(until, timer);
        timers.cancel(data.liveness.reregister.replace(token));
    }

    /// Schedules the removal of an agent whose reregistration timeout has passed. Returns false if the agent has
    /// reregistered since `epoch`, or if its removal is scheduled already.
    pub(crate) fn reregistration_failed(&mut self, key: AgentKey, epoch: u64) -> bool {
        let Some(liveness) = self.private_data.get_mut(&key).map(|data| &mut data.liveness) else { return false };
        // The second half is evaluated only for the current registration.
        liveness.epoch == epoch && !std::mem::replace(&mut liveness.removal_scheduled, true)
    }

    pub(crate) fn is_removal_scheduled(&self, key: AgentKey) -> bool {
        self.private_data.get(&key).is_some_and(|data| data.liveness.removal_scheduled)
    }
}
