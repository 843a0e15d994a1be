//! Rate limit at which silent agents become unreachable: `--agent_removal_rate_limit`.

use std::collections::VecDeque;

use base::Time;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::AgentKey;
use crate::timers::Timer;

/// Removals that wait for a permit of the rate limit.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    waiting: VecDeque<Waiting>,
    /// Time at which the next permit may be issued.
    next: Time,
    timer: bool,
}

#[derive(Clone, Debug)]
enum Waiting {
    Silent(AgentKey, &'static str),
    Recovered(base::AgentId),
}

impl Master {
    /// Schedules that a silent agent becomes unreachable as soon as the rate limit allows.
    pub(crate) fn schedule_removal(&mut self, agent: AgentKey, why: &'static str, out: &mut Outbox) {
        self.count(Counter::SlaveUnreachableScheduled);
        self.removals.waiting.push_back(Waiting::Silent(agent, why));
        self.removal_permit(out);
    }

    /// Schedules that a recovered agent that has not reregistered becomes unreachable as soon as the rate limit allows.
    pub(crate) fn schedule_recovered_removal(&mut self, id: base::AgentId, out: &mut Outbox) {
        self.removals.waiting.push_back(Waiting::Recovered(id));
        self.removal_permit(out);
    }

    /// Marks the waiting agents as unreachable that the rate limit allows by now.
    pub(crate) fn removal_permit(&mut self, out: &mut Outbox) {
        if self.removals.timer && self.removals.next > self.now {
            return;
        }
        self.removals.timer = false;
        while let Some(waiting) = self.removals.waiting.front().cloned() {
            if let Some((count, span)) = self.config.agent_removal_rate_limit {
                if self.removals.next > self.now {
                    self.removals.timer = true;
                    self.timers.set(self.removals.next, Timer::AgentRemoval);
                    return;
                }
                if self.is_still_scheduled(&waiting) {
                    self.removals.next = self.now + span / count.max(1);
                }
            }
            self.removals.waiting.pop_front();
            self.mark_waiting_unreachable(waiting, out);
        }
    }

    /// Returns whether a waiting agent is still to be removed. A pong or a reregistration may have canceled the
    /// removal.
    fn is_still_scheduled(&self, waiting: &Waiting) -> bool {
        match waiting {
            Waiting::Silent(agent, _) => self.agents.is_removal_scheduled(*agent),
            Waiting::Recovered(id) => self.absent.is_recovered(id.as_str()),
        }
    }

    fn mark_waiting_unreachable(&mut self, waiting: Waiting, out: &mut Outbox) {
        if !self.is_still_scheduled(&waiting) {
            return;
        }
        match waiting {
            Waiting::Silent(agent, why) => {
                self.count(Counter::SlaveUnreachableCompleted);
                self.mark_unreachable(agent, why, out);
            }
            Waiting::Recovered(id) => self.mark_recovered_unreachable(&id, out),
        }
    }
}
