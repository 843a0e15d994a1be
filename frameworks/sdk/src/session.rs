//! The protocol between a scheduler and a master, without I/O.
//!
//! A session subscribes, watches heartbeats, subscribes again with back-off and the framework's id, maintains the
//! ledger, acknowledges updates, and reconciles after a new subscription. The caller passes inputs and the time. A
//! driver carries out the outputs over HTTP, the laboratory under virtual time.
//!
//! With a store ([`Session::restore`]) outputs are a transaction: [`Output::Save`] comes first, and the calls after it
//! may be sent only when it is durable. So a scheduler that is killed at any time knows after its restart every task
//! that it may have launched, and handles no update twice.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Backoff, Time};

use crate::calls::{self, Calls};
use crate::ledger::Novelty;
use crate::requests::Deferred;
use crate::saved::{self, Damaged, Saved};
use crate::state::Change;
use crate::v1::scheduler::{self, Call, call};
use crate::v1::{AgentId, FrameworkId, FrameworkInfo, TaskId, TaskState, TaskStatus, task_status};
use crate::{Event, Metrics, Scheduler};
use reconciler::{Reconciler, Reconciliation};

mod leaving;
mod reconciler;
mod watch;

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Description of the framework. With an id, the session takes over that framework.
    pub framework: FrameworkInfo,
    /// Roles that are suppressed at first.
    pub suppressed_roles: Vec<String>,
    /// First wait between two attempts to subscribe; it doubles each time. 250 ms by default.
    pub first_wait: Duration,
    /// Longest wait between two attempts to subscribe. 15 s by default.
    pub longest_wait: Duration,
    /// Number of heartbeat intervals without an event after which the connection counts as lost. 5 by default.
    pub missed_heartbeats: u32,
    /// Interval of reconciliations, alternately explicit and implicit. 15 min by default.
    pub reconcile_every: Duration,
    /// Whether the last 10,000 ended tasks are remembered, so that a repeated update is recognised. A repeated update
    /// of a forgotten task is delivered again. Default: yes. Where updates arrive once, as in some laboratories,
    /// remembering only costs memory.
    pub remember_ends: bool,
    /// Metrics of the session; a clone of them can be served.
    pub metrics: Metrics,
    /// Seed of the waits' jitter: schedulers with different seeds do not subscribe again at the same time.
    pub seed: u64,
}

impl Settings {
    /// Returns the default settings for this framework.
    pub fn new(framework: FrameworkInfo) -> Settings {
        Settings {
            framework,
            suppressed_roles: Vec::new(),
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(15),
            missed_heartbeats: 5,
            reconcile_every: Duration::from_secs(15 * 60),
            remember_ends: true,
            metrics: Metrics::default(),
            seed: 0,
        }
    }
}

/// An input of a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// An event arrived on the stream.
    Event(Box<scheduler::Event>),
    /// The stream ended or could not be opened. The text is the reason, for people.
    Disconnected(String),
    /// A leading master may have been elected: a session that waits to subscribe tries at once.
    MasterFound,
    /// A call was answered with an error. The text is the response's status and body.
    Refused(Box<Call>, String),
    /// The time of [`Session::next_wake`] has come.
    Wake,
    /// An external wake-up: the scheduler receives [`Event::Wake`].
    WakeSignal,
}

/// An output of a session. Outputs are carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Make these changes durable before anything that follows is done. Changes of several outputs may be written
    /// together: saving a change before the calls of an earlier output are sent is harmless.
    Save(Vec<Change>),
    /// Find the master, send this SUBSCRIBE to it, and pass the events of its stream to the session.
    Subscribe(Box<Call>),
    /// Send this call with the subscription of the stream.
    Send(Box<Call>),
    /// Deliver this answer with [`Deferred::deliver`].
    Answer(Deferred),
    /// Close the stream, if there is one.
    Disconnect,
    /// Close the stream, and end.
    End(Ending),
}

/// Reason for the end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The scheduler called [`Calls::stop`] or [`Calls::teardown`].
    Stopped,
    /// The master refused the framework for good, or the address given for the master is that of an agent. The text is
    /// the reason.
    Error(String),
    /// No master accepted the subscription within the time limit, or none received the teardown of the framework. The
    /// text is the error of the last attempt.
    Unreachable(String),
    /// The persisted state could not be read or written, so nothing more may be done. The text is the reason, for
    /// people.
    State(String),
}

impl Ending {
    /// Returns the reason for people, or `None` if the scheduler stopped the session.
    pub fn why(&self) -> Option<String> {
        Some(match self {
            Ending::Stopped => return None,
            Ending::Error(why) => format!("the framework was refused: {why}"),
            Ending::Unreachable(why) => format!("no master could be reached: {why}"),
            Ending::State(why) => why.clone(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The session subscribes at this instant.
    Waiting(Time),
    /// SUBSCRIBE was sent at this instant and is not answered.
    Subscribing(Time),
    /// The session is subscribed; the last event arrived at this instant.
    Subscribed(Time),
    Ended,
}

/// Maximum time for which a SUBSCRIBE may be unanswered.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(30);
/// Heartbeat interval of a master that does not state one, as in Mesos.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Text of a master's error for a removed framework (docs/mesos/scheduler-api.md).
const REMOVED: &str = "Framework has been removed";

/// A scheduler with its protocol state: everything but a connection.
#[derive(Debug)]
pub struct Session<S> {
    scheduler: S,
    settings: Settings,
    backoff: Backoff,
    calls: Calls,
    state: State,
    framework_id: Option<FrameworkId>,
    heartbeat: Duration,
    was_subscribed: bool,
    /// Whether there is a store.
    has_store: bool,
    /// Whether the framework's id was read from the store, and no master has confirmed it since.
    is_id_unconfirmed: bool,
    /// Deadline of the connection that is needed for a teardown; `None` if there is no such teardown.
    teardown_deadline: Option<Time>,
    reconciler: Reconciler,
}

impl<S: Scheduler> Session<S> {
    /// Creates a session that subscribes at its first [`Input::Wake`].
    pub fn new(scheduler: S, settings: Settings, now: Time) -> Session<S> {
        let mut calls = Calls::default();
        if !settings.remember_ends {
            calls.ledger.forget_ends();
        }
        Session {
            scheduler,
            backoff: Backoff::new(settings.first_wait, settings.longest_wait, settings.seed),
            calls,
            state: State::Waiting(now),
            framework_id: settings.framework.id.clone().filter(|id| !id.value.is_empty()),
            heartbeat: HEARTBEAT_INTERVAL,
            was_subscribed: false,
            has_store: false,
            is_id_unconfirmed: false,
            teardown_deadline: None,
            reconciler: Reconciler::new(settings.reconcile_every, settings.seed),
            settings,
        }
    }

    /// Restores what an earlier session saved, and saves changes from now on. It must be called before any input. The
    /// scheduler receives [`Event::Restored`]. An id in the settings takes precedence over a saved one.
    ///
    /// # Errors
    /// Returns a damaged entry. Nothing is restored then.
    pub fn restore(
        &mut self,
        entries: BTreeMap<String, Vec<u8>>,
        now: Time,
        outputs: &mut Vec<Output>,
    ) -> Result<(), Damaged> {
        let saved = Saved::read(entries)?;
        self.has_store = true;
        self.calls.ledger = saved.ledger;
        if !self.settings.remember_ends {
            self.calls.ledger.forget_ends();
        }
        self.calls.ledger.track_changes();
        if self.framework_id.is_none() {
            self.framework_id = saved.framework_id.map(|value| FrameworkId { value: value.into() });
            self.is_id_unconfirmed = self.framework_id.is_some();
        }
        self.deliver_event(Event::Restored(saved.own), now, outputs);
        Ok(())
    }

    /// Handles one input, and appends what must be done to `outputs`.
    pub fn handle(&mut self, input: Input, now: Time, outputs: &mut Vec<Output>) {
        if self.calls.ledger.killed().next().is_none() {
            self.reconciler.no_kills(now);
        }
        match (self.state, input) {
            (State::Ended, _) => {}
            (_, Input::WakeSignal | Input::Refused(..)) if self.teardown_deadline.is_some() => {}
            (_, Input::Wake) => self.wake(now, outputs),
            (State::Waiting(_), Input::MasterFound) => {
                self.state = State::Waiting(now);
                self.wake(now, outputs);
            }
            (_, Input::MasterFound) => {}
            (_, Input::WakeSignal) => self.deliver_event(Event::Wake, now, outputs),
            (State::Waiting(_), Input::Event(_)) => {}
            (_, Input::Event(event)) => self.event(*event, now, outputs),
            (State::Waiting(_), Input::Disconnected(_)) => {}
            (_, Input::Disconnected(why)) => self.disconnected(why, now, outputs),
            (_, Input::Refused(call, why)) => self.deliver_event(Event::Refused { call, why }, now, outputs),
        }
    }

    /// Returns the time at which the session needs [`Input::Wake`]. An earlier one is harmless.
    pub fn next_wake(&self) -> Option<Time> {
        let own = match self.state {
            State::Waiting(at) => at,
            State::Subscribing(since) => since + SUBSCRIBE_TIMEOUT,
            State::Subscribed(heard) => {
                let kills = self.calls.ledger.killed().next().is_some();
                (heard + self.silence_limit()).min(self.reconciler.next_wake(kills))
            }
            State::Ended => return None,
        };
        let scheduler = self.calls.wake.filter(|_| self.teardown_deadline.is_none());
        scheduler.into_iter().chain(self.teardown_deadline).chain([own]).min()
    }

    /// Returns the framework's id; `None` before the first subscription.
    pub fn framework_id(&self) -> Option<&FrameworkId> {
        self.framework_id.as_ref()
    }

    /// Returns the scheduler when the session is over.
    pub fn into_scheduler(self) -> S {
        self.scheduler
    }

    fn is_subscribed(&self) -> bool {
        matches!(self.state, State::Subscribed(_))
    }

    /// Returns the time for which the master may be silent.
    fn silence_limit(&self) -> Duration {
        self.heartbeat.saturating_mul(self.settings.missed_heartbeats)
    }

    fn wake(&mut self, now: Time, outputs: &mut Vec<Output>) {
        if self.teardown_deadline.is_some_and(|until| until <= now) {
            return self.end_without_master(outputs);
        }
        match self.state {
            State::Waiting(at) if at <= now => {
                self.state = State::Subscribing(now);
                outputs.push(Output::Subscribe(Box::new(self.subscribe())));
            }
            State::Subscribing(since) if since + SUBSCRIBE_TIMEOUT <= now => {
                outputs.push(Output::Disconnect);
                self.disconnected("the master did not answer SUBSCRIBE".to_owned(), now, outputs);
            }
            State::Subscribed(heard) if heard + self.silence_limit() <= now => {
                let why = format!("no heartbeat for {} s", now.since(heard).as_secs());
                outputs.push(Output::Disconnect);
                self.disconnected(why, now, outputs);
            }
            State::Subscribed(_) => self.run_reconciler(now, outputs),
            _ => {}
        }
        if self.teardown_deadline.is_none() && self.calls.wake.is_some_and(|at| at <= now) {
            self.calls.wake = None;
            self.deliver_event(Event::Wake, now, outputs);
        }
    }

    fn subscribe(&self) -> Call {
        let framework_info = FrameworkInfo { id: self.framework_id.clone(), ..self.settings.framework.clone() };
        let suppressed_roles = self.settings.suppressed_roles.clone();
        let part = call::Subscribe { framework_info, suppressed_roles, offer_constraints: None };
        Call {
            framework_id: self.framework_id.clone(),
            subscribe: Some(Box::new(part)),
            ..calls::of(call::Type::Subscribe)
        }
    }

    fn disconnected(&mut self, why: String, now: Time, outputs: &mut Vec<Output>) {
        let was_subscribed = matches!(self.state, State::Subscribed(_));
        self.state = State::Waiting(now + self.backoff.next_wait());
        self.reconciler.pause();
        watch::connected(&self.settings.metrics, false);
        if was_subscribed && self.teardown_deadline.is_none() {
            self.deliver_event(Event::Disconnected { why }, now, outputs);
        }
    }

    fn event(&mut self, event: scheduler::Event, now: Time, outputs: &mut Vec<Output>) {
        if let Some(part) = &event.subscribed {
            self.subscribed(part);
        }
        if matches!(self.state, State::Subscribed(_)) {
            self.state = State::Subscribed(now);
        }
        let again = self.was_subscribed;
        let Some(event) = Event::from_wire(event, again) else { return };
        if self.teardown_deadline.is_some() {
            return self.event_while_leaving(&event, now, outputs);
        }
        match event {
            Event::Subscribed { .. } => {
                self.was_subscribed = true;
                self.state = State::Subscribed(now);
                watch::connected(&self.settings.metrics, true);
                self.deliver_event(event, now, outputs);
                self.resume(again, now, outputs);
            }
            Event::Update(status) => self.update(status, now, outputs),
            Event::Error { message } if self.is_id_unconfirmed && message.contains(REMOVED) => {
                self.start_over(now, outputs)
            }
            Event::Error { message } => {
                self.deliver_event(Event::Error { message: message.clone() }, now, outputs);
                self.end(Ending::Error(message), outputs);
            }
            other => self.deliver_event(other, now, outputs),
        }
    }

    fn subscribed(&mut self, part: &scheduler::event::Subscribed) {
        if self.has_store {
            self.calls.saves.push(saved::framework(Some(&part.framework_id.value)));
        }
        self.framework_id = Some(part.framework_id.clone());
        self.is_id_unconfirmed = false;
        self.backoff.reset();
        // At least one second, so that an invalid interval does not end every connection.
        let seconds = part.heartbeat_interval_seconds.filter(|s| s.is_finite() && *s >= 1.0);
        self.heartbeat = seconds.map_or(HEARTBEAT_INTERVAL, |s| Duration::from_secs_f64(s.min(3_600.0)));
    }

    /// Subscribes as a new framework after the master has removed the framework of the saved id, because its scheduler
    /// was disconnected for longer than its failover timeout. The tasks of the removed framework are gone.
    fn start_over(&mut self, now: Time, outputs: &mut Vec<Output>) {
        outputs.push(Output::Disconnect);
        self.framework_id = None;
        self.is_id_unconfirmed = false;
        self.state = State::Waiting(now);
        self.calls.saves.push(saved::framework(None));
        let tasks: Vec<(String, AgentId)> =
            self.calls.ledger.iter().map(|(id, e)| (id.to_owned(), e.agent_id.clone())).collect();
        for (id, agent_id) in tasks {
            self.update(removed_with_its_framework(id, agent_id), now, outputs);
        }
        self.save(outputs);
    }

    /// Reconciles the tasks after a subscription, and repeats the kills that may be lost. A session that takes a
    /// framework over without its ledger reconciles all tasks of the framework.
    fn resume(&mut self, again: bool, now: Time, outputs: &mut Vec<Output>) {
        if self.state == State::Ended {
            return;
        }
        if !again && !self.has_store && self.settings.framework.id.is_some() {
            self.calls.reconcile_all();
        }
        self.calls.reconcile();
        self.reconciler.begin(self.calls.ledger.iter().map(|(id, _)| id.to_owned()), now);
        self.repeat_kills();
        self.send(outputs);
    }

    /// Reconciles tasks without an answer, and repeats kills, when they are due.
    fn run_reconciler(&mut self, now: Time, outputs: &mut Vec<Output>) {
        let ledger = &self.calls.ledger;
        let names = || ledger.iter().map(|(id, _)| id.to_owned()).collect();
        match self.reconciler.due(&names, now) {
            Some(Reconciliation::Some(ids)) => self.calls.reconcile_some(&ids),
            Some(Reconciliation::All) => self.calls.reconcile_all(),
            None => {}
        }
        if self.reconciler.kills_due(now) {
            self.repeat_kills();
        }
        self.send(outputs);
    }

    fn repeat_kills(&mut self) {
        let kills: Vec<Call> = self.calls.ledger.killed().filter_map(repeated_kill).collect();
        self.calls.queue.extend(kills);
    }

    /// Delivers an update once, and acknowledges it each time that it arrives.
    fn update(&mut self, status: TaskStatus, now: Time, outputs: &mut Vec<Output>) {
        let acknowledgement = calls::acknowledgement(&status);
        self.reconciler.record_answer(&status.task_id.value, now);
        watch::update(&self.settings.metrics, status.state());
        if self.calls.ledger.update(&status, now) == Novelty::Repeated {
            let held = self.calls.ledger.is_held(&status.task_id.value, status.uuid());
            self.calls.queue.extend(acknowledgement.filter(|_| !held));
            self.send(outputs);
            return;
        }
        self.calls.hold_acknowledgement = false;
        self.scheduler.on_event(Event::Update(status), now, &mut self.calls);
        if self.calls.hold_acknowledgement {
            let wanted = acknowledgement.filter(|wanted| !self.calls.queue.contains(wanted));
            if let Some(part) = wanted.and_then(|call| call.acknowledge) {
                self.calls.ledger.hold(&part.task_id.value, &part.uuid);
            }
        } else if let Some(acknowledgement) = acknowledgement {
            // A framework that is torn down can no longer acknowledge.
            let teardown = self.calls.queue.iter().position(|c| c.r#type() == call::Type::Teardown);
            self.calls.queue.insert(teardown.unwrap_or(self.calls.queue.len()), acknowledgement);
        }
        let refused = self.flush(now, outputs);
        self.report_refused_calls(refused, now, outputs);
    }

    /// Passes an event to the scheduler, and sends its calls.
    fn deliver_event(&mut self, event: Event, now: Time, outputs: &mut Vec<Output>) {
        watch::event(&self.settings.metrics, &event);
        self.scheduler.on_event(event, now, &mut self.calls);
        let refused = self.flush(now, outputs);
        self.report_refused_calls(refused, now, outputs);
    }

    /// Reports to the scheduler which of its calls were not sent. Invalid calls that it makes in response are dropped,
    /// so that a scheduler that repeats them does not block the session.
    fn report_refused_calls(&mut self, refused: Vec<(Call, String)>, now: Time, outputs: &mut Vec<Output>) {
        for (call, why) in refused {
            if self.state != State::Ended {
                self.scheduler.on_event(Event::Refused { call: Box::new(call), why }, now, &mut self.calls);
                self.flush(now, outputs);
            }
        }
    }

    /// Sends the calls, adds their launches to the ledger, and ends the session if requested. Returns the calls that
    /// were not sent because they would launch a task twice; their offers are declined.
    fn flush(&mut self, now: Time, outputs: &mut Vec<Output>) -> Vec<(Call, String)> {
        let ending = self.calls.ending.take();
        if let Some(failure @ Ending::State(_)) = ending {
            self.fail(failure, outputs);
            return Vec::new();
        }
        let mut refused = Vec::new();
        let launches = self.calls.queue.iter().any(|call| call.accept.is_some());
        let queue = if launches { std::mem::take(&mut self.calls.queue) } else { Vec::new() };
        for call in queue {
            match self.enter_launches(&call, now) {
                Ok(()) => self.calls.queue.push(call),
                Err(why) => {
                    let offers = call.accept.as_ref().map(|a| a.offer_ids.clone()).unwrap_or_default();
                    self.calls.decline(offers, Duration::ZERO);
                    refused.push((call, why));
                }
            }
        }
        let teardown = self.calls.queue.iter().any(|c| c.r#type() == call::Type::Teardown);
        self.send(outputs);
        if teardown && self.is_subscribed() {
            self.forget_framework(outputs);
        }
        match ending {
            Some(_) if teardown && !self.is_subscribed() => self.leave(now, outputs),
            Some(ending) => self.end(ending, outputs),
            None => {}
        }
        refused
    }

    /// Adds the tasks that a call launches to the ledger. If one of them is in the ledger already, the call is refused
    /// and none is added.
    fn enter_launches(&mut self, call: &Call, now: Time) -> Result<(), String> {
        let operations = call.accept.iter().flat_map(|a| &a.operations);
        let tasks: Vec<_> = operations
            .flat_map(|o| {
                let group = o.launch_group.iter().flat_map(|g| &g.task_group.tasks);
                o.launch.iter().flat_map(|l| &l.task_infos).chain(group)
            })
            .collect();
        if let Some(task) = tasks.iter().find(|t| self.calls.ledger.get(&t.task_id.value).is_some()) {
            return Err(format!("the task '{}' has not ended yet; give the new one another id", task.task_id.value));
        }
        for (place, task) in tasks.iter().enumerate() {
            if !self.calls.ledger.launch(&task.task_id.value, task.agent_id.clone(), now) {
                for entered in &tasks[..place] {
                    self.calls.ledger.forget(&entered.task_id.value);
                }
                return Err(format!("the task '{}' occurs twice in one call", task.task_id.value));
            }
        }
        Ok(())
    }

    /// Sends queued calls. Without a subscription they are dropped: offers are void then, kills are repeated after the
    /// next subscription, and updates arrive again.
    fn send(&mut self, outputs: &mut Vec<Output>) {
        self.save(outputs);
        watch::tasks(&self.settings.metrics, self.calls.ledger.len());
        let subscribed = self.is_subscribed();
        for call in self.calls.queue.drain(..) {
            if subscribed {
                watch::call(&self.settings.metrics, &call);
                let framework_id = self.framework_id.clone();
                outputs.push(Output::Send(Box::new(Call { framework_id, ..call })));
            }
        }
    }

    /// Outputs the changes to be written, and after them the answers that depend on these.
    fn save(&mut self, outputs: &mut Vec<Output>) {
        let own = std::mem::take(&mut self.calls.saves);
        if !self.has_store {
            self.calls.ledger.mark_saved();
            outputs.extend(self.calls.answers.drain(..).map(Output::Answer));
            return;
        }
        let mut changes = self.calls.ledger.changes();
        changes.extend(own);
        if !changes.is_empty() {
            outputs.push(Output::Save(changes));
        }
        outputs.extend(self.calls.answers.drain(..).map(Output::Answer));
    }

    fn end(&mut self, ending: Ending, outputs: &mut Vec<Output>) {
        if self.state != State::Ended {
            self.state = State::Ended;
            outputs.push(Output::End(ending));
        }
    }
}

/// Returns the repeated kill of a task that the scheduler has killed.
fn repeated_kill((task_id, entry): (&str, &crate::Entry)) -> Option<Call> {
    let policy = entry.kill?;
    let agent_id = Some(entry.agent_id.clone()).filter(|a| !a.value.is_empty());
    Some(calls::kill(task_id, agent_id, policy))
}

/// Returns the status of a task whose framework was removed while its scheduler was disconnected.
fn removed_with_its_framework(id: String, agent_id: AgentId) -> TaskStatus {
    TaskStatus {
        task_id: TaskId { value: id.into() },
        state: TaskState::TaskGone as i32,
        agent_id: Some(agent_id).filter(|a| !a.value.is_empty()),
        source: Some(task_status::Source::Master as i32),
        reason: Some(task_status::Reason::FrameworkRemoved as i32),
        message: Some("the framework was removed while its scheduler was away".to_owned()),
        ..Default::default()
    }
}

#[cfg(test)]
mod kill_tests;
#[cfg(test)]
mod tests;
