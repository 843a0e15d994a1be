//! A group in virtual time, with a network that loses, delays and cuts, and members that stop, crash and lose their
//! last unsynced writes.
//!
//! It is the real core; clients write counters through whatever process believes to lead.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use base::{Time, split_mix};
use peers::{Claim, Leader, LogChange, Peer, Settings, Standing, Stored};

/// The length of a lease.
pub const LEASE: Duration = Duration::from_millis(1000);

/// A rule of the core that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Messages are sent before the records are durable.
    SendFirst,
    /// A leader answers although its lease is over.
    IgnoreLease,
    /// A member forgets at a start what it has promised.
    ForgetPromises,
    /// A write is acknowledged when it is proposed.
    AnswerFirst,
}

/// Epoch and sequence, leader, number of entries.
type Short = ((u64, u64), Option<Claim>, usize);

enum Event {
    Tick(usize),
    Message { to: usize, bytes: Vec<u8> },
    Start(usize),
    Resume(usize),
}

struct Master {
    address: String,
    /// None while it is down.
    peer: Option<Peer>,
    /// What a crash leaves.
    disk: Option<Stored>,
    stopped_until: Time,
    starts: u64,
    /// Writes that this process waits for.
    waiting: BTreeMap<u64, u64>,
    /// Messages of the time in which it was stopped.
    backlog: Vec<Vec<u8>>,
    /// What is written with the next change that must be durable.
    late: Vec<LogChange>,
    /// What it brings into a new group.
    registry: Option<BTreeMap<String, Vec<u8>>>,
}

impl Master {
    /// As a journal does.
    fn store(&mut self, anew: bool, changes: Vec<LogChange>) {
        if anew {
            self.late.clear();
            self.disk = self.peer.as_ref().map(Peer::stored);
            return;
        }
        self.late.extend(changes);
        if self.late.iter().any(LogChange::must_be_durable) {
            let disk = self.disk.as_mut().unwrap();
            self.late.drain(..).for_each(|change| disk.log.apply(change));
        }
    }
}

pub struct World {
    pub now: Time,
    random: u64,
    masters: Vec<Master>,
    events: BinaryHeap<Reverse<(Time, u64, usize)>>,
    bodies: BTreeMap<usize, Event>,
    number: u64,
    /// Pairs between which nothing arrives, by direction.
    cuts: BTreeSet<(usize, usize)>,
    pub loss: u64,
    /// When the last message between two masters arrives.
    arrivals: BTreeMap<(usize, usize), Time>,
    peers: Vec<String>,
    defect: Option<Defect>,
    /// Keys that were acknowledged.
    pub acknowledged: BTreeSet<u64>,
    next_key: u64,
    /// The processes that have led, by epoch.
    leaders: BTreeMap<u64, (usize, u64)>,
    pub led: Vec<(Time, usize)>,
    /// The states of all members in short, by configuration and number of entries.
    history: BTreeMap<(u32, usize), Short>,
    /// What came to a master.
    heard: BTreeMap<usize, Vec<Vec<u8>>>,
    /// The longest state that any member has had.
    longest: Vec<(u64, u64)>,
}

impl World {
    pub fn new(seed: u64, count: usize, defect: Option<Defect>) -> World {
        let peers: Vec<String> = (0..count).map(|number| format!("m{number}:5050")).collect();
        let mut world = World {
            now: Time::from_secs(1000),
            random: seed,
            masters: Vec::new(),
            events: BinaryHeap::new(),
            bodies: BTreeMap::new(),
            number: 0,
            cuts: BTreeSet::new(),
            loss: 0,
            arrivals: BTreeMap::new(),
            peers: peers.clone(),
            defect,
            acknowledged: BTreeSet::new(),
            next_key: 1,
            leaders: BTreeMap::new(),
            led: Vec::new(),
            history: BTreeMap::new(),
            heard: BTreeMap::new(),
            longest: Vec::new(),
        };
        peers.iter().for_each(|address| world.add(address));
        world
    }

    /// A master has a registry before it starts.
    pub fn bring(&mut self, index: usize, key: &str) {
        self.masters[index].registry = Some(BTreeMap::from([(key.to_owned(), vec![1])]));
    }

    /// The messages that a master has received which is no member.
    pub fn heard_outside(&self, index: usize) -> Vec<Vec<u8>> {
        self.heard.get(&index).cloned().unwrap_or_default()
    }

    /// The keys of the registry that a member knows.
    pub fn keys(&self, index: usize) -> Vec<String> {
        let state = self.masters[index].peer.as_ref().and_then(Peer::state);
        state.map(|state| state.entries.keys().cloned().collect()).unwrap_or_default()
    }

    /// Another master, with an empty disk.
    pub fn add(&mut self, address: &str) {
        self.masters.push(Master {
            address: address.to_owned(),
            peer: None,
            disk: None,
            stopped_until: Time::EPOCH,
            starts: 0,
            waiting: BTreeMap::new(),
            backlog: Vec::new(),
            late: Vec::new(),
            registry: None,
        });
        let index = self.masters.len() - 1;
        self.after(Duration::ZERO, Event::Start(index));
    }

    fn random(&mut self, below: u64) -> u64 {
        split_mix(&mut self.random) % below.max(1)
    }

    fn after(&mut self, wait: Duration, event: Event) {
        self.number += 1;
        let id = self.number as usize;
        self.events.push(Reverse((self.now + wait, self.number, id)));
        self.bodies.insert(id, event);
    }

    fn index(&self, address: &str) -> Option<usize> {
        self.masters.iter().position(|master| master.address == address)
    }

    /// Lets that much time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(Reverse((at, _, id))) = self.events.peek().copied().filter(|Reverse((at, ..))| *at <= end) {
            self.events.pop();
            self.now = self.now.max(at);
            if let Some(event) = self.bodies.remove(&id) {
                self.handle(event);
            }
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Start(index) => self.start(index),
            Event::Tick(index) => {
                let starts = self.masters[index].starts;
                self.after(LEASE / 10, Event::Tick(index));
                if self.is_running(index) && starts > 0 {
                    let now = self.now;
                    if let Some(peer) = &mut self.masters[index].peer {
                        peer.tick(now);
                    }
                    self.settle(index);
                }
            }
            Event::Message { to, bytes } => {
                if to >= self.peers.len() {
                    self.heard.entry(to).or_default().push(bytes.clone());
                }
                if !self.is_running(to) {
                    if self.masters[to].peer.is_some() {
                        self.masters[to].backlog.push(bytes);
                    }
                    return;
                }
                let now = self.now;
                if let Some(peer) = &mut self.masters[to].peer {
                    peer.receive(&bytes, now).unwrap();
                }
                self.settle(to);
            }
            Event::Resume(index) => {
                for bytes in std::mem::take(&mut self.masters[index].backlog) {
                    self.handle(Event::Message { to: index, bytes });
                }
            }
        }
    }

    fn is_running(&self, index: usize) -> bool {
        self.masters[index].peer.is_some() && self.masters[index].stopped_until <= self.now
    }

    fn start(&mut self, index: usize) {
        if self.masters[index].peer.is_some() {
            return;
        }
        let first = self.masters[index].starts == 0;
        self.masters[index].starts += 1;
        let number = self.random(u64::MAX - 1) + 1;
        let mut stored = self.masters[index].disk.clone().unwrap_or_else(|| Stored::new(number));
        if self.defect == Some(Defect::ForgetPromises) && !first {
            stored.log = forgetful(stored.log);
        }
        stored.starts += 1;
        self.masters[index].disk = Some(stored.clone());
        let settings = Settings {
            address: self.masters[index].address.clone(),
            peers: self.peers.clone(),
            lease: LEASE,
            secret: None,
            info: self.masters[index].address.clone().into_bytes(),
            registry: self.masters[index].registry.clone(),
        };
        self.masters[index].peer = Some(Peer::start(settings, stored, self.now));
        if first {
            let wait = Duration::from_millis(self.random(100));
            self.after(wait, Event::Tick(index));
        }
        self.settle(index);
    }

    /// Does what the core asks for, as the shell does: records, then messages, then answers.
    fn settle(&mut self, index: usize) {
        let now = self.now;
        let Some(peer) = &mut self.masters[index].peer else { return };
        let output = peer.take();
        let has_changes = output.anew || !output.changes.is_empty();
        let crash_between = self.defect == Some(Defect::SendFirst) && split_mix(&mut self.random).is_multiple_of(20);
        if !crash_between {
            self.masters[index].store(output.anew, output.changes);
        }
        for (to, bytes) in output.messages {
            let Some(to) = self.index(&to) else { continue };
            if self.cuts.contains(&(index, to)) || self.random(100) < self.loss {
                continue;
            }
            let slow = if self.random(50) == 0 { 200 } else { 5 };
            let wait = Duration::from_millis(1 + self.random(slow));
            // In order, as over a connection; a few come late, over a former one.
            let last = self.arrivals.get(&(index, to)).copied().unwrap_or_default();
            let at = if self.random(100) == 0 { now + wait } else { last.max(now + wait) };
            self.arrivals.insert((index, to), last.max(at));
            self.after(at.since(now), Event::Message { to, bytes });
        }
        if crash_between && has_changes {
            self.crash(index);
            return;
        }
        self.look(index, now);
    }

    /// What clients see of a master.
    fn look(&mut self, index: usize, now: Time) {
        let Some(peer) = &self.masters[index].peer else { return };
        if let Some(state) = peer.state() {
            let at = (state.epoch, state.sequence);
            let number = peer.members().map_or(0, |(configuration, _)| configuration.number);
            let short = (at, state.leader.clone(), state.entries.len());
            let known = self.history.entry((number, peer.decided())).or_insert_with(|| short.clone());
            assert_eq!(*known, short, "members have decided different entries");
            match peer.written() {
                Some(written) => {
                    let done: Vec<u64> = self.masters[index].waiting.range(..=written).map(|(_, key)| *key).collect();
                    self.masters[index].waiting.retain(|number, _| *number > written);
                    self.acknowledged.extend(done);
                }
                None => self.masters[index].waiting.clear(),
            }
            self.longest.resize(self.masters.len().max(self.longest.len()), (0, 0));
            let before = self.longest[index];
            assert!(
                before <= at,
                "the state of {} has gone back from {before:?} to {at:?}",
                self.masters[index].address
            );
            self.longest[index] = at;
        }
        let peer = self.masters[index].peer.as_ref().unwrap();
        let leads = match self.defect {
            Some(Defect::IgnoreLease) => peer.written().is_some(),
            _ => peer.leader(now) == Leader::Own && now < peer.lease(),
        };
        if leads {
            let epoch = peer.state().map_or(0, |state| state.epoch);
            let process = (index, self.masters[index].starts);
            let known = *self.leaders.entry(epoch).or_insert(process);
            assert_eq!(known, process, "two processes lead in epoch {epoch}");
            let newest = *self.leaders.keys().last().unwrap();
            assert_eq!(epoch, newest, "a process answers although another one has led since");
            if self.led.last().is_none_or(|(_, last)| *last != index) {
                self.led.push((now, index));
            }
        }
    }

    /// Looks at all masters that run: a client may ask any at any time.
    pub fn ask_all(&mut self) {
        let now = self.now;
        for index in 0..self.masters.len() {
            if self.is_running(index) {
                self.look(index, now);
            }
        }
    }

    pub fn leader(&self) -> Option<usize> {
        (0..self.masters.len()).find(|index| {
            let peer = self.masters[*index].peer.as_ref();
            self.is_running(*index) && peer.is_some_and(|peer| peer.leader(self.now) == Leader::Own)
        })
    }

    /// A client writes through a master that believes to lead. Returns the key.
    pub fn write(&mut self) -> Option<u64> {
        let leader = self.leader()?;
        let key = self.next_key;
        self.next_key += 1;
        let (now, change) = (self.now, vec![(format!("{key}"), Some(vec![1; 10]))]);
        let number = self.masters[leader].peer.as_mut()?.write(change, now).ok()?;
        self.masters[leader].waiting.insert(number, key);
        if self.defect == Some(Defect::AnswerFirst) {
            self.acknowledged.insert(key);
        }
        self.settle(leader);
        Some(key)
    }

    pub fn change(&mut self, change: impl FnOnce(&mut Peer, Time) -> Result<(), peers::ChangeError>) -> String {
        let Some(leader) = self.leader() else { return "no leader".to_owned() };
        let now = self.now;
        let result = change(self.masters[leader].peer.as_mut().unwrap(), now);
        self.settle(leader);
        result.err().map_or(String::new(), |error| error.to_string())
    }

    pub fn crash(&mut self, index: usize) {
        let master = &mut self.masters[index];
        (master.peer, master.stopped_until) = (None, Time::EPOCH);
        master.waiting.clear();
        master.backlog.clear();
        master.late.clear();
        if let Some(longest) = self.longest.get_mut(index) {
            *longest = (0, 0);
        }
    }

    pub fn restart(&mut self, index: usize) {
        self.after(Duration::ZERO, Event::Start(index));
    }

    pub fn erase(&mut self, index: usize) {
        self.crash(index);
        self.masters[index].disk = None;
    }

    pub fn pause(&mut self, index: usize, time: Duration) {
        self.masters[index].stopped_until = self.now + time;
        self.after(time, Event::Resume(index));
    }

    pub fn cut(&mut self, from: usize, to: usize) {
        self.cuts.insert((from, to));
    }

    pub fn heal(&mut self) {
        self.cuts.clear();
    }

    pub fn standing(&self, index: usize) -> Option<Standing> {
        self.masters[index].peer.as_ref().map(Peer::standing)
    }

    pub fn members(&self, index: usize) -> Vec<String> {
        let peer = self.masters[index].peer.as_ref();
        let members = peer.and_then(Peer::members).map(|(configuration, _)| configuration.members.clone());
        members.unwrap_or_default().into_iter().map(|member| member.address).collect()
    }

    /// Random faults for a time, with writes all the while.
    pub fn trouble(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let step = Duration::from_millis(5 + self.random(60));
            self.run(step);
            self.ask_all();
            for _ in 0..self.random(3) {
                self.write();
            }
            let count = self.masters.len() as u64;
            let index = self.random(count) as usize;
            match self.random(120) {
                0 => self.crash(index),
                1..=4 => (0..self.masters.len()).for_each(|index| self.restart(index)),
                5 => {
                    let time = Duration::from_millis(self.random(3000));
                    self.pause(index, time);
                }
                6..=7 => {
                    let other = self.random(count) as usize;
                    self.cut(index, other);
                    if self.random(2) == 0 {
                        self.cut(other, index);
                    }
                }
                8..=10 => self.heal(),
                11 => self.loss = self.random(30),
                12 => self.loss = 0,
                13 => drop(self.change(|peer, now| peer.hand_over(None, now))),
                _ => {}
            }
        }
    }

    /// Ends all faults, and waits for a leader. Checks that nothing that was acknowledged is lost.
    pub fn settle_down(&mut self) {
        self.heal();
        self.loss = 0;
        for index in 0..self.masters.len() {
            self.masters[index].stopped_until = self.masters[index].stopped_until.min(self.now);
            // A master that has handed the lead over ends, and is started again.
            self.crash(index);
            self.restart(index);
        }
        let mut waited = Duration::ZERO;
        while self.leader().is_none() {
            self.run(LEASE / 10);
            waited += LEASE / 10;
            assert!(waited < LEASE * 10, "no leader after {waited:?}");
        }
        let key = self.write().expect("there is a leader");
        self.run(LEASE);
        assert!(self.acknowledged.contains(&key), "a write is not acknowledged in a group without faults");
        self.run(LEASE);
        for index in 0..self.masters.len() {
            let Some(state) = self.masters[index].peer.as_ref().and_then(Peer::state) else { continue };
            let lost: Vec<&u64> =
                self.acknowledged.iter().filter(|key| !state.entries.contains_key(&key.to_string())).collect();
            assert!(lost.is_empty(), "{} has lost {lost:?}", self.masters[index].address);
        }
    }
}

/// A log without its promise.
fn forgetful(log: peers::Log) -> peers::Log {
    let mut value = serde_json::to_value(&log).unwrap();
    value["promise"] = serde_json::Value::Null;
    serde_json::from_value(value).unwrap()
}
