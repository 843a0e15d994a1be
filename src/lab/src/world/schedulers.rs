//! A scheduler's process: the session and the scheduler that also run live, with a modelled connection.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use master::{Input, RequestId, StreamId};
use prost::Message as _;
use protos::mesos::scheduler as v0;
use sdk::v1::scheduler as v1;
use sdk::{Output, Scheduler, Session, Settings};

use super::event::{Event, ToScheduler};
use super::master::{Waiting, stream_text};
use super::network::Lane;
use super::{FrameworkSpec, Observer, World};

/// A scheduler's process.
pub(super) struct SchedulerHost {
    session: Session<Box<dyn Scheduler>>,
    pub life: u32,
    started: bool,
    /// The session is over.
    pub ended: bool,
    connection: Option<u64>,
    calls: Lane,
    events: Lane,
    wake: Option<Time>,
    /// What it has made durable.
    disk: BTreeMap<String, Vec<u8>>,
}

impl SchedulerHost {
    pub fn new(spec: FrameworkSpec, seed: u64, start: Time) -> SchedulerHost {
        let settings = Settings { seed, ..Settings::new(spec.info) };
        SchedulerHost {
            session: Session::new(spec.scheduler, settings, start),
            life: 0,
            started: false,
            ended: false,
            connection: None,
            calls: Lane::default(),
            events: Lane::default(),
            wake: None,
            disk: BTreeMap::new(),
        }
    }
}

/// The same message in the other version of the API: the two are alike in binary. What one core has made, the other reads.
fn twin<B: prost::Message + Default>(bytes: &[u8]) -> B {
    B::decode(bytes).unwrap_or_default()
}

impl<O: Observer> World<O> {
    pub(super) fn start_scheduler(&mut self, who: u32) {
        self.schedulers[who as usize].started = true;
        self.session_input(who, sdk::Input::Wake);
    }

    pub(super) fn scheduler_wake(&mut self, who: u32, life: u32) {
        let host = &mut self.schedulers[who as usize];
        if host.life != life {
            return;
        }
        host.wake = None;
        if host.session.next_wake().is_some_and(|at| at <= self.now) {
            self.session_input(who, sdk::Input::Wake);
        } else {
            self.plan_scheduler_wake(who);
        }
    }

    pub(super) fn scheduler_nudge(&mut self, who: u32, life: u32) {
        let host = &self.schedulers[who as usize];
        if host.life == life && host.started {
            self.session_input(who, sdk::Input::Nudge);
        }
    }

    fn plan_scheduler_wake(&mut self, who: u32) {
        let host = &mut self.schedulers[who as usize];
        let Some(at) = host.session.next_wake() else { return };
        if host.wake.is_none_or(|planned| at < planned) {
            host.wake = Some(at);
            self.queue.push(at.max(self.now), Event::SchedulerWake { who, life: host.life });
        }
    }

    /// Something has come over a connection, if it is still the present one.
    pub(super) fn scheduler_arrival(&mut self, who: u32, connection: u64, what: ToScheduler) {
        let host = &mut self.schedulers[who as usize];
        if host.connection != Some(connection) {
            return;
        }
        match what {
            ToScheduler::Event(event) => {
                let bytes = event.encode_to_vec();
                self.digest_in(who, &bytes);
                let event: v1::Event = twin(&bytes);
                self.observer.told(who as usize, &event, self.now);
                self.session_input(who, sdk::Input::Event(Box::new(event)));
            }
            ToScheduler::Refused { call, why } => self.session_input(who, sdk::Input::Refused(call, why)),
            ToScheduler::Closed => {
                host.connection = None;
                self.session_input(who, sdk::Input::Disconnected("the master closed the stream".to_owned()));
            }
        }
    }

    fn session_input(&mut self, who: u32, input: sdk::Input) {
        let mut outputs = Vec::new();
        self.schedulers[who as usize].session.handle(input, self.now, &mut outputs);
        for output in outputs {
            match output {
                Output::Save(changes) => self.save(who, changes),
                Output::Subscribe(call) => self.subscribe(who, &call),
                Output::Send(call) => self.send_call(who, call),
                Output::Disconnect => self.hang_up(who),
                Output::End(_) => {
                    self.schedulers[who as usize].ended = true;
                    self.hang_up(who);
                }
            }
        }
        self.plan_scheduler_wake(who);
    }

    /// Makes changes durable at once.
    fn save(&mut self, who: u32, changes: Vec<sdk::state::Change>) {
        let disk = &mut self.schedulers[who as usize].disk;
        for change in changes {
            match change.value {
                Some(value) => disk.insert(change.key, value),
                None => disk.remove(&change.key),
            };
        }
    }

    fn subscribe(&mut self, who: u32, call: &v1::Call) {
        let (connection, request) = (self.name(), self.name());
        let delay = self.latency();
        let (now, life) = (self.now, self.master.life);
        let host = &mut self.schedulers[who as usize];
        host.connection = Some(connection);
        (host.calls, host.events) = (Lane::default(), Lane::default());
        if self.master.core.is_none() {
            let event = Event::Scheduler { who, connection, what: ToScheduler::Closed };
            return self.queue.push(now + delay, event);
        }
        self.master.streams.insert(connection, who);
        let input = Box::new(Input::Subscribe {
            request: RequestId(request),
            stream: StreamId(connection),
            stream_text: stream_text(connection),
            call: Box::new(twin::<v0::Call>(&call.encode_to_vec())),
            principal: None,
        });
        if let Some(at) = host.calls.send(now, now + delay) {
            self.queue.push(at, Event::Master { life, over: None, input });
        }
    }

    fn send_call(&mut self, who: u32, call: Box<v1::Call>) {
        let Some(connection) = self.schedulers[who as usize].connection else { return };
        self.observer.called(who as usize, &call, self.now);
        let (request, delay) = (self.name(), self.latency());
        let (now, life) = (self.now, self.master.life);
        let old: v0::Call = twin(&call.encode_to_vec());
        if let Err(why) = master::validate_call(&old) {
            // The wire answers this one, as the daemon's does.
            let what = ToScheduler::Refused { call, why };
            return self.tell_scheduler(who, connection, what, now + delay);
        }
        let Some(at) = self.schedulers[who as usize].calls.send(now, now + delay) else { return };
        self.master.requests.insert(request, Waiting { who, connection, call });
        let input = Box::new(Input::SchedulerCall {
            request: RequestId(request),
            stream_id: Some(stream_text(connection).to_string()),
            call: Box::new(old),
            principal: None,
        });
        self.queue.push(at, Event::Master { life, over: None, input });
    }

    /// A scheduler closes its connection.
    fn hang_up(&mut self, who: u32) {
        let Some(connection) = self.schedulers[who as usize].connection.take() else { return };
        let delay = self.latency();
        let life = self.master.life;
        // After the calls that are still on their way.
        let now = self.now;
        if let Some(at) = self.schedulers[who as usize].calls.send(now, now + delay) {
            let input = Box::new(Input::StreamClosed { stream: StreamId(connection) });
            self.queue.push(at, Event::Master { life, over: None, input });
        }
    }

    /// A scheduler's connection breaks; both sides notice after a while.
    pub(super) fn cut_scheduler(&mut self, who: u32) {
        let host = &mut self.schedulers[who as usize];
        host.calls.cut();
        host.events.cut();
        if let Some(connection) = host.connection {
            let at = self.now + Duration::from_millis(50);
            self.queue.push(at, Event::Scheduler { who, connection, what: ToScheduler::Closed });
            let input = Box::new(Input::StreamClosed { stream: StreamId(connection) });
            self.queue.push(at, Event::Master { life: self.master.life, over: None, input });
        }
    }

    /// Something for a scheduler goes on its way.
    pub(super) fn tell_scheduler(&mut self, who: u32, connection: u64, what: ToScheduler, ready: Time) {
        let delay = self.latency();
        let host = &mut self.schedulers[who as usize];
        if host.connection == Some(connection)
            && let Some(at) = host.events.send(self.now, ready + delay)
        {
            self.queue.push(at, Event::Scheduler { who, connection, what });
        }
    }
}
