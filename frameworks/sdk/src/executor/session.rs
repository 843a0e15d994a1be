//! The protocol between an executor and its agent, without I/O.
//!
//! The caller passes inputs and the time, and carries out the outputs. Updates are kept until the agent acknowledges
//! them, tasks until it has acknowledged their first update; every new subscription lists both
//! (docs/mesos/executors.md).

use std::time::Duration;

use base::{Backoff, Time};

use super::calls::{Calls, QueuedCall};
use super::environment::Environment;
use super::{Event, Executor};
use crate::v1::executor::{self, Call, call, event::Type};
use crate::v1::{TaskInfo, TaskStatus, task_status};

/// An input of a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// An event arrived on the stream.
    Event(Box<executor::Event>),
    /// The stream ended or could not be opened, or a call could not be sent. The text is the reason, for people.
    Disconnected(String),
    /// The agent refused a call or the subscription for good. The text is its reason.
    Refused(String),
    /// The time of [`Session::next_wake`] has come.
    Wake,
    /// An external wake-up: the executor receives [`Event::Wake`].
    WakeSignal,
}

/// An output of a session. Outputs are carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this SUBSCRIBE to the agent, and pass the events of its stream to the session.
    Subscribe(Box<Call>),
    /// Send this call to the agent.
    Send(Box<Call>),
    /// Close the stream, and end.
    End(Ending),
}

/// Reason for the end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The executor called [`Calls::stop`].
    Stopped,
    /// The executor had not stopped when the grace period of a shutdown was over. Its remaining processes must be
    /// killed.
    Overdue,
    /// The agent refused the executor for good. The text is its reason.
    Error(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The session subscribes at this instant.
    Waiting(Time),
    /// SUBSCRIBE is sent and not answered.
    Subscribing,
    Subscribed,
    Ended,
}

/// Maximum wait for the acknowledgement of the last updates after the executor stopped.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Interval of heartbeats of an idle executor (docs/mesos/executors.md).
const HEARTBEAT: Duration = Duration::from_secs(30 * 60);
/// Timeout of the first subscription, unless the agent sets one.
const FIRST_TIMEOUT: Duration = Duration::from_secs(60);
/// First wait between two attempts to subscribe.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// An executor with its protocol state: everything but a connection.
#[derive(Debug)]
pub struct Session<E> {
    executor: E,
    environment: Environment,
    calls: Calls,
    state: State,
    backoff: Backoff,
    /// Seed of the updates' uuids, which an agent compares within one task.
    seed: u64,
    tasks: Vec<TaskInfo>,
    updates: Vec<TaskStatus>,
    was_subscribed: bool,
    /// Time since which there is no connection to the agent.
    away_since: Option<Time>,
    heartbeat_at: Time,
    /// Time at which the session ends in any case; set by a shutdown or when the executor stops.
    deadline: Option<Time>,
    shut_down: bool,
}

impl<E: Executor> Session<E> {
    /// Creates a session that subscribes at its first [`Input::Wake`]. Executors with different seeds give their
    /// updates different uuids.
    pub fn new(executor: E, environment: Environment, seed: u64, now: Time) -> Session<E> {
        let longest = environment.recovery.map_or(Duration::from_secs(2), |r| r.backoff_max);
        Session {
            executor,
            calls: Calls::default(),
            state: State::Waiting(now),
            backoff: Backoff::new(FIRST_WAIT.min(longest), longest, seed),
            seed,
            tasks: Vec::new(),
            updates: Vec::new(),
            was_subscribed: false,
            away_since: Some(now),
            heartbeat_at: now + HEARTBEAT,
            deadline: None,
            shut_down: false,
            environment,
        }
    }

    /// Handles one input, and appends what must be done to `outputs`.
    pub fn handle(&mut self, input: Input, now: Time, outputs: &mut Vec<Output>) {
        match input {
            _ if self.state == State::Ended => return,
            Input::Event(event) => self.event(*event, now, outputs),
            Input::Disconnected(why) => self.disconnected(why, now, outputs),
            Input::Refused(why) => self.end(Ending::Error(why), outputs),
            Input::WakeSignal => self.deliver_event(Event::Wake, now, outputs),
            Input::Wake => self.wake(now, outputs),
        }
        self.finish(now, outputs);
    }

    /// Returns the time at which the session needs [`Input::Wake`]. An earlier one is harmless.
    pub fn next_wake(&self) -> Option<Time> {
        let own = match self.state {
            State::Waiting(at) => at,
            State::Subscribed => self.heartbeat_at,
            State::Subscribing => Time::NEVER,
            State::Ended => return None,
        };
        [Some(own), self.calls.wake, self.deadline, self.given_up_at()].into_iter().flatten().min()
    }

    /// Returns the executor when the session is over.
    pub fn into_executor(self) -> E {
        self.executor
    }

    /// Returns the time at which the session stops waiting for a disconnected agent.
    fn given_up_at(&self) -> Option<Time> {
        let first = if self.was_subscribed { Duration::ZERO } else { FIRST_TIMEOUT };
        let timeout = self.environment.recovery.map_or(first, |r| r.timeout);
        self.away_since.filter(|_| !self.shut_down).map(|since| since + timeout)
    }

    fn wake(&mut self, now: Time, outputs: &mut Vec<Output>) {
        if self.deadline.is_some_and(|at| at <= now) {
            let ending = if self.calls.stop { Ending::Stopped } else { Ending::Overdue };
            return self.end(ending, outputs);
        }
        if self.given_up_at().is_some_and(|at| at <= now) {
            self.shutdown(now, outputs);
        }
        match self.state {
            State::Waiting(at) if at <= now => {
                self.state = State::Subscribing;
                outputs.push(Output::Subscribe(Box::new(self.subscribe())));
            }
            State::Subscribed if self.heartbeat_at <= now => {
                self.heartbeat_at = now + HEARTBEAT;
                outputs.push(Output::Send(Box::new(self.call(call::Type::Heartbeat))));
            }
            _ => {}
        }
        if self.calls.wake.is_some_and(|at| at <= now) {
            self.calls.wake = None;
            self.deliver_event(Event::Wake, now, outputs);
        }
    }

    fn event(&mut self, event: executor::Event, now: Time, outputs: &mut Vec<Output>) {
        match event.r#type() {
            Type::Subscribed => {
                self.state = State::Subscribed;
                self.away_since = None;
                self.heartbeat_at = now + HEARTBEAT;
                self.backoff.reset();
            }
            Type::Launch => self.tasks.extend(event.launch.iter().map(|l| l.task.clone())),
            Type::LaunchGroup => {
                self.tasks.extend(event.launch_group.iter().flat_map(|g| g.task_group.tasks.clone()));
            }
            Type::Acknowledged => {
                if let Some(part) = &event.acknowledged {
                    self.updates.retain(|u| u.uuid() != part.uuid);
                    self.tasks.retain(|t| t.task_id != part.task_id);
                }
            }
            Type::Shutdown => return self.shutdown(now, outputs),
            Type::Error => {
                let why = event.error.map(|e| e.message).unwrap_or_default();
                return self.end(Ending::Error(why), outputs);
            }
            _ => {}
        }
        if let Some(event) = Event::from_wire(event, self.was_subscribed) {
            self.was_subscribed |= matches!(event, Event::Subscribed { .. });
            self.deliver_event(event, now, outputs);
        }
    }

    fn disconnected(&mut self, why: String, now: Time, outputs: &mut Vec<Output>) {
        let was_subscribed = self.state == State::Subscribed;
        self.state = State::Waiting(now + self.backoff.next_wait());
        self.away_since.get_or_insert(now);
        if was_subscribed {
            self.deliver_event(Event::Disconnected { why }, now, outputs);
        }
        if self.given_up_at().is_some_and(|at| at <= now) {
            self.shutdown(now, outputs);
        }
    }

    /// Shuts the executor down, at the agent's request or because the agent is gone.
    fn shutdown(&mut self, now: Time, outputs: &mut Vec<Output>) {
        if !self.shut_down {
            self.shut_down = true;
            let grace = self.environment.shutdown_grace;
            self.deadline = Some(self.deadline.map_or(now + grace, |at| at.min(now + grace)));
            self.deliver_event(Event::Shutdown { grace }, now, outputs);
        }
    }

    fn deliver_event(&mut self, event: Event, now: Time, outputs: &mut Vec<Output>) {
        self.executor.on_event(event, now, &mut self.calls);
        for queued in std::mem::take(&mut self.calls.queue) {
            let call = match queued {
                QueuedCall::Update(status) => self.update(*status, now),
                QueuedCall::Message(data) => {
                    Call { message: Some(call::Message { data }), ..self.call(call::Type::Message) }
                }
            };
            // The next subscription lists the updates; messages may be lost.
            if self.state == State::Subscribed {
                outputs.push(Output::Send(Box::new(call)));
            }
        }
    }

    fn update(&mut self, status: TaskStatus, now: Time) -> Call {
        let status = TaskStatus {
            uuid: Some(base::uuid(&mut self.seed).to_vec()),
            source: Some(task_status::Source::Executor as i32),
            executor_id: Some(self.environment.executor_id.clone()),
            timestamp: Some(now.as_secs_f64()),
            ..status
        };
        self.updates.push(status.clone());
        Call { update: Some(call::Update { status }), ..self.call(call::Type::Update) }
    }

    fn subscribe(&self) -> Call {
        let updates = self.updates.iter().map(|status| call::Update { status: status.clone() }).collect();
        let part = call::Subscribe { unacknowledged_tasks: self.tasks.clone(), unacknowledged_updates: updates };
        Call { subscribe: Some(part), ..self.call(call::Type::Subscribe) }
    }

    fn call(&self, kind: call::Type) -> Call {
        Call {
            framework_id: self.environment.framework_id.clone(),
            executor_id: self.environment.executor_id.clone(),
            r#type: Some(kind as i32),
            ..Default::default()
        }
    }

    /// Ends a session whose executor has stopped, once the agent has acknowledged all updates.
    fn finish(&mut self, now: Time, outputs: &mut Vec<Output>) {
        if !self.calls.stop || self.state == State::Ended {
            return;
        }
        self.deadline.get_or_insert(now + END_LIMIT);
        if self.updates.is_empty() || (self.shut_down && self.state != State::Subscribed) {
            self.end(Ending::Stopped, outputs);
        }
    }

    fn end(&mut self, ending: Ending, outputs: &mut Vec<Output>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            outputs.push(Output::End(ending));
        }
    }
}

#[cfg(test)]
mod tests;
