//! A world of masters: the real cores of a group (`peers`), with modelled hosts, disks, connections, clients and
//! operators, under a virtual clock.
//!
//! It shares the queue, the clocks and the connections with the lab's other world, and has disks and processes of its
//! own. The code does not depend on plans or campaigns.

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
use peers::{Configuration, MembershipState, Peer};

use crate::dist::Dist;
use crate::faults::Violation;
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
pub use operator::OperatorAction;
use operator::Task;
use rules::Rules;

/// Duration of the leader's lease.
pub const LEASE: Duration = Duration::from_secs(1);

/// The parameters of a world of masters.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Number of masters that found the group.
    pub founders: usize,
    /// Number of further masters, which run once an operator adds them.
    pub spares: usize,
    /// Number of clients of the registry.
    pub clients: usize,
    /// Distribution of the network's one-way latency.
    pub latency: Dist,
    /// Distribution of the duration of a durable write.
    pub write: Dist,
    /// Number of entries after which members compact their logs.
    pub compact_after: usize,
    /// Whether a process ends after it has lost the lead, as the daemon does. Otherwise it continues.
    pub ends_when_deposed: bool,
    /// A deliberate defect; `None` in a normal world.
    pub defect: Option<Defect>,
}

enum Event {
    /// A process is started.
    Start(usize),
    /// A process that has lost the lead ends.
    Ends {
        at: usize,
        generation: u64,
    },
    /// A write to the disk is complete.
    Written {
        at: usize,
        generation: u64,
    },
    /// The tick of a process may be due.
    Wake {
        at: usize,
        generation: u64,
    },
    /// A stopped process continues.
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

/// A group of masters under a virtual clock.
pub struct World {
    now: Time,
    queue: Queue<Event>,
    setup: Setup,
    hosts: Vec<Host>,
    network: Network,
    disk_times: Rng,
    chance: FaultRng,
    clients: Vec<Client>,
    /// Whether clients start no more operations.
    at_rest: bool,
    /// Number of calls and answers so far.
    steps: u64,
    tasks: Vec<Task>,
    /// Configurations that operators have requested.
    changes: Vec<Configuration>,
    /// Answers of masters to operators.
    outcomes: Vec<String>,
    rules: Rules,
    log: Log,
    events: u64,
    digest: u64,
    /// Times when a master began to answer, each with the master.
    takeovers: Vec<(Time, usize)>,
    /// Messages that were delivered to masters that are not founders.
    received_by_spares: BTreeMap<usize, Vec<Vec<u8>>>,
}

impl World {
    /// Creates a world whose founders are about to start.
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
            takeovers: Vec::new(),
            received_by_spares: BTreeMap::new(),
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

    /// Runs the world for this time, or until a rule is broken.
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
            Event::Ends { at, generation } => {
                if self.hosts[at].generation == generation {
                    let part = self.chance.within(0, u64::from(PARTS)) as u32;
                    self.end(at, part, Some(host::RESTART), "it has lost the lead");
                }
            }
            Event::Written { at, generation } => self.written(at, generation),
            Event::Wake { at, generation } => self.wake(at, generation),
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
            self.received_by_spares.entry(to).or_default().push(bytes.clone());
        }
        self.push(to, host::Job::Message(bytes));
    }

    /// Records that a process answers clients for the first time.
    fn took_over(&mut self, at: usize) {
        self.takeovers.push((self.now, at));
    }

    /// Returns the time of the virtual clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns a hash over all messages between masters with their times. Equal runs have equal digests.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the first broken rule.
    pub fn broken(&self) -> Option<&Violation> {
        self.rules.broken.as_ref()
    }

    /// Records that a rule is broken. Only the first one is kept.
    pub fn fail(&mut self, rule: &'static str, text: impl FnOnce() -> String) {
        self.rules.fail(rule, text);
    }

    /// Returns the operations of all clients.
    pub fn history(&self) -> &[Operation] {
        &self.rules.history
    }

    /// Returns the number of times that a master has begun to lead.
    pub fn leaders(&self) -> usize {
        self.takeovers.len()
    }

    /// Adds a line to the log.
    pub fn note(&mut self, text: impl FnOnce() -> String) {
        self.log.line(self.now, text);
    }

    /// Ends the world and returns the lines of its log.
    pub fn into_log(self) -> Vec<String> {
        self.log.into_lines()
    }
}

/// Methods that inject and end faults.
impl World {
    /// Crashes the process of a master; this many parts of a write in progress are durable. It is started again after
    /// `downtime`.
    pub fn crash(&mut self, at: usize, part: u32, downtime: Option<Duration>) {
        self.end(at, part, downtime, "a crash");
    }

    /// Crashes the process of a master in its next write.
    pub fn plan_crash(&mut self, at: usize, part: u32, downtime: Duration) {
        self.hosts[at].planned_crash = Some((part, downtime));
    }

    /// Starts the process of a master, unless there is one.
    pub fn restart(&mut self, at: usize) {
        self.queue.push(self.now, Event::Start(at));
    }

    /// Stops the process of a master for a while.
    pub fn stop(&mut self, at: usize, span: Duration) {
        self.hosts[at].stopped_until = self.now + span;
        self.after(span, Event::Resume(at));
    }

    /// Breaks both connections between two masters.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.network.cut(one, other);
    }

    /// Loses the messages from one master to another one for a while; if `arrives`, delays them instead.
    pub fn partition(&mut self, from: usize, to: usize, span: Duration, arrives: bool) {
        match arrives {
            true => self.network.stall(from, to, self.now + span),
            false => self.network.partition(from, to, self.now + span),
        }
    }

    /// Loses `percent` of a hundred messages for a while.
    pub fn lose(&mut self, percent: u64, span: Duration) {
        self.network.lose(percent, self.now + span);
    }

    /// Makes all messages take longer for a while.
    pub fn slow_network(&mut self, by: Duration, span: Duration) {
        self.network.slow_down(by, self.now + span);
    }

    /// Makes disk writes of a master take longer for a while.
    pub fn slow_disk(&mut self, at: usize, by: Duration, span: Duration) {
        self.hosts[at].disk.slow_down(by, self.now + span);
    }

    /// Makes the disk of a master refuse writes for a while; `part` parts of each write are in the file.
    pub fn refuse_writes(&mut self, at: usize, error: DiskError, part: u32, span: Duration) {
        self.hosts[at].disk.refuse(error, part, self.now + span);
    }

    /// Makes the clock of a master run too fast by `drift` parts of a million.
    pub fn drift(&mut self, at: usize, drift: i32) {
        if self.setup.defect != Some(Defect::ImpatientMembers)
            && let Some(clock) = &mut self.hosts[at].clock
        {
            clock.drifts(self.now, drift);
        }
    }

    /// Ends all faults: stopped processes continue, and ended ones are started.
    pub fn heal(&mut self) {
        self.network.heal(self.now);
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            host.disk.heal();
            host.planned_crash = None;
            host.stopped_until = Time::EPOCH;
            self.run_thread(at);
            let is_member = at < self.setup.founders || !self.hosts[at].disk.is_empty();
            if is_member {
                self.restart(at);
            }
        }
    }
}

/// Methods for tests and campaigns.
impl World {
    /// Makes clients start no more operations. Returns the time by which none waits for an answer.
    pub fn rest(&mut self) -> Time {
        self.at_rest = true;
        self.client_deadline()
    }

    /// Returns a master that answers clients.
    pub fn leader(&mut self) -> Option<usize> {
        (0..self.hosts.len()).find(|at| self.answers(*at))
    }

    /// Returns the number of masters.
    pub fn count(&self) -> usize {
        self.hosts.len()
    }

    /// Writes a key through the leading master. Returns the number of the operation.
    pub fn write(&mut self, key: &str) -> Option<usize> {
        let leader = self.leader()?;
        self.start_write(leader, key, false, None)
    }

    /// Reads a key through the leading master.
    pub fn read_key(&mut self, key: &str) {
        if let Some(leader) = self.leader() {
            self.read(leader, key);
        }
    }

    /// Returns whether a write was acknowledged.
    pub fn is_acknowledged(&self, operation: usize) -> bool {
        self.rules.acknowledged.contains(&(operation as u64))
    }

    /// Returns an acknowledged write that is missing in a member's registry.
    pub fn lost(&self, at: usize) -> Option<u64> {
        self.lost_write(at)
    }

    fn peer(&self, at: usize) -> Option<&Peer> {
        self.hosts[at].process.as_ref().map(|process| &process.peer)
    }

    /// Returns the standing of a master in its group; `None` if its process does not run.
    pub fn membership_state(&self, at: usize) -> Option<MembershipState> {
        self.peer(at).map(Peer::membership_state)
    }

    /// Returns the configuration, the number of decided entries and a hash of the state of a member.
    pub fn position(&self, at: usize) -> Option<(u32, usize, u64)> {
        let peer = self.peer(at)?;
        Some((peer.members()?.0.number, peer.decided(), rules::hash(peer.state()?)))
    }

    /// Returns the next action of an operator towards a group in which every master is a member with its present disk;
    /// `None` if they all are.
    pub fn next_repair(&self) -> Option<OperatorAction> {
        let members = self.rules.newest.as_ref()?;
        let member = |at: &usize| members.at(&self.hosts[*at].address);
        let all = || 0..self.hosts.len();
        let absent = all().find(|at| member(at).is_none());
        let stored = |at: usize| self.hosts[at].disk.stored().map(|stored| stored.disk);
        let stale = all().find(|at| member(at).is_some_and(|member| stored(*at) != Some(member.disk)));
        absent.map(OperatorAction::Add).or(stale.map(OperatorAction::Remove))
    }
}
