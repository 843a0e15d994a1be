//! The master's process: its core, its registry, and the execution of its outputs.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use base::{Pid, Time};
use cores::Core;
use master::{CallError, Config, Input, Master, Outbox, Outgoing, Output, RegistryOp, RequestId, Sender, StreamId};
use protos::mesos::internal::Registry;
use protos::mesos::{MasterInfo, scheduler};
use rustc_hash::{FxHashMap, FxHashSet};

use super::clock::Clock;
use super::disk::Refusal;
use super::event::{CrashPoint, Event, MasterConnection, PlannedCrash, ToScheduler};
use super::writer::Writer;
use super::{CallRefusal, Note, Observer, World, agents};

/// The leading master's process, and its disk.
pub(super) struct MasterHost {
    pub core: Option<Master>,
    /// Number of starts of masters' processes.
    pub generation: u32,
    config: Config,
    registry: Registry,
    /// Durable operations that are not applied to `registry` yet; they are when a master reads it.
    pub written: Vec<RegistryOp>,
    inbox: Vec<Input>,
    out: Outbox,
    /// Whether a batch is in the queue.
    planned: bool,
    /// Time until which the master handles earlier inputs.
    busy_until: Time,
    /// Time of the earliest wake-up in the queue.
    wake: Option<Time>,
    /// Agents whose connections the master monitors.
    pub links: FxHashSet<u32>,
    /// Calls that wait for an answer.
    pub requests: FxHashMap<u64, Waiting>,
    /// Calls of operators that wait for an answer.
    operators: FxHashSet<u64>,
    /// Scheduler of each stream.
    pub streams: FxHashMap<u64, u32>,
    pub clock: Clock,
    /// Number of the host that the master runs on. `pid` is its sender address, which differs from host to host.
    place: u8,
    pid: Pid,
    /// Whether some agents have not detected that this master leads.
    pub moved: bool,
    pub writer: Writer<RegistryOp, Output>,
    /// Set if the process will crash in its next batch that has outputs or writes.
    pub planned_crash: Option<PlannedCrash>,
    /// Refusal of writes by the registry's disk, until a time.
    pub refusal: Option<(Refusal, Time)>,
    /// Set if the master may not write to the registry. It waits forever once it has tried.
    fenced: Option<FenceState>,
}

/// Whether a master that may not write to the registry has tried.
#[derive(Clone, Copy, PartialEq)]
enum FenceState {
    NotYet,
    Waits,
}

/// A scheduler's call that has not been answered.
pub(super) struct Waiting {
    pub scheduler: u32,
    pub connection: u64,
    /// The call, if the master has a [`Defect`](super::Defect).
    pub call: Option<Box<protos::mesos::scheduler::Call>>,
}

impl MasterHost {
    pub fn new(config: Config) -> MasterHost {
        MasterHost {
            core: None,
            generation: 0,
            config,
            registry: Registry::default(),
            written: Vec::new(),
            inbox: Vec::new(),
            out: Outbox::default(),
            planned: false,
            busy_until: Time::EPOCH,
            wake: None,
            links: FxHashSet::default(),
            requests: FxHashMap::default(),
            operators: FxHashSet::default(),
            streams: FxHashMap::default(),
            clock: Clock::exact(),
            place: 0,
            pid: Pid::new("master", address(0)),
            moved: false,
            writer: Writer::default(),
            planned_crash: None,
            refusal: None,
            fenced: None,
        }
    }

    /// Returns the process of the master that leads after this one, on another host, with all durable state. This one
    /// does not write any more; if a write of it was `lost`, it waits for that.
    pub fn next(&mut self, lost: bool) -> MasterHost {
        self.fenced = Some(if lost { FenceState::Waits } else { FenceState::NotYet });
        let mut next = MasterHost {
            generation: self.generation + 1,
            registry: std::mem::take(&mut self.registry),
            written: std::mem::take(&mut self.written),
            place: self.place,
            clock: self.clock,
            refusal: self.refusal,
            ..MasterHost::new(self.config.clone())
        };
        next.moves_on();
        next
    }

    /// Moves the master to the next host.
    pub fn moves_on(&mut self) {
        self.place = (self.place + 1) % 3;
        self.pid = Pid::new("master", address(self.place));
    }

    /// Returns the address at which the master listens.
    pub fn address(&self) -> SocketAddrV4 {
        self.pid.address()
    }

    /// Returns the event that the master notices the end of a stream.
    pub fn closes(&self, connection: u64) -> Event {
        let input = Input::StreamClosed { stream: StreamId(connection) };
        Event::Master { generation: self.generation, via: None, input }
    }

    /// Returns the pid of the master.
    pub fn pid(&self) -> Pid {
        self.pid.clone()
    }
}

/// Returns the address at which a master on this host listens.
fn address(place: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 255, 0, place + 1), 5050)
}

/// Time after which a supervisor restarts a process that has exited.
pub(super) const EXIT_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Returns the text of a stream's `Mesos-Stream-Id`.
pub(super) fn stream_text(connection: u64) -> Arc<str> {
    format!("stream-{connection}").into()
}

impl<O: Observer> World<O> {
    pub(super) fn start_master(&mut self) {
        if self.master.core.is_some() {
            return;
        }
        let generation = self.master.generation;
        let address = self.master.address();
        let info = MasterInfo {
            id: format!("m{generation}"),
            ip: u32::from_le_bytes(address.ip().octets()),
            port: u32::from(address.port()),
            pid: Some(self.master.pid().to_string()),
            hostname: Some("master".to_owned()),
            version: Some("1.11.0".to_owned()),
            // A master admits agents with a domain only if it has one itself.
            domain: self.agents.iter().find_map(|host| host.spec.domain.clone()),
            ..MasterInfo::default()
        };
        let seed = self.seed.nth("master", generation as usize).number();
        let config = self.master.config.clone();
        let config = self.defective_config(config);
        let MasterHost { registry, written, .. } = &mut self.master;
        written.drain(..).for_each(|op| op.apply(registry));
        let shown = self.master.clock.show(self.now);
        if let Some(recording) = &mut self.recording {
            recording.begin(&info, &self.master.registry, seed, shown);
        }
        self.master.core = Some(Master::new(config, info, &self.master.registry, seed, shown));
        self.observer.noted(&Note::MasterStarts { generation, place: self.master.place }, self.now);
        self.plan_master();
        if std::mem::take(&mut self.master.moved) {
            self.all_hosts_detect(super::faults::DETECTION);
            self.master.moved = false;
        }
    }

    /// Handles an input that arrives, unless its process or connection has ended.
    pub(super) fn master_arrival(&mut self, generation: u32, via: Option<MasterConnection>, input: Input) {
        let lost = |via: MasterConnection| match via {
            MasterConnection::Agent(agent, epoch) => !self.agents[agent as usize].to_master.carries(epoch),
            MasterConnection::Scheduler(scheduler, epoch) => !self.schedulers[scheduler as usize].calls.carries(epoch),
        };
        if self.master.generation != generation || self.master.core.is_none() || via.is_some_and(lost) {
            return;
        }
        self.master.inbox.push(input);
        self.batch_or_plan();
    }

    /// Makes an operator call, without waiting for the answer.
    pub fn operate(&mut self, call: protos::mesos::master::Call) {
        let request = self.next_id();
        self.observer.noted(&Note::OperatorCalls { request, call: &call }, self.now);
        self.master.operators.insert(request);
        let input = Input::OperatorCall { request: RequestId(request), call: Box::new(call), principal: None };
        self.queue.push(self.now, Event::Master { generation: self.master.generation, via: None, input });
    }

    /// Sets the master's policies as an operator does, without waiting for the answer.
    pub fn set_policies(&mut self, policies: allocator::policies::Policies) {
        let request = self.next_id();
        self.master.operators.insert(request);
        let input = Input::UpdatePolicies { request: RequestId(request), policies: Box::new(policies) };
        self.queue.push(self.now, Event::Master { generation: self.master.generation, via: None, input });
    }

    /// Runs the master's batch at once if nothing else is due now, as it would be the next event; otherwise plans it.
    fn batch_or_plan(&mut self) {
        let free = !self.master.planned && self.master.busy_until <= self.now;
        if free && self.queue.next_at().is_none_or(|at| at > self.now) {
            self.events += 1;
            self.master_batch(self.master.generation);
        } else {
            self.plan_master();
        }
    }

    fn plan_master(&mut self) {
        if !std::mem::replace(&mut self.master.planned, true) {
            let at = self.now.max(self.master.busy_until);
            self.queue.push(at, Event::MasterBatch { generation: self.master.generation });
        }
    }

    pub(super) fn master_wake(&mut self, generation: u32) {
        if self.master.generation != generation || self.master.wake != Some(self.now) {
            return;
        }
        self.master.wake = None;
        let shown = self.master.clock.show(self.now);
        if self.master.core.as_ref().is_some_and(|core| core.is_due(shown)) {
            self.master.inbox.push(Input::Wake);
            self.batch_or_plan();
        } else {
            self.plan_master_wake();
        }
    }

    fn plan_master_wake(&mut self) {
        let Some(at) = self.master.core.as_ref().and_then(Master::next_wake) else { return };
        let at = self.master.clock.when(at).max(self.now);
        if self.master.wake.is_none_or(|planned| at < planned) {
            self.master.wake = Some(at);
            self.queue.push(at, Event::MasterWake { generation: self.master.generation });
        }
    }

    /// Handles all inputs that have arrived together, as the daemon does. Outputs follow when the batch is durable.
    pub(super) fn master_batch(&mut self, generation: u32) {
        if self.master.generation != generation {
            return;
        }
        let (now, shown) = (self.now, self.master.clock.show(self.now));
        self.master.planned = false;
        self.corrupt_master();
        let mut out = std::mem::take(&mut self.master.out);
        let mut inbox = std::mem::take(&mut self.master.inbox);
        let Some(core) = &mut self.master.core else { return };
        let inputs = u32::try_from(inbox.len()).unwrap_or(u32::MAX);
        for input in inbox.drain(..) {
            self.recording.iter_mut().for_each(|recording| recording.input(&input));
            core.handle(input, shown, &mut out);
        }
        core.end_batch(shown, &mut out);
        self.recording.iter_mut().for_each(|recording| recording.end_batch(shown, &out));
        out.log.clear();
        self.master.inbox = inbox;
        self.corrupt_master();
        self.batches += 1;
        let ready = now + self.model.master_cost * inputs;
        self.master.busy_until = ready;
        self.master_commits(&mut out, ready);
        self.master.out = out;
        self.plan_master_wake();
    }

    /// Writes the entries of a batch, and then carries out its outputs. A process whose crash is planned ends there.
    fn master_commits(&mut self, out: &mut Outbox, ready: Time) {
        let planned_crash = PlannedCrash::take(&mut self.master.planned_crash, out);
        if let Some(stuck) = &mut self.master.fenced
            && (!out.persist.is_empty() || *stuck == FenceState::Waits)
        {
            *stuck = FenceState::Waits;
            out.clear();
        }
        let generation = self.master.generation;
        let mut written = ready;
        if !out.persist.is_empty() || !self.master.writer.is_idle() {
            self.master.writer.push(out);
            written = self.start_registry_write(ready).unwrap_or(ready);
        } else {
            for output in out.outputs.drain(..) {
                self.master_output(output, ready);
            }
        }
        if let Some(planned_crash) = planned_crash {
            self.queue.push(planned_crash.time(ready, written), Event::MasterCrashes { generation, planned_crash });
        }
    }

    /// Starts the next write unless one is in progress. Returns the time at which it is complete.
    fn start_registry_write(&mut self, from: Time) -> Option<Time> {
        let writes = self.master.writer.begin()?;
        let mut until = from;
        if writes {
            until = until + self.draw_duration(|model| &model.registry_write) + self.master.writer.slowness(self.now);
        }
        self.queue.push(until, Event::MasterWritten { generation: self.master.generation });
        Some(until)
    }

    pub(super) fn master_written(&mut self, generation: u32) {
        if self.master.generation != generation || self.registry_refuses() {
            return;
        }
        for batch in self.master.writer.done() {
            let persist = batch.persist;
            let persist = self.defective_registry_write(persist);
            self.master.written.extend(persist);
            for output in batch.outputs {
                self.master_output(output, self.now);
            }
            if self.master.generation != generation {
                return;
            }
        }
        self.start_registry_write(self.now);
    }

    /// Ends the master if the disk refuses its write, which may or may not be durable for the next one. Returns whether
    /// it ended.
    fn registry_refuses(&mut self) -> bool {
        let now = self.now;
        let Some((refusal, _)) = self.master.refusal.filter(|(_, until)| now < *until) else { return false };
        if !self.master.writer.writes() {
            return false;
        }
        if self.defect == Some(super::Defect::IgnoredRegistryRefusals) {
            self.master.writer.take_entries();
            return false;
        }
        self.observer.noted(&Note::RegistryRefused { why: &refusal.error.to_string() }, now);
        // The whole write is durable, or nothing of it.
        let written = self.master.writer.take_entries();
        if refusal.partial % 2 == 1 {
            self.master.written.extend(written);
        }
        self.stop_master(0, true);
        // A supervisor restarts the master.
        self.queue.push(now + EXIT_PAUSE, Event::StartMaster);
        true
    }

    /// Crashes the master's process as planned.
    pub(super) fn master_crashes(&mut self, generation: u32, planned_crash: PlannedCrash) {
        if self.master.generation == generation {
            let durable = if let CrashPoint::Writing(durable) = planned_crash.point { durable } else { 0 };
            self.stop_master(durable, true);
            self.queue.push(self.now + planned_crash.downtime, Event::StartMaster);
        }
    }

    pub(super) fn master_output(&mut self, output: Output, ready: Time) {
        match output {
            Output::Send { to, from, message } => self.send_to_agent(&to, from, message, ready),
            Output::Link { pid } => {
                if let Some(agent) = agents::number(&pid) {
                    self.master.links.insert(agent);
                }
            }
            Output::Unlink { pid } => {
                if let Some(agent) = agents::number(&pid) {
                    self.master.links.remove(&agent);
                }
            }
            Output::OpenStream { request, .. } => {
                self.master.requests.remove(&request.0);
            }
            Output::SchedulerEvent { stream, event } => {
                if let Some(scheduler) = self.master.streams.get(&stream.0).copied() {
                    self.tell_scheduler(scheduler, stream.0, ToScheduler::Event(event), ready);
                }
            }
            Output::CloseStream { stream } => {
                if let Some(scheduler) = self.master.streams.remove(&stream.0) {
                    self.tell_scheduler(scheduler, stream.0, ToScheduler::Closed, ready);
                }
            }
            Output::Respond { request: RequestId(request), answer } => {
                if self.master.operators.remove(&request) {
                    let done = answer.is_ok();
                    return self.observer.noted(&Note::OperatorAnswered { request, done }, self.now);
                }
                let waiting = self.master.requests.remove(&request);
                if let Some(waiting) = &waiting
                    && let Some(call) = &waiting.call
                    && let Some(error) = self.defective_answer()
                {
                    return self.refuse_call(waiting.scheduler, waiting.connection, error, call, ready);
                }
                debug_assert!(waiting.is_none() || answer.is_ok(), "a call carried out: {answer:?}");
            }
            Output::Refuse { request: RequestId(request), error, call } => {
                if let Some(waiting) = self.master.requests.remove(&request) {
                    self.refuse_call(waiting.scheduler, waiting.connection, error, &call, ready);
                }
            }
            Output::Exit { reason } => {
                self.observer.noted(&Note::MasterExits { reason: &reason }, self.now);
                self.stop_master(0, true);
                // A supervisor restarts the master.
                self.queue.push(self.now + EXIT_PAUSE, Event::StartMaster);
            }
            Output::OperatorSubscribed { .. } | Output::OperatorEvent { .. } => {}
        }
    }

    /// Returns a call to its scheduler with the reason of the refusal.
    fn refuse_call(&mut self, scheduler: u32, connection: u64, error: CallError, call: &scheduler::Call, ready: Time) {
        let why = CallRefusal::Rejected(error);
        let what = ToScheduler::Refused { call: Box::new(protos::evolve::evolve(call)), why };
        self.tell_scheduler(scheduler, connection, what, ready);
    }

    fn send_to_agent(&mut self, to: &Pid, from: Sender, message: Outgoing, ready: Time) {
        let Some(agent) = agents::number(to) else { return };
        let delay = self.latency();
        if self.loses_message(&message) {
            return;
        }
        let Some(host) = self.agents.get_mut(agent as usize) else { return };
        let Some(at) = host.to_agent.send(self.now, ready + delay) else { return };
        let epoch = host.to_agent.epoch();
        if host.is_light() {
            return self.queue.push(at, Event::Light { agent, epoch, message });
        }
        let generation = host.generation;
        if let Some(message) = agents::incoming(message) {
            let from = match from {
                Sender::Master => self.master.pid(),
                observer => Pid::new(&observer.to_string(), self.master.address()),
            };
            let input = agent::Input::Message { from, message: Box::new(message) };
            self.queue.push(at, Event::Agent { agent, generation, epoch: Some(epoch), input });
        }
    }

    /// Crashes the master's process. Connected clients notice it after a while.
    ///
    /// Of the batches being written, the first `durable` modulo their number plus one are durable. Messages on their
    /// way arrive if `arrives`, otherwise they are lost.
    pub(super) fn stop_master(&mut self, durable: u32, arrives: bool) {
        if self.master.core.take().is_none() {
            return;
        }
        self.observer.noted(&Note::MasterStops, self.now);
        let broken = self.master.writer.broken();
        let whole = durable as usize % (broken.len() + 1);
        self.master.written.extend(broken.into_iter().take(whole).flat_map(|batch| batch.persist));
        let generation = self.master.generation;
        self.master.generation += 1;
        self.master.planned_crash = None;
        self.master.inbox.clear();
        self.master.planned = false;
        self.master.wake = None;
        self.master.links.clear();
        self.master.requests.clear();
        self.master.operators.clear();
        self.master.streams.clear();
        for agent in 0..self.agents.len() {
            if !arrives {
                self.agents[agent].to_agent.cut();
            }
            self.break_to_master(agent as u32);
        }
        for scheduler in 0..self.schedulers.len() {
            if self.schedulers[scheduler].master_generation == generation {
                self.cut_scheduler(scheduler as u32, arrives);
            }
        }
    }
}
