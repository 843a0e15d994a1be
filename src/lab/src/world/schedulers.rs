//! A scheduler's process: the session and the scheduler of live frameworks, with a modelled connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Time;
use master::{Input, RequestId, StreamId};
use sdk::v1::scheduler as v1;
use sdk::{Metrics, Output, Scheduler, Session, Settings};

use super::clock::Clock;
use super::event::{CrashPoint, Event, MasterConnection, PlannedCrash, ToScheduler};
use super::master::{Waiting, stream_text};
use super::network::OneWayConnection;
use super::{Fidelity, FrameworkSpec, NEVER, Note, Observer, World, convert};
use crate::seeds::Seed;

/// A scheduler's process, if it runs, and the state that outlives it.
pub(super) struct SchedulerHost {
    spec: FrameworkSpec,
    seed: Seed,
    session: Option<Session<Box<dyn Scheduler>>>,
    /// Number of starts of the scheduler's process.
    pub generation: u32,
    /// Whether the session has ended.
    pub ended: bool,
    pub connection: Option<u64>,
    /// Life number of the master to which the scheduler is connected, or was last.
    pub master_generation: u32,
    /// Time until which the scheduler considers a deposed master as the leading one.
    pub detects: Time,
    /// Text of the connection's `Mesos-Stream-Id`.
    stream_text: Arc<str>,
    /// Whether the connection is broken and neither end has noticed it.
    broken: bool,
    pub calls: OneWayConnection,
    pub events: OneWayConnection,
    wake: Option<Time>,
    pub clock: Clock,
    /// Set if the process will crash in its next batch that has outputs.
    pub planned_crash: Option<PlannedCrash>,
    /// Durable state of the scheduler.
    disk: BTreeMap<String, Vec<u8>>,
}

impl SchedulerHost {
    pub fn new(spec: FrameworkSpec, seed: Seed) -> SchedulerHost {
        SchedulerHost {
            spec,
            seed,
            session: None,
            generation: 0,
            ended: false,
            connection: None,
            master_generation: 0,
            detects: Time::EPOCH,
            stream_text: Arc::default(),
            broken: false,
            calls: OneWayConnection::default(),
            events: OneWayConnection::default(),
            wake: None,
            clock: Clock::exact(),
            planned_crash: None,
            disk: BTreeMap::new(),
        }
    }

    /// Returns whether the scheduler's process runs.
    pub fn runs(&self) -> bool {
        self.session.is_some()
    }
}

/// Time until a broken connection is noticed.
const BREAK_DETECTION: Duration = Duration::from_millis(50);

impl<O: Observer> World<O> {
    pub(super) fn start_scheduler(&mut self, scheduler: u32) {
        let host = &mut self.schedulers[scheduler as usize];
        if host.session.is_some() || host.ended {
            return;
        }
        let seed = host.seed.nth("life", host.generation as usize).number();
        // The metrics are not read in a world.
        let metrics = Metrics::off();
        let mut settings = Settings { seed, metrics, ..Settings::new(host.spec.info.clone()) };
        if self.model.fidelity == Fidelity::Light {
            // Nothing is lost or duplicated with light agents, so neither reconciliation nor the detection of
            // duplicates is needed.
            settings.reconcile_every = NEVER;
            settings.remember_ends = false;
        }
        let shown = host.clock.show(self.now);
        let mut session = Session::new((host.spec.scheduler)(), settings, shown);
        let mut outputs = Vec::new();
        // State that a session has saved is always complete.
        let restored = if host.spec.persists_state {
            session.restore(host.disk.clone(), shown, &mut outputs).is_ok()
        } else {
            true
        };
        debug_assert!(restored, "a session cannot read what it saved");
        host.session = Some(session);
        self.observer.noted(&Note::SchedulerStarts { scheduler }, self.now);
        self.wanted = self.session_outputs(scheduler, outputs);
        self.session_input(scheduler, sdk::Input::Wake);
    }

    /// Crashes a scheduler's process. The master notices it after `noticed`, and after the calls that still arrive.
    pub(super) fn stop_scheduler(&mut self, scheduler: u32, noticed: Duration, arrives: bool) {
        let host = &mut self.schedulers[scheduler as usize];
        if host.session.take().is_none() {
            return;
        }
        self.observer.noted(&Note::SchedulerStops { scheduler }, self.now);
        let (connection, whole, at) = (host.connection.take(), !host.broken, host.master_generation);
        self.with_each_master(|world| {
            let calls = &mut world.schedulers[scheduler as usize].calls;
            let last = calls.last();
            if !arrives {
                calls.cut();
            }
            if let Some(connection) = connection.filter(|_| whole && world.master.generation == at) {
                world.queue.push((world.now + noticed).max(last), world.master.closes(connection));
            }
        });
        let host = &mut self.schedulers[scheduler as usize];
        host.detects = Time::EPOCH;
        host.planned_crash = None;
        host.wake = None;
        host.generation += 1;
    }

    pub(super) fn scheduler_wake(&mut self, scheduler: u32, generation: u32) {
        let host = &mut self.schedulers[scheduler as usize];
        if host.generation != generation || host.wake != Some(self.now) {
            return;
        }
        host.wake = None;
        let shown = host.clock.show(self.now);
        if host.session.as_ref().and_then(Session::next_wake).is_some_and(|at| at <= shown) {
            self.session_input(scheduler, sdk::Input::Wake);
        } else {
            self.plan_scheduler_wake(scheduler);
        }
    }

    pub(super) fn scheduler_woken(&mut self, scheduler: u32, generation: u32) {
        if self.schedulers[scheduler as usize].generation == generation {
            self.session_input(scheduler, sdk::Input::WakeSignal);
        }
    }

    fn plan_scheduler_wake(&mut self, scheduler: u32) {
        let host = &mut self.schedulers[scheduler as usize];
        let Some(at) = host.session.as_ref().and_then(Session::next_wake) else { return };
        let at = host.clock.when(at).max(self.now);
        if host.wake.is_none_or(|planned| at < planned) {
            host.wake = Some(at);
            self.queue.push(at, Event::SchedulerWake { scheduler, generation: host.generation });
        }
    }

    /// Handles data of a connection, if that is still the current one.
    pub(super) fn scheduler_arrival(&mut self, scheduler: u32, connection: u64, what: ToScheduler) {
        let host = &mut self.schedulers[scheduler as usize];
        if host.connection != Some(connection) {
            return;
        }
        match what {
            ToScheduler::Closed => {
                (host.connection, host.broken) = (None, false);
                self.session_input(scheduler, sdk::Input::Disconnected("the master closed the stream".to_owned()));
            }
            _ if host.broken => {}
            ToScheduler::Event(mut event) => {
                let noticed = self.corrupt_event(scheduler, connection, &mut event);
                self.digest.event(scheduler, self.now.as_nanos(), &event);
                let event = convert::event(Arc::unwrap_or_clone(event));
                if noticed {
                    self.observer.received(scheduler as usize, &event, self.now);
                }
                self.session_input(scheduler, sdk::Input::Event(Box::new(event)));
            }
            ToScheduler::Refused { call, why } => {
                self.observer.noted(&Note::CallRefused { scheduler, call: &call, why: &why }, self.now);
                self.session_input(scheduler, sdk::Input::Refused(call, why.to_string()));
            }
        }
    }

    pub(super) fn session_input(&mut self, scheduler: u32, input: sdk::Input) {
        let host = &mut self.schedulers[scheduler as usize];
        let Some(session) = &mut host.session else { return };
        let mut outputs = std::mem::take(&mut self.wanted);
        session.handle(input, host.clock.show(self.now), &mut outputs);
        self.wanted = self.session_outputs(scheduler, outputs);
    }

    /// Carries out the outputs of a session in order. A process whose crash is planned ends after a part of them.
    fn session_outputs(&mut self, scheduler: u32, mut outputs: Vec<Output>) -> Vec<Output> {
        let host = &mut self.schedulers[scheduler as usize];
        let planned_crash = if outputs.is_empty() { None } else { host.planned_crash.take() };
        if let Some(planned_crash) = planned_crash {
            let (CrashPoint::Writing(most) | CrashPoint::After(most)) = planned_crash.point;
            outputs.truncate(most as usize % (outputs.len() + 1));
        }
        for output in outputs.drain(..) {
            match output {
                Output::Save(changes) => self.save(scheduler, changes),
                Output::Subscribe(call) => self.subscribe(scheduler, &call),
                Output::Send(call) => self.send_call(scheduler, call),
                Output::Answer(answer) => answer.deliver(),
                Output::Disconnect => self.close_connection(scheduler),
                Output::End(ending) => {
                    self.schedulers[scheduler as usize].ended = true;
                    self.observer.noted(&Note::SchedulerEnds { scheduler, ending: &ending }, self.now);
                    self.close_connection(scheduler);
                }
            }
        }
        if let Some(planned_crash) = planned_crash {
            self.stop_scheduler(scheduler, BREAK_DETECTION, true);
            self.queue.push(self.now + planned_crash.downtime, Event::StartScheduler(scheduler));
        }
        self.plan_scheduler_wake(scheduler);
        outputs
    }

    /// Saves a scheduler's changes durably at once.
    fn save(&mut self, scheduler: u32, changes: Vec<sdk::state::Change>) {
        if self.defect == Some(super::Defect::LostSchedulerState) {
            return;
        }
        let disk = &mut self.schedulers[scheduler as usize].disk;
        for change in changes {
            match change.value {
                Some(value) => disk.insert(change.key, value),
                None => disk.remove(&change.key),
            };
        }
    }

    fn subscribe(&mut self, scheduler: u32, call: &v1::Call) {
        if self.deposed.is_some() && self.now < self.schedulers[scheduler as usize].detects {
            return self.as_deposed(|world| world.subscribe(scheduler, call));
        }
        let (connection, request) = (self.next_id(), self.next_id());
        let delay = self.latency();
        let (now, generation) = (self.now, self.master.generation);
        let host = &mut self.schedulers[scheduler as usize];
        (host.connection, host.broken, host.master_generation) = (Some(connection), false, generation);
        let text = stream_text(connection);
        host.stream_text = Arc::clone(&text);
        if self.master.core.is_none() {
            let event = Event::Scheduler { scheduler, connection, what: ToScheduler::Closed };
            return self.queue.push(now + delay, event);
        }
        self.master.streams.insert(connection, scheduler);
        let input = Input::Subscribe {
            request: RequestId(request),
            stream: StreamId(connection),
            stream_text: text,
            call: Box::new(protos::evolve::devolve(&*self.defective_subscription(call))),
            principal: None,
        };
        let host = &mut self.schedulers[scheduler as usize];
        if let Some(at) = host.calls.send(now, now + delay) {
            let via = Some(MasterConnection::Scheduler(scheduler, host.calls.epoch()));
            self.queue.push(at, Event::Master { generation, via, input });
        }
    }

    fn send_call(&mut self, scheduler: u32, call: Box<v1::Call>) {
        let host = &self.schedulers[scheduler as usize];
        let Some(connection) = host.connection else { return };
        if self.is_deposed(host.master_generation) {
            return self.as_deposed(|world| world.send_call(scheduler, call));
        }
        self.observer.called(scheduler as usize, &call, self.now);
        if self.defect == Some(super::Defect::LostAcknowledgements) && call.acknowledge.is_some() {
            return;
        }
        let (request, delay) = (self.next_id(), self.latency());
        let (now, generation) = (self.now, self.master.generation);
        let old = Box::new(convert::call(*call));
        if let Err(why) = master::validate_call(&old) {
            // A malformed call is refused without the core, as by the daemon.
            let what = ToScheduler::Refused { call: Box::new(protos::evolve::evolve(&*old)), why: why.into() };
            return self.tell_scheduler(scheduler, connection, what, now + delay);
        }
        let host = &mut self.schedulers[scheduler as usize];
        if host.broken {
            return;
        }
        let Some(at) = host.calls.send(now, now + delay) else { return };
        let via = Some(MasterConnection::Scheduler(scheduler, host.calls.epoch()));
        let waiting = Waiting { scheduler, connection, call: self.defect.map(|_| old.clone()) };
        self.master.requests.insert(request, waiting);
        let input = Input::SchedulerCall {
            request: RequestId(request),
            stream_id: Some(Arc::clone(&host.stream_text)),
            call: old,
            principal: None,
        };
        self.queue.push(at, Event::Master { generation, via, input });
    }

    /// Closes the connection of a scheduler.
    pub(super) fn close_connection(&mut self, scheduler: u32) {
        if self.is_deposed(self.schedulers[scheduler as usize].master_generation) {
            return self.as_deposed(|world| world.close_connection(scheduler));
        }
        let Some(connection) = self.schedulers[scheduler as usize].connection.take() else { return };
        let delay = self.latency();
        // The master notices it after the calls that are still on their way.
        let now = self.now;
        if let Some(at) = self.schedulers[scheduler as usize].calls.send(now, now + delay) {
            self.queue.push(at, self.master.closes(connection));
        }
    }

    /// Breaks a scheduler's connection. Both ends notice it after a while. Messages on their way arrive before that if
    /// `arrives`, otherwise they are lost.
    pub(super) fn cut_scheduler(&mut self, scheduler: u32, arrives: bool) {
        let host = &mut self.schedulers[scheduler as usize];
        let Some(connection) = host.connection.filter(|_| !host.broken) else { return };
        let (mut closed, mut noticed) = (self.now + BREAK_DETECTION, self.now + BREAK_DETECTION);
        if arrives {
            closed = closed.max(host.events.last());
            noticed = noticed.max(host.calls.last());
        } else {
            host.broken = true;
            host.calls.cut();
            host.events.cut();
        }
        self.queue.push(closed, Event::Scheduler { scheduler, connection, what: ToScheduler::Closed });
        self.queue.push(noticed, self.master.closes(connection));
    }

    /// Ends a partition between a scheduler and the master: connections break now if messages were lost.
    pub(super) fn scheduler_rejoined(&mut self, scheduler: u32) {
        self.with_each_master(|world| world.rejoined(scheduler));
    }

    fn rejoined(&mut self, scheduler: u32) {
        let host = &mut self.schedulers[scheduler as usize];
        let (present, lost) = (host.connection, host.calls.has_lost() || host.events.has_lost());
        if !lost {
            return;
        }
        let mut old: Vec<u64> =
            self.master.streams.iter().filter(|(_, of)| **of == scheduler).map(|(name, _)| *name).collect();
        old.retain(|name| Some(*name) != present);
        old.sort_unstable();
        for connection in old {
            self.queue.push(self.now, self.master.closes(connection));
        }
        let host = &mut self.schedulers[scheduler as usize];
        if host.master_generation == self.master.generation {
            self.cut_scheduler(scheduler, false);
        } else {
            host.calls.cut();
            host.events.cut();
        }
    }

    /// Sends data to a scheduler over its connection.
    pub(super) fn tell_scheduler(&mut self, scheduler: u32, connection: u64, what: ToScheduler, ready: Time) {
        let delay = self.latency();
        let host = &mut self.schedulers[scheduler as usize];
        if host.connection == Some(connection)
            && !host.broken
            && let Some(at) = host.events.send(self.now, ready + delay)
        {
            self.queue.push(at, Event::Scheduler { scheduler, connection, what });
        }
    }
}
