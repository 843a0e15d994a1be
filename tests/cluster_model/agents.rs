//! An agent's process: its core, its disk, and the carrying out of what it says.

use std::collections::BTreeMap;

use agent::{Agent, Answer, Config, Incoming, Input, Outbox, Output, Persist, Recovered, Tree};
use base::Pid;
use protos::mesos::SlaveInfo;
use resources::{Format, Role, parse_text};

use crate::masters::master_pid;
use crate::network::Channel;
use crate::world::{Event, ToExecutor, World};

/// An agent's host: the process, if it runs, and what outlives it.
pub struct AgentHost {
    index: usize,
    pub core: Option<Agent>,
    /// Counts its starts; what was meant for an earlier life is dropped.
    pub life: u64,
    pub disk: Tree,
    /// The host's starts.
    pub boots: u64,
    /// Whether the connection to the master is watched.
    linked: bool,
    /// Who waits for an answer: executor and connection.
    pub requests: BTreeMap<u64, (usize, u64)>,
    /// The executor of each stream.
    pub streams: BTreeMap<u64, usize>,
    /// Inputs that wait for the end of their batch.
    inbox: Vec<Input>,
    /// The process ends in its next batch that writes, in the midst of it.
    pub doomed: Option<Doom>,
}

/// How much of a batch is done before the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Doom {
    /// So many entries are written, and of the next one, if it appends, a part.
    pub entries: usize,
    /// If all were written, so many outputs are carried out.
    pub outputs: usize,
    /// For how long the process stays away, in milliseconds.
    pub away: u64,
}

impl AgentHost {
    /// A host on which no agent has ever run.
    pub fn new(index: usize) -> AgentHost {
        AgentHost {
            index,
            core: None,
            life: 0,
            disk: Tree::default(),
            boots: 0,
            linked: false,
            requests: BTreeMap::new(),
            streams: BTreeMap::new(),
            inbox: Vec::new(),
            doomed: None,
        }
    }

    /// The agent's pid, in all its lives.
    pub fn pid(&self) -> Pid {
        format!("slave(1)@10.0.1.{}:5051", self.index + 1).parse().unwrap()
    }

    fn config(&self) -> Config {
        let mut config = Config::new(self.pid(), "/w");
        config.boot_id = format!("boot-{}", self.boots);
        config
    }

    fn info(&self) -> SlaveInfo {
        let total = parse_text("cpus:4;mem:1024;disk:1000", &Role::star()).unwrap();
        SlaveInfo {
            hostname: format!("agent{}", self.index),
            port: Some(5051),
            resources: total.to_proto(Format::PostRefinement),
            checkpoint: Some(true),
            ..SlaveInfo::default()
        }
    }
}

impl World {
    /// Starts an agent with its disk, if it does not run.
    pub fn start_agent(&mut self, agent: usize) {
        if self.agents[agent].core.is_some() {
            return;
        }
        self.note(|| format!("agent {agent} starts"));
        let (seed, now) = (self.rng.next(), self.now);
        let host = &mut self.agents[agent];
        let recovered = match Recovered::read(&host.disk, true) {
            Ok(recovered) => recovered,
            Err(why) => return self.fail(format!("agent {agent}: {why}")),
        };
        let mut out = Outbox::default();
        match Agent::new(host.config(), host.info(), recovered, seed, now, &mut out) {
            Ok(mut core) => {
                core.end_batch(now, &mut out);
                host.core = Some(core);
            }
            Err(why) => return self.fail(format!("agent {agent} cannot start: {why}")),
        }
        self.agent_outbox(agent, out);
        self.agent_later(agent, Input::Detected { master: Some(master_pid()) });
    }

    /// An agent's process ends without a word; its executors live on.
    pub fn crash_agent(&mut self, agent: usize) {
        let host = &mut self.agents[agent];
        if host.core.take().is_none() {
            return;
        }
        host.life += 1;
        host.linked = false;
        host.inbox.clear();
        host.doomed = None;
        host.requests.clear();
        host.streams.clear();
        self.note(|| format!("agent {agent} crashes"));
        self.net.break_channel(Channel::ToMaster(agent));
        self.break_to_agent(agent);
        self.agent_is_lost(agent);
    }

    /// An agent's connection to the master breaks.
    pub fn break_to_master(&mut self, agent: usize) {
        self.net.break_channel(Channel::ToMaster(agent));
        if std::mem::take(&mut self.agents[agent].linked) {
            self.agent_later(agent, Input::Exited { pid: master_pid() });
        }
    }

    /// Gives an agent an input a little later, if it still runs then.
    pub fn agent_later(&mut self, agent: usize, input: Input) {
        let delay = self.rng.below(200);
        let life = self.agents[agent].life;
        self.after(delay, Event::Agent { agent, life, input });
    }

    /// A message has arrived.
    pub fn agent_message(&mut self, agent: usize, from: Pid, name: &str, body: &[u8]) {
        match Incoming::decode(name, body) {
            Ok(message) => self.agent_input(agent, Input::Message { from, message: Box::new(message) }),
            Err(why) => self.fail(format!("agent {agent}: {why}")),
        }
    }

    /// An input: the last of its batch, or one that others follow.
    pub fn agent_input(&mut self, agent: usize, input: Input) {
        let now = self.now;
        if self.agents[agent].core.is_none() {
            return;
        }
        let wakes = matches!(input, Input::Wake);
        self.agents[agent].inbox.push(input);
        if !wakes && self.rng.one_in(4) {
            let life = self.agents[agent].life;
            return self.after(5, Event::Agent { agent, life, input: Input::Wake });
        }
        let inputs = std::mem::take(&mut self.agents[agent].inbox);
        let Some(core) = &mut self.agents[agent].core else { return };
        let mut out = Outbox::default();
        inputs.into_iter().for_each(|input| core.handle(input, now, &mut out));
        core.end_batch(now, &mut out);
        self.agent_outbox(agent, out);
    }

    /// First durable, then visible; a doomed process gets only so far.
    fn agent_outbox(&mut self, agent: usize, out: Outbox) {
        let host = &mut self.agents[agent];
        let doom = if out.persist.is_empty() { None } else { host.doomed.take() };
        let Some(doom) = doom else {
            out.persist.iter().for_each(|entry| host.disk.apply(entry));
            out.outputs.into_iter().for_each(|output| self.agent_output(agent, output));
            return;
        };
        let written = doom.entries.min(out.persist.len());
        out.persist[..written].iter().for_each(|entry| host.disk.apply(entry));
        if let Some(Persist::Append { path, bytes }) = out.persist.get(written) {
            let part = bytes[..bytes.len() / 2].to_vec();
            host.disk.apply(&Persist::Append { path: path.clone(), bytes: part });
        }
        if written == out.persist.len() {
            out.outputs.into_iter().take(doom.outputs).for_each(|output| self.agent_output(agent, output));
        }
        self.crash_agent(agent);
        self.after(doom.away, Event::StartAgent(agent));
    }

    fn agent_output(&mut self, agent: usize, output: Output) {
        match output {
            Output::Send { to, message } => {
                if self.master.core.is_some() {
                    let from = self.agents[agent].pid();
                    let (to, name, body) = (to.id().to_owned(), message.full_name(), message.encode());
                    self.post(Channel::ToMaster(agent), Event::MasterMessage { from, to, name, body });
                }
            }
            Output::Link { .. } => {
                self.agents[agent].linked = true;
                if self.master.core.is_none() {
                    self.break_to_master(agent);
                }
            }
            Output::RedetectMaster => self.agent_later(agent, Input::Detected { master: Some(master_pid()) }),
            Output::ExecutorEvent { stream, event } => {
                if let Some(executor) = self.agents[agent].streams.get(&stream.0).copied() {
                    self.post_executor(executor, ToExecutor::Event { connection: stream.0, event });
                }
            }
            Output::CloseStream { stream } => {
                if let Some(executor) = self.agents[agent].streams.remove(&stream.0) {
                    self.post_executor(executor, ToExecutor::Closed { connection: stream.0 });
                }
            }
            Output::Respond { request, answer } => {
                if let Some((executor, connection)) = self.agents[agent].requests.remove(&request.0) {
                    let taken = !matches!(answer, Answer::Refused { .. });
                    self.post_executor(executor, ToExecutor::Answer { connection, taken });
                }
            }
            Output::Launch { container, spec } => self.launch_container(agent, container, &spec),
            Output::Reattach { container, .. } => self.reattach_container(agent, &container),
            Output::Signal { .. } => {}
            Output::Destroy { container } => self.destroy_container(agent, &container),
            Output::ChangeVolumes { change, .. } => self.agent_later(agent, Input::VolumesChanged { change }),
            Output::Delete { .. }
            | Output::DeleteSandbox { .. }
            | Output::LinkVolumes { .. }
            | Output::Resize { .. }
            | Output::Measure => {}
            Output::Exit { code, message } => {
                // A supervisor starts it again.
                self.note(|| format!("agent {agent} ends with {code}: {message}"));
                self.truth.agent_exits += 1;
                self.crash_agent(agent);
                self.after(1000, Event::StartAgent(agent));
            }
        }
    }

    fn post_executor(&mut self, executor: usize, what: ToExecutor) {
        self.post(Channel::ExecutorEvents(executor), Event::Executor { executor, what });
    }
}
