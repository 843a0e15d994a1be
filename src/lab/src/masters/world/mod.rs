//! A world of masters: the real cores of a group (`peers`), with modelled hosts, disks, connections, clients and
//! operators, under a virtual clock.
//!
//! It has the queue, the clocks and the connections of the lab's other world, and disks and processes of its own. It
//! does not know plans or campaigns.

mod clients;
mod defect;
mod disk;
mod host;
mod network;
mod operator;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use peers::{Configuration, Peer, Standing};

use crate::dist::Dist;
use crate::faults::Broken;
use crate::faults::log::Log;
use crate::faults::rng::FaultRng;
use crate::masters::history::Operation;
use crate::seeds::{Rng, Seed};
use crate::world::clock::Clock;
use crate::world::queue::Queue;
use crate::world::{BEGIN, DiskError};
use clients::Client;
pub use defect::Defect;
pub use disk::PARTS;
use host::Host;
use network::Network;
pub use operator::Act;
use operator::Task;
use rules::Rules;

/// The length of a lease.
pub const LEASE: Duration = Duration::from_secs(1);

/// What a world is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Number of masters that found the group.
    pub founders: usize,
    /// Number of further masters, which run when an operator adds them.
    pub spares: usize,
    /// Number of clients.
    pub clients: usize,
    /// One way through the network.
    pub latency: Dist,
    /// A durable write.
    pub write: Dist,
    /// Entries after which members compact their logs.
    pub compact_after: usize,
    /// Whether a process ends that has lost the lead, as the daemon does. Otherwise it goes on.
    pub ends_when_deposed: bool,
    /// A deliberate defect.
    pub defect: Option<Defect>,
}

enum Event {
    /// A process is started.
    Start(usize),
    /// A process that has lost the lead ends.
    Ends {
        at: usize,
        life: u64,
    },
    /// A write to the disk is complete.
    Written {
        at: usize,
        life: u64,
    },
    /// It may be time for a tick.
    Wake {
        at: usize,
        life: u64,
    },
    /// A stopped process goes on.
    Resume(usize),
    Arrive {
        from: usize,
        to: usize,
        epoch: Option<u32>,
        bytes: Vec<u8>,
    },
    Client(usize),
    GiveUp {
        client: usize,
        operation: usize,
    },
    Operator(usize),
}

/// A group of masters in a box.
pub struct World {
    now: Time,
    queue: Queue<Event>,
    setup: Setup,
    hosts: Vec<Host>,
    network: Network,
    disk_times: Rng,
    chance: FaultRng,
    clients: Vec<Client>,
    /// Clients do nothing more.
    at_rest: bool,
    /// Counts calls and answers.
    steps: u64,
    tasks: Vec<Task>,
    /// Configurations that operators have asked for.
    changes: Vec<Configuration>,
    /// What masters have answered to operators.
    outcomes: Vec<String>,
    rules: Rules,
    log: Log,
    events: u64,
    digest: u64,
    /// When each master has begun to answer, and which.
    led: Vec<(Time, usize)>,
    /// Bytes that were sent to masters that are not founders.
    heard: BTreeMap<usize, Vec<Vec<u8>>>,
}

impl World {
    /// A world whose founders are about to start.
    pub fn new(setup: Setup, seed: Seed, keep_log: bool) -> World {
        let count = setup.founders + setup.spares;
        let mut world = World {
            now: BEGIN,
            queue: Queue::default(),
            hosts: (0..count).map(|_| Host::default()).collect(),
            network: Network::new(count, setup.latency.clone(), seed.child("network")),
            disk_times: seed.child("disks").rng(),
            chance: FaultRng::new(seed.child("hosts")),
            clients: (0..setup.clients).map(|n| Client::new(FaultRng::new(seed.nth("client", n)))).collect(),
            at_rest: false,
            steps: 0,
            tasks: Vec::new(),
            changes: Vec::new(),
            outcomes: Vec::new(),
            rules: Rules::default(),
            log: Log::new(keep_log),
            events: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            led: Vec::new(),
            heard: BTreeMap::new(),
            setup,
        };
        for (at, host) in world.hosts.iter_mut().enumerate() {
            host.address = format!("m{at}:5050");
            let mut clock = Clock::exact();
            if world.setup.defect == Some(Defect::ImpatientMembers) && at % 2 == 1 {
                clock.drifts(BEGIN, 500_000);
            }
            host.clock = Some(clock);
        }
        for at in 0..world.setup.founders {
            let wait = world.chance.span(LEASE / 10);
            world.after(wait, Event::Start(at));
        }
        for client in 0..world.setup.clients {
            world.after(LEASE, Event::Client(client));
        }
        world
    }

    fn after(&mut self, wait: Duration, event: Event) {
        self.queue.push(self.now + wait, event);
    }

    /// Lets that much time pass, or the world go on until a rule is broken.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.rules.broken.is_none()
            && let Some((at, event)) = self.queue.pop_until(end)
        {
            self.now = self.now.max(at);
            self.events += 1;
            self.happen(event);
        }
        self.now = self.now.max(end);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(at) => self.start(at),
            Event::Ends { at, life } => {
                if self.hosts[at].lives == life {
                    let part = self.chance.within(0, u64::from(PARTS)) as u32;
                    self.end(at, part, Some(host::RESTART), "it has lost the lead");
                }
            }
            Event::Written { at, life } => self.written(at, life),
            Event::Wake { at, life } => self.wake(at, life),
            Event::Resume(at) => self.run_thread(at),
            Event::Arrive { from, to, epoch, bytes } => self.arrive((from, to, epoch), bytes),
            Event::Client(client) => self.client_acts(client),
            Event::GiveUp { client, operation } => self.client_gives_up(client, operation),
            Event::Operator(task) => self.operator_looks(task),
        }
    }

    fn arrive(&mut self, (from, to, epoch): (usize, usize, Option<u32>), bytes: Vec<u8>) {
        if !self.network.carries(from, to, epoch) {
            return;
        }
        rules::fold(&mut self.digest, &self.now.since(BEGIN).as_nanos().to_le_bytes());
        rules::fold(&mut self.digest, &bytes);
        if to >= self.setup.founders {
            self.heard.entry(to).or_default().push(bytes.clone());
        }
        self.push(to, host::Job::Message(bytes));
    }

    /// A process answers clients for the first time.
    fn took_over(&mut self, at: usize) {
        self.led.push((self.now, at));
    }

    /// The virtual clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many events have happened.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Hash over all messages between masters with their times: equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The first rule that was broken.
    pub fn broken(&self) -> Option<&Broken> {
        self.rules.broken.as_ref()
    }

    /// A rule is broken.
    pub fn fail(&mut self, rule: &'static str, text: impl FnOnce() -> String) {
        self.rules.fail(rule, text);
    }

    /// The operations of all clients.
    pub fn history(&self) -> &[Operation] {
        &self.rules.history
    }

    /// How often a master has begun to lead.
    pub fn leaders(&self) -> usize {
        self.led.len()
    }

    /// Adds a line to the log.
    pub fn note(&mut self, text: impl FnOnce() -> String) {
        self.log.line(self.now, text);
    }

    /// Ends the world; returns the lines of its log.
    pub fn into_log(self) -> Vec<String> {
        self.log.into_lines()
    }
}

/// What goes wrong.
impl World {
    /// The process of a master ends; of a write in progress, this many parts are durable.
    pub fn crash(&mut self, at: usize, part: u32, away: Option<Duration>) {
        self.end(at, part, away, "a crash");
    }

    /// The process of a master ends in its next write.
    pub fn doom(&mut self, at: usize, part: u32, away: Duration) {
        self.hosts[at].doom = Some((part, away));
    }

    /// A process is started, unless there is one.
    pub fn restart(&mut self, at: usize) {
        self.queue.push(self.now, Event::Start(at));
    }

    /// The process of a master does nothing for a while.
    pub fn stop(&mut self, at: usize, span: Duration) {
        self.hosts[at].stopped_until = self.now + span;
        self.after(span, Event::Resume(at));
    }

    /// Both connections between two masters break.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.network.cut(one, other);
    }

    /// What one master sends to another one is lost for a while, or late.
    pub fn part(&mut self, from: usize, to: usize, span: Duration, arrives: bool) {
        match arrives {
            true => self.network.stall(from, to, self.now + span),
            false => self.network.part(from, to, self.now + span),
        }
    }

    /// Of a hundred messages, this many are lost for a while.
    pub fn lose(&mut self, percent: u64, span: Duration) {
        self.network.lose(percent, self.now + span);
    }

    /// All messages take longer for a while.
    pub fn slow_network(&mut self, by: Duration, span: Duration) {
        self.network.slow_down(by, self.now + span);
    }

    /// Writes of a master take longer for a while.
    pub fn slow_disk(&mut self, at: usize, by: Duration, span: Duration) {
        self.hosts[at].disk.slow_down(by, self.now + span);
    }

    /// The disk of a master refuses writes for a while; this many parts of a write are in the file.
    pub fn refuse_writes(&mut self, at: usize, error: DiskError, part: u32, span: Duration) {
        self.hosts[at].disk.refuse(error, part, self.now + span);
    }

    /// The clock of a master goes too fast by `drift` parts of a million.
    pub fn drift(&mut self, at: usize, drift: i32) {
        if self.setup.defect != Some(Defect::ImpatientMembers)
            && let Some(clock) = &mut self.hosts[at].clock
        {
            clock.drifts(self.now, drift);
        }
    }

    /// All faults end. Processes that were stopped go on, and those that ended are started.
    pub fn heal(&mut self) {
        self.network.heal(self.now);
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            host.disk.heal();
            host.doom = None;
            host.stopped_until = Time::EPOCH;
            self.run_thread(at);
            let is_member = at < self.setup.founders || !self.hosts[at].disk.is_empty();
            if is_member {
                self.restart(at);
            }
        }
    }
}

/// What tests and campaigns look at.
impl World {
    /// Clients do nothing more. Returns when none waits any more.
    pub fn rest(&mut self) -> Time {
        self.at_rest = true;
        self.patience()
    }

    /// A master that answers clients.
    pub fn leader(&mut self) -> Option<usize> {
        (0..self.hosts.len()).find(|at| self.answers(*at))
    }

    /// Number of masters.
    pub fn count(&self) -> usize {
        self.hosts.len()
    }

    /// Writes a key through the master that leads. Returns the number of the operation.
    pub fn write(&mut self, key: &str) -> Option<usize> {
        let leader = self.leader()?;
        self.ask_to_write(leader, key, false, None)
    }

    /// Reads a key through the master that leads.
    pub fn read_key(&mut self, key: &str) {
        if let Some(leader) = self.leader() {
            self.read(leader, key);
        }
    }

    /// Whether a write was acknowledged.
    pub fn is_acknowledged(&self, operation: usize) -> bool {
        self.rules.acknowledged.contains(&(operation as u64))
    }

    /// A write that was acknowledged and that a member does not know.
    pub fn lost(&self, at: usize) -> Option<u64> {
        self.lost_write(at)
    }

    fn peer(&self, at: usize) -> Option<&Peer> {
        self.hosts[at].process.as_ref().map(|process| &process.peer)
    }

    /// What a master is to its group.
    pub fn standing(&self, at: usize) -> Option<Standing> {
        self.peer(at).map(Peer::standing)
    }

    /// The state of a member in short, with its configuration and number of entries.
    pub fn position(&self, at: usize) -> Option<(u32, usize, u64)> {
        let peer = self.peer(at)?;
        Some((peer.members()?.0.number, peer.decided(), rules::hash(peer.state()?)))
    }

    /// The next thing that an operator does so that every master is a member with its present disk; none if they are.
    pub fn next_repair(&self) -> Option<Act> {
        let members = self.rules.newest.as_ref()?;
        let member = |at: &usize| members.at(&self.hosts[*at].address);
        let all = || 0..self.hosts.len();
        let absent = all().find(|at| member(at).is_none());
        let stored = |at: usize| self.hosts[at].disk.stored().map(|stored| stored.disk);
        let stale = all().find(|at| member(at).is_some_and(|member| stored(*at) != Some(member.disk)));
        absent.map(Act::Add).or(stale.map(Act::Remove))
    }
}
