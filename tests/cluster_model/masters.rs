//! The master's process: its core, its registry, and the carrying out of what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::Pid;
use master::{Config, Input, Master, Message, Outbox, Output, RequestId};
use protos::mesos::MasterInfo;
use protos::mesos::internal::Registry;

use crate::network::Channel;
use crate::world::{Event, ToScheduler, World};

/// The master's address, in all its lives.
const ADDRESS: &str = "10.0.0.1:5050";

/// A master's process and its disk.
#[derive(Default)]
pub struct MasterHost {
    pub core: Option<Master>,
    /// Counts its starts; what was meant for an earlier life is dropped.
    pub life: u64,
    pub registry: Registry,
    /// The agents whose connection is watched.
    links: BTreeSet<usize>,
    /// Who waits for an answer: scheduler and connection.
    pub requests: BTreeMap<u64, (usize, u64)>,
    /// Whose stream it is.
    pub streams: BTreeMap<u64, usize>,
    /// Inputs that wait for the end of their batch.
    inbox: Vec<Input>,
    /// The process ends in its next batch, after so many outputs.
    pub doomed: Option<usize>,
}

/// The master's pid.
pub fn master_pid() -> Pid {
    format!("master@{ADDRESS}").parse().unwrap()
}

impl World {
    /// Starts the master with its registry, if it does not run.
    pub fn start_master(&mut self) {
        if self.master.core.is_some() {
            return;
        }
        let life = self.master.life;
        self.note(|| format!("master {life} starts"));
        let info = MasterInfo {
            id: format!("m{life}"),
            ip: 0x0100_000a,
            port: 5050,
            pid: Some(master_pid().to_string()),
            hostname: Some("master".to_owned()),
            version: Some("1.11.0".to_owned()),
            ..MasterInfo::default()
        };
        let seed = self.rng.next();
        self.master.core = Some(Master::new(Config::default(), info, &self.master.registry, seed, self.now));
    }

    /// The master's process ends without a word.
    pub fn crash_master(&mut self) {
        if self.master.core.take().is_none() {
            return;
        }
        self.note(|| "master crashes".to_owned());
        self.master.life += 1;
        self.master.doomed = None;
        self.master.inbox.clear();
        self.master.links.clear();
        self.master.requests.clear();
        self.master.streams.clear();
        for agent in 0..self.agents.len() {
            self.net.break_channel(Channel::ToAgent(agent));
            self.break_to_master(agent);
        }
        for who in 0..self.schedulers.len() {
            self.cut_scheduler(who);
        }
    }

    /// The master's connection to an agent breaks.
    pub fn break_to_agent(&mut self, agent: usize) {
        self.net.break_channel(Channel::ToAgent(agent));
        if self.master.links.remove(&agent) {
            let delay = self.rng.below(500);
            let input = Input::Exited { pid: self.agents[agent].pid() };
            self.after(delay, Event::Master { life: self.master.life, input });
        }
    }

    /// A message has arrived.
    pub fn master_message(&mut self, from: Pid, to: &str, name: &str, body: &[u8]) {
        match Message::decode(to, name, body) {
            Ok(Some(message)) => self.master_input(Input::Message { from, message }),
            other => self.fail(format!("the master cannot take {name} for {to}: {other:?}")),
        }
    }

    /// An input: the last of its batch, or one that others follow.
    pub fn master_input(&mut self, input: Input) {
        if self.master.core.is_none() {
            return;
        }
        let now = self.now;
        let mut out = Outbox::default();
        let wakes = matches!(input, Input::Wake);
        self.master.inbox.push(input);
        if !wakes && self.rng.one_in(4) {
            return self.after(5, Event::Master { life: self.master.life, input: Input::Wake });
        }
        let inputs = std::mem::take(&mut self.master.inbox);
        let Some(core) = &mut self.master.core else { return };
        inputs.into_iter().for_each(|input| core.handle(input, now, &mut out));
        core.end_batch(now, &mut out);
        let doomed = self.master.doomed.take();
        for op in &out.persist {
            op.apply(&mut self.master.registry);
        }
        for output in out.outputs.into_iter().take(doomed.unwrap_or(usize::MAX)) {
            self.master_output(output);
        }
        if doomed.is_some() {
            self.crash_master();
            let delay = self.rng.below(20_000);
            self.after(delay, Event::StartMaster);
        }
    }

    fn master_output(&mut self, output: Output) {
        match output {
            Output::Send { to, from, message } => {
                let Some(agent) = self.agent_of(&to) else { return };
                let from = format!("{from}@{ADDRESS}").parse().unwrap();
                let name = message.full_name();
                if self.agents[agent].core.is_some() {
                    let body = message.encode();
                    self.post(Channel::ToAgent(agent), Event::AgentMessage { agent, from, name, body });
                }
            }
            Output::Link { pid } => {
                let Some(agent) = self.agent_of(&pid) else { return };
                self.master.links.insert(agent);
                if self.agents[agent].core.is_none() {
                    self.break_to_agent(agent);
                }
            }
            Output::Unlink { pid } => {
                if let Some(agent) = self.agent_of(&pid) {
                    self.master.links.remove(&agent);
                }
            }
            Output::OpenStream { request, .. } => {
                self.master.requests.remove(&request.0);
            }
            Output::SchedulerEvent { stream, event } => {
                let Some(who) = self.master.streams.get(&stream.0).copied() else { return };
                self.post_scheduler(who, stream.0, ToScheduler::Event(event));
            }
            Output::CloseStream { stream } => {
                let Some(who) = self.master.streams.remove(&stream.0) else { return };
                self.post_scheduler(who, stream.0, ToScheduler::Closed);
            }
            Output::Respond { request: RequestId(request), answer } => {
                let Some((who, connection)) = self.master.requests.remove(&request) else { return };
                self.post_scheduler(who, connection, ToScheduler::Answer(answer.status));
            }
            Output::Exit { reason } => self.fail(format!("the master ends itself: {reason}")),
            Output::Log { text, .. } => self.note(|| format!("master: {text}")),
            Output::OperatorSubscribed { .. } | Output::OperatorEvent { .. } => {}
        }
    }

    fn post_scheduler(&mut self, who: usize, connection: u64, what: ToScheduler) {
        self.post(Channel::Events(who), Event::Scheduler { who, connection, what });
    }

    fn agent_of(&self, pid: &Pid) -> Option<usize> {
        self.agents.iter().position(|host| host.pid() == *pid)
    }

    /// Every scheduler's stream id as text.
    pub fn stream_text(connection: u64) -> Arc<str> {
        format!("stream-{connection}").into()
    }
}
