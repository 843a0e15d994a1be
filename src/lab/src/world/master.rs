//! The master's process: its core, its registry, and the carrying out of what it says.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use base::{Pid, Time};
use master::{Config, Input, Master, Outbox, Outgoing, Output, RequestId, Sender};
use protos::mesos::MasterInfo;
use protos::mesos::internal::Registry;
use rustc_hash::{FxHashMap, FxHashSet};

use super::event::{Event, ToScheduler};
use super::{Observer, World, agents};

/// A master's process and its disk.
pub(super) struct MasterHost {
    pub core: Option<Master>,
    /// Counts its starts.
    pub life: u32,
    config: Config,
    registry: Registry,
    inbox: Vec<Input>,
    out: Outbox,
    /// A batch is in the queue.
    planned: bool,
    /// Until then it is at work on what came before.
    busy_until: Time,
    /// The earliest wake-up in the queue.
    wake: Option<Time>,
    /// The agents whose connections are watched.
    pub links: FxHashSet<u32>,
    /// Calls that wait for an answer: who made them, over which connection, and the call for when it is refused.
    pub requests: FxHashMap<u64, Waiting>,
    /// Whose stream it is.
    pub streams: FxHashMap<u64, u32>,
}

/// A scheduler's call that has not been answered.
pub(super) struct Waiting {
    pub who: u32,
    pub connection: u64,
    pub call: Box<sdk::v1::scheduler::Call>,
}

impl MasterHost {
    pub fn new(config: Config) -> MasterHost {
        MasterHost {
            core: None,
            life: 0,
            config,
            registry: Registry::default(),
            inbox: Vec::new(),
            out: Outbox::default(),
            planned: false,
            busy_until: Time::EPOCH,
            wake: None,
            links: FxHashSet::default(),
            requests: FxHashMap::default(),
            streams: FxHashMap::default(),
        }
    }
}

const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 255, 0, 1), 5050);

/// The master's pid, in all its lives.
pub(super) fn master_pid() -> Pid {
    Pid::new("master", ADDRESS)
}

/// The text of a stream's `Mesos-Stream-Id`.
pub(super) fn stream_text(connection: u64) -> Arc<str> {
    format!("stream-{connection}").into()
}

impl<O: Observer> World<O> {
    pub(super) fn start_master(&mut self) {
        if self.master.core.is_some() {
            return;
        }
        let life = self.master.life;
        let info = MasterInfo {
            id: format!("m{life}"),
            ip: u32::from_le_bytes(ADDRESS.ip().octets()),
            port: u32::from(ADDRESS.port()),
            pid: Some(master_pid().to_string()),
            hostname: Some("master".to_owned()),
            version: Some("1.11.0".to_owned()),
            ..MasterInfo::default()
        };
        let seed = self.seed.nth("master", life as usize).number();
        let config = self.master.config.clone();
        self.master.core = Some(Master::new(config, info, &self.master.registry, seed, self.now));
        self.plan_master();
    }

    /// Something has come, unless the process or the connection that it was for is gone.
    pub(super) fn master_arrival(&mut self, life: u32, over: Option<(u32, u32)>, input: Input) {
        let lost = |(agent, epoch): (u32, u32)| !self.agents[agent as usize].to_master.carries(epoch);
        if self.master.life != life || self.master.core.is_none() || over.is_some_and(lost) {
            return;
        }
        self.master.inbox.push(input);
        self.plan_master();
    }

    /// An operator calls the master; the answer is not waited for.
    pub fn operate(&mut self, call: protos::mesos::master::Call) {
        let request = RequestId(self.name());
        let input = Box::new(Input::OperatorCall { request, call: Box::new(call), principal: None });
        self.queue.push(self.now, Event::Master { life: self.master.life, over: None, input });
    }

    fn plan_master(&mut self) {
        if !std::mem::replace(&mut self.master.planned, true) {
            let at = self.now.max(self.master.busy_until);
            self.queue.push(at, Event::MasterBatch { life: self.master.life });
        }
    }

    pub(super) fn master_wake(&mut self, life: u32) {
        if self.master.life != life {
            return;
        }
        self.master.wake = None;
        let due = self.master.core.as_ref().and_then(Master::next_wake).is_some_and(|at| at <= self.now);
        if due {
            self.master.inbox.push(Input::Wake);
            self.plan_master();
        } else {
            self.plan_master_wake();
        }
    }

    fn plan_master_wake(&mut self) {
        let Some(at) = self.master.core.as_ref().and_then(Master::next_wake) else { return };
        if self.master.wake.is_none_or(|planned| at < planned) {
            self.master.wake = Some(at);
            self.queue.push(at.max(self.now), Event::MasterWake { life: self.master.life });
        }
    }

    /// All that has come is handled together, as the daemon does; what follows is visible once it is durable.
    pub(super) fn master_batch(&mut self, life: u32) {
        if self.master.life != life {
            return;
        }
        let now = self.now;
        self.master.planned = false;
        let mut out = std::mem::take(&mut self.master.out);
        let mut inbox = std::mem::take(&mut self.master.inbox);
        let Some(core) = &mut self.master.core else { return };
        let inputs = u32::try_from(inbox.len()).unwrap_or(u32::MAX);
        inbox.drain(..).for_each(|input| core.handle(input, now, &mut out));
        core.end_batch(now, &mut out);
        self.master.inbox = inbox;
        let mut ready = now + self.model.master_cost * inputs;
        self.master.busy_until = ready;
        if !out.persist.is_empty() {
            ready = ready + self.write(|model| &model.registry_write);
            out.persist.drain(..).for_each(|op| op.apply(&mut self.master.registry));
        }
        for output in out.outputs.drain(..) {
            self.master_output(output, ready);
        }
        self.master.out = out;
        self.plan_master_wake();
    }

    fn master_output(&mut self, output: Output, ready: Time) {
        match output {
            Output::Send { to, from, message } => self.master_sends(&to, from, message, ready),
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
                if let Some(who) = self.master.streams.get(&stream.0).copied() {
                    self.tell_scheduler(who, stream.0, ToScheduler::Event(event), ready);
                }
            }
            Output::CloseStream { stream } => {
                if let Some(who) = self.master.streams.remove(&stream.0) {
                    self.tell_scheduler(who, stream.0, ToScheduler::Closed, ready);
                }
            }
            Output::Respond { request: RequestId(request), answer } => {
                let Some(waiting) = self.master.requests.remove(&request) else { return };
                if !matches!(answer.status, 200 | 202) {
                    let why = format!("{} {}", answer.status, answer.text);
                    let what = ToScheduler::Refused { call: waiting.call, why };
                    self.tell_scheduler(waiting.who, waiting.connection, what, ready);
                }
            }
            Output::Exit { .. } => self.stop_master(),
            Output::Log { .. } | Output::OperatorSubscribed { .. } | Output::OperatorEvent { .. } => {}
        }
    }

    fn master_sends(&mut self, to: &Pid, from: Sender, message: Outgoing, ready: Time) {
        let Some(agent) = agents::number(to) else { return };
        let delay = self.latency();
        let Some(host) = self.agents.get_mut(agent as usize) else { return };
        let Some(at) = host.to_agent.send(self.now, ready + delay) else { return };
        let epoch = host.to_agent.epoch();
        if host.is_light() {
            if let Outgoing::PingSlave(_) = message
                && let Sender::Observer(observer) = from
            {
                // The pong of an agent that is well, without the way through the queue and back.
                return self.light_pong(agent, observer, at);
            }
            return self.queue.push(at, Event::Light { agent, epoch, message: Box::new(message) });
        }
        let life = host.life;
        let from = Pid::new(&from.to_string(), ADDRESS);
        if let Some(message) = agents::incoming(message) {
            let input = agent::Input::Message { from, message: Box::new(message) };
            self.queue.push(at, Event::Agent { agent, life, epoch: Some(epoch), input: Box::new(input) });
        }
    }

    /// The process ends without a word. Whoever is connected notices after a while.
    pub(super) fn stop_master(&mut self) {
        if self.master.core.take().is_none() {
            return;
        }
        self.master.life += 1;
        self.master.inbox.clear();
        self.master.planned = false;
        self.master.wake = None;
        self.master.links.clear();
        self.master.requests.clear();
        self.master.streams.clear();
        for agent in 0..self.agents.len() {
            self.agents[agent].to_agent.cut();
            self.break_to_master(agent as u32);
        }
        for who in 0..self.schedulers.len() {
            self.cut_scheduler(who as u32);
        }
    }
}
