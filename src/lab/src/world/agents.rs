//! An agent's process: its core, its disk, and the carrying out of what it says.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use agent::{Agent, Answer, Config, ContainerName, Incoming, Input, Outbox, Output, Recovered, Tree};
use base::{Pid, Time};
use master::{Message, Outgoing};
use protos::mesos::SlaveInfo;
use resources::{Format, Resources};
use rustc_hash::FxHashMap;

use super::event::{Event, ToExecutor};
use super::light::LightAgent;
use super::master::master_pid;
use super::network::Lane;
use super::{Fidelity, Observer, World};
use crate::seeds::Seed;

/// An agent of a world.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// Its host's name.
    pub hostname: String,
    /// All that it has.
    pub resources: Resources,
    /// Its attributes.
    pub attributes: Vec<protos::mesos::Attribute>,
    /// Its region and zone.
    pub domain: Option<protos::mesos::DomainInfo>,
}

impl AgentSpec {
    /// A plain agent.
    pub fn new(hostname: &str, resources: Resources) -> AgentSpec {
        AgentSpec { hostname: hostname.to_owned(), resources, attributes: Vec::new(), domain: None }
    }

    /// What it says of itself.
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

/// An agent's host: the process, if it runs, and what outlives it.
pub(super) struct AgentHost {
    pub index: u32,
    pub spec: AgentSpec,
    seed: Seed,
    core: Option<Box<Agent>>,
    /// What there is of it, if only the outside is modelled.
    pub light: Option<LightAgent>,
    /// Counts its starts.
    pub life: u32,
    disk: Tree,
    /// Whether the connection to the master is watched.
    linked: bool,
    pub to_master: Lane,
    pub to_agent: Lane,
    inbox: Vec<Input>,
    planned: bool,
    wake: Option<Time>,
    /// The executor of each container that lives.
    pub containers: FxHashMap<ContainerName, u32>,
    /// The executor of each stream.
    pub streams: FxHashMap<u64, u32>,
    /// The executor and the connection of each call that waits for an answer.
    pub requests: FxHashMap<u64, (u32, u64)>,
}

impl AgentHost {
    pub fn new(index: usize, spec: AgentSpec, seed: Seed) -> AgentHost {
        AgentHost {
            index: index as u32,
            spec,
            seed,
            core: None,
            light: None,
            life: 0,
            disk: Tree::default(),
            linked: false,
            to_master: Lane::default(),
            to_agent: Lane::default(),
            inbox: Vec::new(),
            planned: false,
            wake: None,
            containers: FxHashMap::default(),
            streams: FxHashMap::default(),
            requests: FxHashMap::default(),
        }
    }

    pub fn is_light(&self) -> bool {
        self.light.is_some()
    }

    /// Whether its process runs.
    pub fn runs(&self) -> bool {
        self.core.is_some() || self.light.is_some()
    }

    pub fn pid(&self) -> Pid {
        pid(self.index)
    }
}

/// The pid of the agent of this number, in all its lives.
pub(super) fn pid(index: u32) -> Pid {
    let address = Ipv4Addr::from_bits(0x0a00_0000 + index + 1);
    Pid::new("slave(1)", SocketAddrV4::new(address, 5051))
}

/// The number of the agent with this pid.
pub(super) fn number(pid: &Pid) -> Option<u32> {
    pid.address().ip().to_bits().checked_sub(0x0a00_0001)
}

/// What an agent takes in of what a master sends: the same messages, by other names.
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

/// What a master takes in of what an agent sends; pongs go to the observer that has pinged.
fn for_master(to: &Pid, message: agent::Outgoing) -> Option<Message> {
    use agent::Outgoing as Said;
    Some(match message {
        Said::RegisterSlave(m) => Message::RegisterSlave(Box::new(m)),
        Said::ReregisterSlave(m) => Message::ReregisterSlave(Box::new(m)),
        Said::UnregisterSlave(m) => Message::UnregisterSlave(Box::new(m)),
        Said::UpdateSlave(m) => Message::UpdateSlave(Box::new(m)),
        Said::StatusUpdate(m) => Message::StatusUpdate(Box::new(m)),
        Said::UpdateOperationStatus(m) => Message::UpdateOperationStatus(Box::new(m)),
        Said::ExitedExecutor(m) => Message::ExitedExecutor(Box::new(m)),
        Said::ExecutorToFramework(m) => Message::ExecutorToFramework(Box::new(m)),
        Said::PongSlave(_) => {
            let observer = to.id().strip_prefix("slave-observer(")?.strip_suffix(')')?.parse().ok()?;
            Message::PongSlave { observer }
        }
        _ => return None,
    })
}

impl<O: Observer> World<O> {
    pub(super) fn start_agent(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        if host.runs() {
            return;
        }
        if self.model.fidelity == Fidelity::Light {
            host.light = Some(LightAgent::default());
            return self.light_registers(agent);
        }
        let mut config = Config::new(host.pid(), "/w");
        config.boot_id = "boot-0".to_owned();
        let (seed, now) = (host.seed.nth("life", host.life as usize).number(), self.now);
        let mut out = Outbox::default();
        // What the agent itself has written is always whole, so it can always start.
        let started = Recovered::read(&host.disk, true).map_err(|why| why.to_string()).and_then(|found| {
            Agent::new(config, host.spec.info(), found, seed, now, &mut out).map_err(|why| why.to_string())
        });
        if let Ok(mut core) = started {
            core.end_batch(now, &mut out);
            host.core = Some(Box::new(core));
            self.agent_outbox(agent, out);
            self.agent_input(agent, Input::Detected { master: Some(master_pid()) });
        }
    }

    /// Gives an agent an input at once.
    pub(super) fn agent_input(&mut self, agent: u32, input: Input) {
        let host = &mut self.agents[agent as usize];
        if host.core.is_none() {
            return;
        }
        host.inbox.push(input);
        if !std::mem::replace(&mut host.planned, true) {
            self.queue.push(self.now, Event::AgentBatch { agent, life: host.life });
        }
    }

    /// Gives an agent an input later, if it still lives the same life then.
    pub(super) fn agent_later(&mut self, agent: u32, delay: Duration, input: Input) {
        let life = self.agents[agent as usize].life;
        self.queue.push(self.now + delay, Event::Agent { agent, life, epoch: None, input: Box::new(input) });
    }

    pub(super) fn agent_arrival(&mut self, agent: u32, life: u32, epoch: Option<u32>, input: Input) {
        let host = &self.agents[agent as usize];
        if host.life == life && epoch.is_none_or(|epoch| host.to_agent.carries(epoch)) {
            self.agent_input(agent, input);
        }
    }

    pub(super) fn agent_wake(&mut self, agent: u32, life: u32) {
        let host = &mut self.agents[agent as usize];
        if host.life != life {
            return;
        }
        host.wake = None;
        if host.core.as_ref().and_then(|core| core.next_wake()).is_some_and(|at| at <= self.now) {
            self.agent_input(agent, Input::Wake);
        } else {
            self.plan_agent_wake(agent);
        }
    }

    fn plan_agent_wake(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        let Some(at) = host.core.as_ref().and_then(|core| core.next_wake()) else { return };
        if host.wake.is_none_or(|planned| at < planned) {
            host.wake = Some(at);
            self.queue.push(at.max(self.now), Event::AgentWake { agent, life: host.life });
        }
    }

    pub(super) fn agent_batch(&mut self, agent: u32, life: u32) {
        let host = &mut self.agents[agent as usize];
        if host.life != life {
            return;
        }
        host.planned = false;
        let inputs = std::mem::take(&mut host.inbox);
        let Some(core) = &mut host.core else { return };
        let mut out = Outbox::default();
        inputs.into_iter().for_each(|input| core.handle(input, self.now, &mut out));
        core.end_batch(self.now, &mut out);
        self.agent_outbox(agent, out);
        self.plan_agent_wake(agent);
    }

    /// First durable, then visible.
    fn agent_outbox(&mut self, agent: u32, out: Outbox) {
        let mut ready = self.now;
        if !out.persist.is_empty() {
            ready = ready + self.write(|model| &model.agent_write);
            let disk = &mut self.agents[agent as usize].disk;
            out.persist.iter().for_each(|entry| disk.apply(entry));
        }
        for output in out.outputs {
            self.agent_output(agent, output, ready);
        }
    }

    fn agent_output(&mut self, agent: u32, output: Output, ready: Time) {
        match output {
            Output::Send { to, message } => {
                let message = std::sync::Arc::unwrap_or_clone(message);
                if let Some(message) = for_master(&to, message) {
                    self.send_to_master(agent, message, ready);
                }
            }
            Output::Link { .. } => {
                self.agents[agent as usize].linked = true;
                if self.master.core.is_none() {
                    self.break_to_master(agent);
                }
            }
            Output::RedetectMaster => {
                self.agent_later(agent, Duration::from_millis(100), Input::Detected { master: Some(master_pid()) });
            }
            Output::ExecutorEvent { stream, event } => {
                if let Some(executor) = self.agents[agent as usize].streams.get(&stream.0).copied() {
                    self.tell_executor(executor, ToExecutor::Event { connection: stream.0, event }, ready);
                }
            }
            Output::CloseStream { stream } => {
                if let Some(executor) = self.agents[agent as usize].streams.remove(&stream.0) {
                    self.tell_executor(executor, ToExecutor::Closed { connection: stream.0 }, ready);
                }
            }
            Output::Respond { request, answer } => {
                let waiting = self.agents[agent as usize].requests.remove(&request.0);
                if let (Some((executor, connection)), Answer::Refused { .. }) = (waiting, answer) {
                    self.tell_executor(executor, ToExecutor::Refused { connection }, ready);
                }
            }
            Output::Launch { container, spec } => self.launch_container(agent, container, &spec, ready),
            Output::Reattach { container, .. } => self.reattach_container(agent, container),
            Output::Destroy { container } => self.destroy_container(agent, &container),
            Output::ChangeVolumes { change, .. } => {
                self.agent_later(agent, ready.since(self.now), Input::VolumesChanged { change });
            }
            Output::Exit { .. } => {
                // A supervisor starts it again.
                self.stop_agent(agent);
                self.queue.push(self.now + Duration::from_secs(1), Event::StartAgent(agent));
            }
            Output::Signal { .. } | Output::Delete { .. } | Output::LinkVolumes { .. } | Output::Measure => {}
        }
    }

    /// An agent's libprocess message goes on its way.
    pub(super) fn send_to_master(&mut self, agent: u32, message: Message, ready: Time) {
        if self.master.core.is_none() {
            return;
        }
        let delay = self.latency();
        let host = &mut self.agents[agent as usize];
        if let Some(at) = host.to_master.send(self.now, ready + delay) {
            let over = Some((agent, host.to_master.epoch()));
            let input = Box::new(master::Input::Message { from: host.pid(), message });
            self.queue.push(at, Event::Master { life: self.master.life, over, input });
        }
    }

    /// An agent's connection to the master breaks.
    pub(super) fn break_to_master(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        host.to_master.cut();
        if std::mem::take(&mut host.linked) {
            self.agent_later(agent, Duration::from_millis(50), Input::Exited { pid: master_pid() });
        }
    }

    /// The master's connection to an agent breaks.
    pub(super) fn break_to_agent(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        host.to_agent.cut();
        if self.master.links.remove(&agent) {
            let input = Box::new(master::Input::Exited { pid: pid(agent) });
            let at = self.now + Duration::from_millis(50);
            self.queue.push(at, Event::Master { life: self.master.life, over: None, input });
        }
    }

    /// An agent's process ends without a word; its executors live on.
    pub(super) fn stop_agent(&mut self, agent: u32) {
        let host = &mut self.agents[agent as usize];
        if host.core.take().is_none() && host.light.take().is_none() {
            return;
        }
        host.life += 1;
        host.linked = false;
        host.planned = false;
        host.wake = None;
        host.inbox.clear();
        host.requests.clear();
        host.streams.clear();
        host.to_master.cut();
        self.break_to_agent(agent);
        self.executors_lose(agent);
    }
}
