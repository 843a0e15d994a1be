//! The event queue and the virtual clock: what happens next, and when.
//!
//! What an event does is in the file of the process that it is for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::Time;
use protos::mesos::{executor, scheduler};

use crate::agents::AgentHost;
use crate::containers::Executor;
use crate::invariants::Truth;
use crate::masters::MasterHost;
use crate::network::{Channel, Network};
use crate::scheduler::Scheduler;
use crate::steps::Setup;

/// When every history begins.
const BEGIN: Time = Time::from_secs(1_000_000);

/// So many events within one step mean that the cluster does not come to rest.
const MOST_EVENTS: usize = 200_000;

/// Something that happens to a process.
#[derive(Clone, Debug)]
pub enum Event {
    /// Something arrives, unless its connection has broken since.
    Deliver { channel: Channel, epoch: u64, payload: Box<Event> },
    /// An input of the master of that life.
    Master { life: u64, input: master::Input },
    /// An input of an agent of that life.
    Agent { agent: usize, life: u64, input: agent::Input },
    /// A libprocess message for the master: sender, receiver, name and body.
    MasterMessage { from: base::Pid, to: String, name: &'static str, body: Vec<u8> },
    /// A libprocess message for an agent: sender, name and body.
    AgentMessage { agent: usize, from: base::Pid, name: String, body: Vec<u8> },
    /// The master starts.
    StartMaster,
    /// An agent starts.
    StartAgent(usize),
    /// Something for a scheduler's connection.
    Scheduler { who: usize, connection: u64, what: ToScheduler },
    /// A scheduler without a connection subscribes.
    Subscribe(usize),
    /// Something for an executor.
    Executor { executor: usize, what: ToExecutor },
}

/// What comes to a scheduler.
#[derive(Clone, Debug)]
pub enum ToScheduler {
    /// An event of its stream.
    Event(Arc<scheduler::Event>),
    /// The answer to a call.
    Answer(u16),
    /// The connection is gone.
    Closed,
}

/// What comes to an executor.
#[derive(Clone, Debug)]
pub enum ToExecutor {
    /// Its process has been started by an agent of that life.
    Started { life: u64 },
    /// It is time to subscribe.
    Subscribe,
    /// An event of a stream.
    Event { connection: u64, event: Arc<executor::Event> },
    /// The answer to a call: whether it was taken.
    Answer { connection: u64, taken: bool },
    /// A connection is gone.
    Closed { connection: u64 },
    /// Its task ends by itself.
    TaskEnds { finished: bool },
    /// The process ends.
    Exit { status: i32 },
}

/// A small seeded generator (SplitMix64).
pub struct Rng(pub u64);

impl Rng {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A cluster in a box.
pub struct World {
    pub now: Time,
    pub rng: Rng,
    pub net: Network,
    pub master: MasterHost,
    pub agents: Vec<AgentHost>,
    pub schedulers: Vec<Scheduler>,
    pub executors: Vec<Executor>,
    pub truth: Truth,
    /// Whether schedulers only decline and acknowledge: the history is over.
    pub calm: bool,
    /// What has happened, a line each.
    pub log: Vec<String>,
    /// The first invariant that did not hold.
    pub broken: Option<String>,
    /// Events that were carried out.
    pub events: u64,
    queue: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    ids: u64,
}

impl World {
    /// A cluster whose processes are about to start.
    pub fn new(setup: &Setup) -> World {
        let mut world = World {
            now: BEGIN,
            rng: Rng(setup.seed),
            net: Network::default(),
            master: MasterHost::default(),
            agents: (0..setup.agents).map(AgentHost::new).collect(),
            schedulers: setup.frameworks.iter().enumerate().map(|(n, kind)| Scheduler::new(n, kind)).collect(),
            executors: Vec::new(),
            truth: Truth::default(),
            calm: false,
            log: Vec::new(),
            broken: None,
            events: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            ids: 0,
        };
        world.after(0, Event::StartMaster);
        for agent in 0..setup.agents {
            world.after(10, Event::StartAgent(agent));
        }
        for scheduler in 0..setup.frameworks.len() {
            world.after(20, Event::Subscribe(scheduler));
        }
        world
    }

    /// A number that names something, never used twice.
    pub fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Puts an event into the queue.
    pub fn schedule(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), event);
    }

    /// The same, so many milliseconds from now.
    pub fn after(&mut self, milliseconds: u64, event: Event) {
        self.schedule(self.now + Duration::from_millis(milliseconds), event);
    }

    /// Writes a line of the history.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let line = format!("{} {}", self.now, line());
        self.log.push(line);
    }

    /// An invariant does not hold.
    pub fn fail(&mut self, why: String) {
        self.note(|| format!("BROKEN {why}"));
        self.broken.get_or_insert(why);
    }

    /// Lets time pass, and all that is due in it happen.
    pub fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..MOST_EVENTS {
            if self.broken.is_some() {
                return;
            }
            let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
            let master = self.master.core.as_ref().and_then(master::Master::next_wake);
            let agents = self.agents.iter().enumerate();
            let agent = agents.filter_map(|(n, host)| Some((host.core.as_ref()?.next_wake()?, n))).min();
            let next = [queued, master, agent.map(|(at, _)| at)].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(at);
            self.events += 1;
            if queued == Some(at) {
                if let Some((_, event)) = self.queue.pop_first() {
                    self.happen(event);
                }
            } else if master == Some(at) {
                self.master_input(master::Input::Wake);
            } else if let Some((_, n)) = agent {
                self.agent_input(n, agent::Input::Wake);
            }
            self.check();
        }
        self.fail("the cluster does not come to rest".to_owned());
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deliver { channel, epoch, payload } => {
                if self.net.is_current(channel, epoch) {
                    self.happen(*payload);
                }
            }
            Event::Master { life, input } => {
                if self.master.life == life {
                    self.master_input(input);
                }
            }
            Event::Agent { agent, life, input } => {
                if self.agents[agent].life == life {
                    self.agent_input(agent, input);
                }
            }
            Event::MasterMessage { from, to, name, body } => self.master_message(from, &to, name, &body),
            Event::AgentMessage { agent, from, name, body } => self.agent_message(agent, from, &name, &body),
            Event::StartMaster => self.start_master(),
            Event::StartAgent(agent) => self.start_agent(agent),
            Event::Scheduler { who, connection, what } => self.scheduler_input(who, connection, what),
            Event::Subscribe(who) => self.subscribe(who),
            Event::Executor { executor, what } => self.executor_input(executor, what),
        }
    }
}
