//! Rate limits of drivers' messages: `--rate_limits` (SEC-60).
//!
//! Messages of a subscribed framework pass the gate of its principal one after the other. Messages of agents, calls by
//! HTTP and first subscriptions are not limited.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::{Pid, Time};
use protos::mesos::internal::FrameworkErrorMessage;

use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::message::Message;
use crate::refusals::Fault;
use crate::state::FrameworkKey;
use crate::timers::Timer;

/// Rate of the messages of a principal, and the number that may wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Time between two messages.
    pub interval: Duration,
    /// Maximum number of waiting messages; `None` for 100,000.
    pub capacity: Option<u64>,
}

/// Rate limits by principal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateLimits {
    /// Rate limits of named principals; `None` for no limit.
    pub named: BTreeMap<String, Option<RateLimit>>,
    /// Rate limit that all other principals share; `None` for no limit.
    pub others: Option<RateLimit>,
}

/// Default limit of waiting messages, which take memory.
const WAITING_MAX: u64 = 100_000;

/// Gates by principal. The gate of `None` is shared by all principals without one of their own.
pub(crate) type RateLimitQueues = BTreeMap<Option<String>, RateLimitQueue>;

/// Queue of messages that wait for a rate limit.
#[derive(Debug, Default)]
pub(crate) struct RateLimitQueue {
    /// Time at which the next message may pass.
    next: Time,
    waiting: VecDeque<(Pid, Message)>,
}

impl RateLimits {
    /// Returns the key and the limit of the gate for a principal's messages, or `None` if they are not limited.
    fn key_and_limit(&self, principal: Option<&str>) -> Option<(Option<String>, RateLimit)> {
        match principal.and_then(|name| self.named.get(name)) {
            Some(limit) => limit.map(|limit| (principal.map(str::to_owned), limit)),
            None => self.others.map(|limit| (None, limit)),
        }
    }
}

impl Master {
    /// Returns a message that may be handled now. Other messages wait, or are dropped with an error to the driver.
    pub(crate) fn admit_by_rate_limit(&mut self, from: &Pid, message: Message, out: &mut Outbox) -> Option<Message> {
        let Some(limits) = &self.config.rate_limits else { return Some(message) };
        let Some(key) = self.frameworks.key_of_pid(from) else { return Some(message) };
        let principal = self.frameworks.get(key).and_then(|framework| framework.info.principal.as_deref());
        let Some((name, limit)) = limits.key_and_limit(principal) else { return Some(message) };
        let queue = self.rate_limit_queues.entry(name.clone()).or_default();
        if queue.waiting.is_empty() && queue.next <= self.now {
            queue.next = self.now + limit.interval;
            return Some(message);
        }
        let capacity = limit.capacity.unwrap_or(WAITING_MAX);
        if queue.waiting.len() as u64 >= capacity {
            let name = message.name();
            let message = format!("Message {} dropped: capacity({capacity}) exceeded", message.full_name());
            out.warn(format!("{message} (of {from})"));
            self.count(Counter::DroppedMessages);
            self.count_held(key, 0, 1);
            let id = self.framework(key).map(|framework| framework.id.to_string()).unwrap_or_default();
            self.refuse_message(from, name, ("framework", &id), Fault::Denied(message.clone()), out);
            out.push(Output::send(from, FrameworkErrorMessage { message }));
            return None;
        }
        if queue.waiting.is_empty() {
            self.timers.set(queue.next, Timer::RateLimit);
        }
        queue.waiting.push_back((from.clone(), message));
        self.count_held(key, 1, 0);
        None
    }

    /// Handles the waiting messages that are due.
    pub(crate) fn handle_due_messages(&mut self, out: &mut Outbox) {
        let mut rate_limit_queues = std::mem::take(&mut self.rate_limit_queues);
        for (name, queue) in &mut rate_limit_queues {
            let set = self.config.rate_limits.as_ref().and_then(|limits| limits.key_and_limit(name.as_deref()));
            let Some((_, limit)) = set.filter(|_| !queue.waiting.is_empty()) else { continue };
            while queue.next <= self.now
                && let Some((from, message)) = queue.waiting.pop_front()
            {
                queue.next = self.now + limit.interval;
                if let Some(key) = self.frameworks.key_of_pid(&from) {
                    self.count_held(key, -1, 0);
                }
                self.handle_message(from, message, out);
            }
            if !queue.waiting.is_empty() {
                self.timers.set(queue.next, Timer::RateLimit);
            }
        }
        self.rate_limit_queues = rate_limit_queues;
    }

    fn count_held(&mut self, key: FrameworkKey, held: i64, dropped: u64) {
        if let Some(counts) = self.frameworks.counts(key) {
            counts.held = counts.held.saturating_add_signed(held);
            counts.dropped += dropped;
        }
    }
}
