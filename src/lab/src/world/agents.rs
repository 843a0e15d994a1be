//! An agent's process: its core, its disk, and the execution of its outputs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use agent::{Agent, Config, ContainerName, Incoming, Input, Outbox, Output, Persist, Recovered};
use base::{Pid, Time};
use cores::Core;
use master::{Message, Outgoing};
use protos::mesos::{SlaveInfo, TaskInfo};
use resources::{Format, Resources};
use rustc_hash::FxHashMap;
use store::Waits;

use super::checkpoints::CheckpointStore;
use super::clock::Clock;
use super::dropped::TasksToDrop;
use super::event::{CrashPoint, Event, MasterConnection, PlannedCrash, ToExecutor};
use super::light::LightAgent;
use super::master::EXIT_PAUSE;
use super::network::OneWayConnection;
use super::volumes::VolumeChange;
use super::writer::Writer;
use super::{Fidelity, Note, Observer, World};
use crate::seeds::Seed;

/// The parameters of an agent in a world.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// Name of the agent's host.
    pub hostname: String,
    /// Total resources of the agent.
    pub resources: Resources,
    /// Attributes of the agent.
    pub attributes: Vec<protos::mesos::Attribute>,
    /// Region and zone of the agent.
    pub domain: Option<protos::mesos::DomainInfo>,
    /// Share of the agent's tasks that fail, beside those that fail anywhere.
    pub failures: f64,
}

impl AgentSpec {
    /// Creates an agent without attributes, domain and failures.
    pub fn new(hostname: &str, resources: Resources) -> AgentSpec {
        AgentSpec { hostname: hostname.to_owned(), resources, attributes: Vec::new(), domain: None, failures: 0.0 }
    }

    /// Returns the agent's `SlaveInfo`.
    pub(super) fn info(&self) -> SlaveInfo {
        SlaveInfo {
            hostname: self.hostname.clone(),
            port: Some(5051),
            resources: self.resources.to_proto(Format::PostRefinement),
            attributes: self.attributes.clone(),
            checkpoint: Some(true),
            domain: self.domain.clone(),
            ..SlaveInfo::default()
        }
    }
}

/// The host of an agent: the process, if it runs, and the state that outlives it.
pub(super) struct AgentHost {
    pid: Pid,
    pub spec: AgentSpec,
    seed: Seed,
    core: Option<Box<Agent>>,
    /// State of a light agent, of which only the messages are modelled.
    pub light: Option<LightAgent>,
    /// Number of starts of the agent's process.
    pub generation: u32,
    /// Number of starts of the host.
    pub boots: u32,
    /// Checkpoints of the agent, and their disk.
    pub checkpoint_store: CheckpointStore,
    /// Directories of persistent volumes, with the tasks that have written into each.
    pub volumes: BTreeMap<String, BTreeSet<String>>,
    /// Changes of volumes that are not on the disk yet, in order; `volume_waits` has the wait before the next attempt.
    pub volume_changes: VecDeque<VolumeChange>,
    pub volume_waits: Waits,
    pub writer: Writer<Persist, Output>,
    /// Set if the process will crash in its next batch that has outputs or writes.
    pub planned_crash: Option<PlannedCrash>,
    pub clock: Clock,
    /// Master whose connection the agent monitors.
    pub linked: Option<Pid>,
    pub to_master: OneWayConnection,
    pub to_agent: OneWayConnection,
    inbox: Vec<Input>,
    planned: bool,
    wake: Option<Time>,
    /// Number of further containers that cannot be started.
    pub failing: u32,
    /// Executor of each running container.
    pub containers: FxHashMap<ContainerName, u32>,
    /// Executor of each event stream.
    pub streams: FxHashMap<u64, u32>,
    /// Executor and connection of each call that waits for an answer.
    pub requests: FxHashMap<u64, (u32, u64)>,
}

impl AgentHost {
    pub fn new(index: usize, spec: AgentSpec, seed: Seed) -> AgentHost {
        AgentHost {
            pid: pid(index as u32),
            spec,
            seed,
            core: None,
            light: None,
            generation: 0,
            boots: 0,
            checkpoint_store: CheckpointStore::new(),
            volumes: BTreeMap::new(),
            volume_changes: VecDeque::new(),
            volume_waits: Waits::default(),
            writer: Writer::default(),
            planned_crash: None,
            clock: Clock::exact(),
            linked: None,
            to_master: OneWayConnection::default(),
            to_agent: OneWayConnection::default(),
            inbox: Vec::new(),
            planned: false,
            wake: None,
            failing: 0,
            containers: FxHashMap::default(),
            streams: FxHashMap::default(),
            requests: FxHashMap::default(),
        }
    }

    pub fn is_light(&self) -> bool {
        self.light.is_some()
    }

    /// Returns whether the agent's process runs.
    pub fn runs(&self) -> bool {
        self.core.is_some() || self.light.is_some()
    }

    pub fn pid(&self) -> Pid {
        self.pid.clone()
    }

    /// Returns the agent's core, if its process runs and is not a light agent.
    pub fn core(&mut self) -> Option<&mut Agent> {
        self.core.as_deref_mut()
    }
}

/// Returns the pid of the agent with this number, which is the same after each start.
pub(super) fn pid(index: u32) -> Pid {
    let address = Ipv4Addr::from_bits(0x0a00_0000 + index + 1);
    Pid::new("slave(1)", SocketAddrV4::new(address, 5051))
}

/// Returns the number of the agent with this pid.
pub(super) fn number(pid: &Pid) -> Option<u32> {
    pid.address().ip().to_bits().checked_sub(0x0a00_0001)
}

/// Converts a message that a master sends to the type that an agent receives; `None` if agents do not receive it.
pub(super) fn incoming(message: Outgoing) -> Option<Incoming> {
    Some(match message {
        Outgoing::SlaveRegistered(m) => Incoming::SlaveRegistered(*m),
        Outgoing::SlaveReregistered(m) => Incoming::SlaveReregistered(*m),
        Outgoing::PingSlave(m) => Incoming::PingSlave(*m),
        Outgoing::Shutdown(m) => Incoming::Shutdown(*m),
        Outgoing::RunTask(m) => Incoming::RunTask(*m),
        Outgoing::RunTaskGroup(m) => Incoming::RunTaskGroup(*m),
        Outgoing::KillTask(m) => Incoming::KillTask(*m),
        Outgoing::StatusUpdateAcknowledgement(m) => Incoming::StatusUpdateAcknowledgement(*m),
        Outgoing::ShutdownExecutor(m) => Incoming::ShutdownExecutor(*m),
        Outgoing::ShutdownFramework(m) => Incoming::ShutdownFramework(*m),
        Outgoing::UpdateFramework(m) => Incoming::UpdateFramework(*m),
        Outgoing::CheckpointResources(m) => Incoming::CheckpointResources(*m),
        Outgoing::ApplyOperation(m) => Incoming::ApplyOperation(*m),
        Outgoing::AcknowledgeOperationStatus(m) => Incoming::AcknowledgeOperationStatus(*m),
        Outgoing::ReconcileOperations(m) => Incoming::ReconcileOperations(*m),
        Outgoing::DrainSlave(m) => Incoming::DrainSlave(*m),
        Outgoing::FrameworkToExecutor(m) => Incoming::FrameworkToExecutor(*m),
        _ => return None,
    })
}

/// Converts a message that an agent sends to the type that a master receives. Pongs are for the observer that has
/// pinged.
fn for_master(to: &Pid, message: agent::Outgoing) -> Option<Message> {
    use agent::Outgoing as FromAgent;
    Some(match message {
        FromAgent::RegisterSlave(m) => Message::RegisterSlave(m),
        FromAgent::ReregisterSlave(m) => Message::ReregisterSlave(m),
        FromAgent::UnregisterSlave(m) => Message::UnregisterSlave(m),
        FromAgent::UpdateSlave(m) => Message::UpdateSlave(m),
        FromAgent::StatusUpdate(m) => Message::StatusUpdate(m),
        FromAgent::UpdateOperationStatus(m) => Message::UpdateOperationStatus(m),
        FromAgent::ExitedExecutor(m) => Message::ExitedExecutor(m),
        FromAgent::ExecutorToFramework(m) => Message::ExecutorToFramework(m),
        FromAgent::PongSlave(_) => {
            let observer = to.id().strip_prefix("slave-observer(")?.strip_suffix(')')?.parse().ok()?;
            Message::PongSlave { observer }
        }
        _ => return None,
    })
}

/// Returns the framework and the tasks of a launch.
fn launched(message: &Incoming) -> Option<(&str, &[TaskInfo])> {
    let (framework, tasks) = match message {
        Incoming::RunTask(run) => (&run.framework, std::slice::from_ref(&run.task)),
        Incoming::RunTaskGroup(run) => (&run.framework, run.task_group.tasks.as_slice()),
        _ => return None,
    };
    Some((framework.id.as_ref().map_or("", |id| id.value.as_str()), tasks))
}

impl<O: Observer> World<O> {
    pub(super) fn start_agent(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        if host.runs() {
            return;
        }
        if self.model.fidelity == Fidelity::Light {
            host.light = Some(LightAgent::new(&host.pid));
            return self.light_registers(agent);
        }
        host.checkpoint_store.disk().process_starts();
        if let Err(why) = host.checkpoint_store.checkpoints.recover() {
            let why = why.disk_failure().why;
            self.observer.noted(&Note::AgentStartRefused { agent, why: &why }, self.now);
            // A supervisor restarts the agent.
            return self.queue.push(self.now + EXIT_PAUSE, Event::StartAgent(agent));
        }
        let mut config = Config::new(host.pid(), "/w");
        config.boot_id = format!("boot-{}", host.boots);
        // Completed executors are not read.
        config.max_completed_executors_per_framework = 0;
        let (seed, now) = (host.seed.nth("life", host.generation as usize).number(), host.clock.show(self.now));
        let mut out = Outbox::default();
        // Checkpoints that an agent has written are always complete, so the agent must be able to start.
        let started =
            Recovered::read(&host.checkpoint_store.tree(), true).map_err(|why| why.to_string()).and_then(|found| {
                Agent::new(config, host.spec.info(), found, seed, now, &mut out).map_err(|why| why.to_string())
            });
        match started {
            Ok(mut core) => {
                core.end_batch(now, &mut out);
                host.core = Some(Box::new(core));
                self.observer.noted(&Note::AgentStarts { agent }, self.now);
                let generation = host.generation;
                self.agent_outbox(agent, &mut out);
                if self.model.restarts {
                    self.check_agent_disk(agent, generation);
                }
                self.agent_input(agent, Input::Detected { master: Some(self.master.pid()) });
            }
            Err(why) => self.observer.noted(&Note::AgentCannotStart { agent, why: &why }, self.now),
        }
    }

    /// Passes an input to an agent now.
    pub(super) fn agent_input(&mut self, agent: u32, input: Input) {
        let host = &mut self.agents[agent as usize];
        if host.core.is_none() {
            return;
        }
        host.inbox.push(input);
        if !std::mem::replace(&mut host.planned, true) {
            self.queue.push(self.now, Event::AgentBatch { agent, generation: host.generation });
        }
    }

    /// Passes an input to an agent later, if the same process still runs then.
    pub(super) fn agent_input_later(&mut self, agent: u32, delay: Duration, input: Input) {
        let generation = self.agents[agent as usize].generation;
        self.queue.push(self.now + delay, Event::Agent { agent, generation, epoch: None, input });
    }

    /// Passes an input to an agent as the last action of an event. If nothing else is due now, its batch runs at once,
    /// as it would be the next event.
    fn agent_input_at_once(&mut self, agent: u32, input: Input) {
        let host = &mut self.agents[agent as usize];
        if host.core.is_some() && !host.planned && self.queue.next_at().is_none_or(|at| at > self.now) {
            host.inbox.push(input);
            self.events += 1;
            let generation = host.generation;
            self.agent_batch(agent, generation);
        } else {
            self.agent_input(agent, input);
        }
    }

    pub(super) fn agent_arrival(&mut self, agent: u32, generation: u32, epoch: Option<u32>, input: Input) {
        let host = &self.agents[agent as usize];
        if host.generation == generation && epoch.is_none_or(|epoch| self.reaches(agent, epoch)) {
            self.note_tasks_of_former_master(agent, &input);
            let input = self.forge_sender(agent, input);
            self.agent_input_at_once(agent, input);
        }
    }

    /// Reports tasks to the observer that an agent receives from a master which it has left.
    fn note_tasks_of_former_master(&mut self, agent: u32, input: &Input) {
        let Input::Message { from, message } = input else { return };
        if self.deposed.is_none() || self.agents[agent as usize].linked.as_ref().is_none_or(|pid| pid == from) {
            return;
        }
        let Some((framework, tasks)) = launched(message) else { return };
        for task in tasks {
            self.observer.noted(&Note::TaskFromFormerMaster { agent, framework, task: &task.task_id.value }, self.now);
        }
    }

    /// Returns whether a message that a master sent to an agent in this epoch of their connection still arrives.
    fn reaches(&self, agent: u32, epoch: u32) -> bool {
        let other = || self.deposed.as_ref().is_some_and(|other| other.reaches(agent, epoch));
        self.agents[agent as usize].to_agent.carries(epoch) || other()
    }

    pub(super) fn agent_wake(&mut self, agent: u32, generation: u32) {
        let host = &mut self.agents[agent as usize];
        if host.generation != generation || host.wake != Some(self.now) {
            return;
        }
        host.wake = None;
        if host.core.as_ref().is_some_and(|core| core.is_due(host.clock.show(self.now))) {
            self.agent_input_at_once(agent, Input::Wake);
        } else {
            self.plan_agent_wake(agent);
        }
    }

    fn plan_agent_wake(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        let Some(at) = host.core.as_ref().and_then(|core| core.next_wake()) else { return };
        let at = host.clock.when(at).max(self.now);
        if host.wake.is_none_or(|planned| at < planned) {
            host.wake = Some(at);
            self.queue.push(at, Event::AgentWake { agent, generation: host.generation });
        }
    }

    pub(super) fn agent_batch(&mut self, agent: u32, generation: u32) {
        let host = &mut self.agents[agent as usize];
        if host.generation != generation {
            return;
        }
        host.planned = false;
        let Some(core) = &mut host.core else { return };
        let (mut out, shown) = (std::mem::take(&mut self.agent_out), host.clock.show(self.now));
        for input in host.inbox.drain(..) {
            match &input {
                Input::CheckpointsFailing { .. } => host.checkpoint_store.is_reported = true,
                Input::CheckpointsWork => host.checkpoint_store.is_reported = false,
                Input::Message { message, .. } if host.checkpoint_store.is_reported => {
                    let (framework, tasks) = launched(message).unwrap_or_default();
                    for task in tasks.iter().map(|task| task.task_id.value.as_str()) {
                        self.observer.noted(&Note::TaskForFailingDisk { agent, framework, task }, self.now);
                    }
                }
                _ => {}
            }
            if super::defect::is_kept_from_agent(self.defect, &input) {
                continue;
            }
            let dropped = TasksToDrop::by(&input, core);
            core.handle(input, shown, &mut out);
            if let Some(dropped) = dropped {
                dropped.report(agent, core, &mut self.observer, self.now);
            }
        }
        core.end_batch(shown, &mut out);
        self.agent_outbox(agent, &mut out);
        self.agent_out = out;
        self.plan_agent_wake(agent);
    }

    /// Carries out the outputs of a batch. Those that depend on a write wait until it is durable. A process whose crash
    /// is planned ends there.
    fn agent_outbox(&mut self, agent: u32, out: &mut Outbox) {
        let generation = self.agents[agent as usize].generation;
        out.log.clear();
        for output in std::mem::take(&mut out.at_once) {
            self.agent_output(agent, output);
        }
        let host = &mut self.agents[agent as usize];
        if host.generation != generation {
            return out.clear();
        }
        let planned_crash = PlannedCrash::take(&mut host.planned_crash, out);
        let mut written = self.now;
        if !out.persist.is_empty() || !host.writer.is_idle() {
            host.writer.push(out);
            written = self.start_agent_write(agent).unwrap_or(written);
        } else {
            for output in out.outputs.drain(..) {
                self.agent_output(agent, output);
                if self.agents[agent as usize].generation != generation {
                    return;
                }
            }
        }
        if let Some(planned_crash) = planned_crash {
            self.queue
                .push(planned_crash.time(self.now, written), Event::AgentCrashes { agent, generation, planned_crash });
        }
    }

    /// Starts the next write unless one is in progress. Returns the time at which it is complete.
    pub(super) fn start_agent_write(&mut self, agent: u32) -> Option<Time> {
        let host = &mut self.agents[agent as usize];
        let (writes, generation) = (host.writer.begin()?, host.generation);
        let mut until = self.now + if writes { host.writer.slowness(self.now) } else { Duration::ZERO };
        if writes {
            until = until + self.draw_duration(|model| &model.agent_write);
        }
        self.queue.push(until, Event::AgentWritten { agent, generation });
        Some(until)
    }

    /// Crashes the agent's process as planned.
    pub(super) fn agent_crashes(&mut self, agent: u32, generation: u32, planned_crash: PlannedCrash) {
        if self.agents[agent as usize].generation == generation {
            let durable = if let CrashPoint::Writing(durable) = planned_crash.point { durable } else { 0 };
            self.stop_agent(agent, durable, true);
            self.queue.push(self.now + planned_crash.downtime, Event::StartAgent(agent));
        }
    }

    pub(super) fn agent_output(&mut self, agent: u32, output: Output) {
        match output {
            Output::Send { to, message } => {
                let message = std::sync::Arc::unwrap_or_clone(message);
                let Some(message) = for_master(&to, message) else { return };
                // No process listens at the address of an earlier master, unless that has been deposed without knowing
                // it.
                if to.address() == self.master.address() {
                    self.send_to_master(agent, message, self.now);
                } else if self.is_at_deposed(&to) {
                    self.as_deposed(|world| world.send_to_master(agent, message, world.now));
                }
            }
            Output::Link { to } => {
                let leads = self.master.core.is_some() && to.address() == self.master.address();
                let is_received = leads || self.is_at_deposed(&to);
                self.agents[agent as usize].linked = Some(to);
                if !is_received {
                    self.agents[agent as usize].to_master.cut();
                    self.notify_broken_link(agent);
                }
            }
            Output::RedetectMaster => {
                let master = Some(self.master.pid());
                self.agent_input_later(agent, Duration::from_millis(100), Input::Detected { master });
            }
            Output::ExecutorEvent { stream, event } => {
                if let Some(executor) = self.agents[agent as usize].streams.get(&stream.0).copied() {
                    self.tell_executor(executor, ToExecutor::Event { connection: stream.0, event });
                }
            }
            Output::CloseStream { stream } => {
                if let Some(executor) = self.agents[agent as usize].streams.remove(&stream.0) {
                    self.tell_executor(executor, ToExecutor::Closed { connection: stream.0 });
                }
            }
            Output::Respond { request, answer } => {
                let waiting = self.agents[agent as usize].requests.remove(&request.0);
                if let (Some((executor, connection)), Err(_)) = (waiting, answer) {
                    self.tell_executor(executor, ToExecutor::Refused { connection });
                }
            }
            Output::Launch { container, spec } => self.launch_container(agent, container, &spec),
            Output::Reattach { container, .. } => self.reattach_container(agent, container),
            Output::Destroy { container } => self.destroy_container(agent, &container),
            Output::LinkVolumes { container, added, removed, .. } => {
                self.link_volumes(agent, &container, added, &removed);
            }
            Output::ChangeVolumes { change, gone, new } => {
                self.change_volumes(agent, VolumeChange { change, gone, new });
            }
            Output::Exit { message, .. } => {
                self.observer.noted(&Note::AgentExits { agent, why: &message }, self.now);
                self.stop_agent(agent, 0, true);
                // A supervisor restarts the agent.
                self.queue.push(self.now + EXIT_PAUSE, Event::StartAgent(agent));
            }
            Output::Delete { paths } => self.agents[agent as usize].checkpoint_store.disk().deleted(paths.len()),
            Output::Signal { .. }
            | Output::DeleteSandbox { .. }
            | Output::RecordTermination { .. }
            | Output::Forget { .. }
            | Output::Resize { .. }
            | Output::Measure
            // Modelled agents have no credentials.
            | Output::SendAs { .. } => {}
        }
    }

    /// Sends an agent's libprocess message to the master.
    pub(super) fn send_to_master(&mut self, agent: u32, mut message: Message, ready: Time) {
        self.corrupt_reregistration(&mut message);
        if self.master.core.is_none() {
            return;
        }
        let delay = self.latency();
        let host = &mut self.agents[agent as usize];
        if let Some(at) = host.to_master.send(self.now, ready + delay) {
            let via = Some(MasterConnection::Agent(agent, host.to_master.epoch()));
            let input = master::Input::Message { from: host.pid(), message };
            self.queue.push(at, Event::Master { generation: self.master.generation, via, input });
        }
    }

    /// Breaks the connection of an agent to the master.
    pub(super) fn break_to_master(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        host.to_master.cut();
        if host.linked.as_ref().is_some_and(|pid| pid.address() == self.master.address()) {
            self.notify_broken_link(agent);
        }
    }

    /// Returns whether a deposed master that still runs listens at this pid.
    pub(super) fn is_at_deposed(&self, pid: &Pid) -> bool {
        self.deposed.as_ref().is_some_and(|other| other.host.address() == pid.address())
    }

    /// Notifies an agent that its connection to the master has broken.
    fn notify_broken_link(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        if let Some(pid) = host.linked.take() {
            // The notice follows the messages that still arrive over the connection.
            let still = host.to_agent.last().since(self.now);
            self.agent_input_later(agent, still + Duration::from_millis(50), Input::Exited { pid });
        }
    }

    /// Breaks the connection of the master to an agent.
    pub(super) fn break_to_agent(&mut self, agent: u32) {
        self.agents[agent as usize].to_agent.cut();
        self.agent_is_gone(agent, self.now);
    }

    /// Notifies the master, after `since`, that an agent's process or connection has ended.
    fn agent_is_gone(&mut self, agent: u32, since: Time) {
        if self.master.links.remove(&agent) {
            let input = master::Input::Exited { pid: pid(agent) };
            let at = since.max(self.now) + Duration::from_millis(50);
            self.queue.push(at, Event::Master { generation: self.master.generation, via: None, input });
        }
    }

    /// Crashes an agent's process; its executors keep running.
    ///
    /// Of the entries being written, the first `durable` modulo their number plus one are durable, and a half of the
    /// next one if it appends. Messages on their way arrive if `arrives`, otherwise they are lost.
    pub(super) fn stop_agent(&mut self, agent: u32, durable: u32, arrives: bool) {
        let host = &mut self.agents[agent as usize];
        if host.core.take().is_none() && host.light.take().is_none() {
            return;
        }
        let broken: Vec<Persist> = host.writer.broken().into_iter().flat_map(|batch| batch.persist).collect();
        if self.defect == Some(super::Defect::LostJournal) {
            host.checkpoint_store.disk().lose_journal();
        }
        host.checkpoint_store.stop(broken, durable, self.now);
        host.volume_changes.clear();
        host.volume_waits.reset();
        match self.defect {
            Some(super::Defect::EmptiedVolumes) => host.volumes.values_mut().for_each(BTreeSet::clear),
            Some(super::Defect::LostVolumes) => {
                let gone = std::mem::take(&mut host.volumes);
                let notes = gone.keys().map(|directory| Note::VolumeDestroyed { agent, directory });
                notes.for_each(|note| self.observer.noted(&note, self.now));
            }
            _ => {}
        }
        let host = &mut self.agents[agent as usize];
        host.generation += 1;
        host.linked = None;
        host.planned_crash = None;
        host.planned = false;
        host.wake = None;
        host.inbox.clear();
        host.requests.clear();
        host.streams.clear();
        self.observer.noted(&Note::AgentStops { agent }, self.now);
        self.with_each_master(|world| {
            let host = &mut world.agents[agent as usize];
            if !arrives {
                host.to_master.cut();
            }
            host.to_agent.cut();
            let last = host.to_master.last();
            world.agent_is_gone(agent, last);
        });
        self.break_executors(agent);
    }
}
