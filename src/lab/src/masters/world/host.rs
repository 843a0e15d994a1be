//! A master of a world: its host with disk and clock, and its process, with the thread of its member as the daemon has
//! it (`src/daemon/src/master/peers/thread.rs`).
//!
//! The thread handles the queued jobs, makes records durable, and then publishes what has changed. While it waits for
//! the disk, the rest of the process continues: it answers reads as long as the lease holds that was published last.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use base::Time;
use peers::{Change, Leader, MembershipState, Peer, Records, Settings, Stored, Write};

use super::defect::{Defect, forgetful};
use super::disk::Disk;
use super::operator::OperatorAction;
use super::{Event, LEASE, World};
use crate::world::clock::Clock;

/// The most jobs that are handled before the core's output is processed.
const JOBS_MAX: usize = 256;
/// The most queued jobs; messages beyond it are dropped. It is less than in the daemon, so that drops happen.
const WAITING_MAX: usize = 512;
/// Time until a process is started again that could not start, or has ended by itself.
pub(super) const RESTART: Duration = Duration::from_millis(500);
/// Time until a process ends that has lost the lead.
const ENDING: Duration = Duration::from_millis(20);

/// A machine on which a master runs.
#[derive(Default)]
pub(super) struct Host {
    pub address: String,
    pub disk: Disk,
    pub clock: Option<Clock>,
    pub process: Option<Process>,
    /// Content of the disk for the process that is being started.
    opening: Option<Stored>,
    /// Number of processes that were started.
    pub generation: u64,
    pub stopped_until: Time,
    /// Set if the process will crash in its next write: the number of durable parts, and the time until it is started
    /// again.
    pub planned_crash: Option<(u32, Duration)>,
    /// Whether the master was removed from the group. It is not started before its disk is emptied.
    pub removed: bool,
    /// Registry that the master brings into a new group.
    pub registry: Option<BTreeMap<String, Vec<u8>>>,
    /// Number of the former disk and of its starts, for the defect that uses them again.
    pub reused_disk: Option<(u64, u64)>,
}

/// Messages with the addresses of their receivers.
type Messages = Vec<(String, Vec<u8>)>;

/// A running process of a master.
pub(super) struct Process {
    pub peer: Peer,
    records: Records,
    pub inbox: VecDeque<Job>,
    /// Messages that are sent when the write in progress is complete, and whether it is.
    writing: Option<(Messages, bool)>,
    next_tick: Time,
    /// Time until which this process may answer, as published.
    pub lease: Time,
    /// Whether this process leads, as published.
    leads: bool,
    /// The registry as this leading master knows it, with the epoch in which it took it over; `None` if it does not
    /// lead.
    pub view: Option<(u64, BTreeMap<String, Vec<u8>>)>,
    /// Time when the process started.
    pub began: Time,
    /// Whether the process has handed the lead over, and will end.
    pub has_resigned: bool,
    /// Notes of the core that were logged; repetitions are not logged.
    logged_notes: BTreeSet<String>,
    /// Writes that are not decided: their numbers, their operations, and their changes.
    waiting: VecDeque<(u64, usize, Vec<Change>)>,
}

/// A request to the thread.
pub(super) enum Job {
    Message(Vec<u8>),
    Load,
    Write(Vec<Change>, usize),
    Change(OperatorAction),
}

impl Host {
    /// Returns the time that the host's clock shows.
    pub fn shown(&self, now: Time) -> Time {
        self.clock.map_or(now, |clock| clock.show(now))
    }
}

impl World {
    /// Returns whether the process of a master runs and is not stopped.
    pub(super) fn is_running(&self, at: usize) -> bool {
        self.hosts[at].process.is_some() && self.hosts[at].stopped_until <= self.now
    }

    /// Starts the process of a master, unless there is one.
    pub(super) fn start(&mut self, at: usize) {
        let number = self.chance.within(1, u64::MAX - 1);
        let (now, time) = (self.now, self.write_time(at));
        let host = &mut self.hosts[at];
        if host.process.is_some() || host.opening.is_some() || host.removed {
            return;
        }
        let mut stored = match host.disk.open(number) {
            Ok(stored) => stored,
            Err(error) => {
                self.rules.fail("a member starts from its journal", || format!("the journal of master {at}: {error}"));
                return;
            }
        };
        if let Some((disk, starts)) = host.reused_disk.filter(|_| host.disk.is_empty()) {
            (stored.disk, stored.starts) = (disk, starts + 1);
        }
        if let Err(error) = host.disk.begin(Write::Anew(stored.file()), now) {
            self.log.line(now, || format!("master {at}   cannot be started: the disk fails with {error}"));
            self.after(RESTART, Event::Start(at));
            return;
        }
        host.generation += 1;
        host.opening = Some(stored);
        let generation = host.generation;
        self.after(time, Event::Written { at, generation });
    }

    /// Begins a process whose journal is open.
    fn begin(&mut self, at: usize, mut stored: Stored) {
        let now = self.hosts[at].shown(self.now);
        if self.setup.defect == Some(Defect::ForgottenPromises)
            && let Some(log) = forgetful(&stored.log)
        {
            stored.log = log;
        }
        let (disk, starts) = (stored.disk, stored.starts);
        let founders = self.hosts[..self.setup.founders].iter().map(|host| host.address.clone()).collect();
        let host = &mut self.hosts[at];
        let settings = Settings {
            address: host.address.clone(),
            peers: founders,
            lease: LEASE,
            secret: None,
            info: host.address.clone().into_bytes(),
            registry: host.registry.clone().filter(|_| stored.configuration.is_none()),
        };
        let mut peer = Peer::start(settings, stored, now);
        peer.compact_after(self.setup.compact_after);
        host.process = Some(Process {
            peer,
            records: Records::default(),
            inbox: VecDeque::new(),
            writing: None,
            next_tick: now,
            lease: Time::EPOCH,
            leads: false,
            view: None,
            began: self.now,
            has_resigned: false,
            logged_notes: BTreeSet::new(),
            waiting: VecDeque::new(),
        });
        self.log.line(self.now, || format!("master {at}   starts (disk {disk:x}, process {starts} of it)"));
        self.run_thread(at);
    }

    /// Ends the process of a master; this many parts of a write in progress are durable. It is started again after
    /// `downtime`.
    pub(super) fn end(&mut self, at: usize, part: u32, downtime: Option<Duration>, why: &str) {
        let host = &mut self.hosts[at];
        host.disk.tear(part);
        (host.opening, host.stopped_until) = (None, Time::EPOCH);
        host.generation += 1;
        if let Some(process) = host.process.take() {
            self.log.line(self.now, || format!("master {at}   ends: {why}"));
            let queued = process.inbox.into_iter().filter_map(|job| match job {
                Job::Write(_, operation) => Some(operation),
                _ => None,
            });
            let waiting = process.waiting.into_iter().map(|(_, operation, _)| operation);
            waiting.chain(queued).collect::<Vec<_>>().into_iter().for_each(|operation| self.outcome_unknown(operation));
        }
        if let Some(downtime) = downtime {
            self.after(downtime, Event::Start(at));
        }
    }

    /// Queues a job for the thread. Messages are dropped if the queue is full.
    pub(super) fn push(&mut self, at: usize, job: Job) {
        let Some(process) = &mut self.hosts[at].process else { return };
        if process.inbox.len() < WAITING_MAX || !matches!(job, Job::Message(_)) {
            process.inbox.push_back(job);
            self.run_thread(at);
        }
    }

    /// Completes a write of the process with number `generation`.
    pub(super) fn written(&mut self, at: usize, generation: u64) {
        let host = &mut self.hosts[at];
        if host.generation != generation {
            return;
        }
        host.disk.complete();
        if let Some(stored) = host.opening.take() {
            return self.begin(at, stored);
        }
        if let Some((_, is_complete)) = host.process.as_mut().and_then(|process| process.writing.as_mut()) {
            *is_complete = true;
            self.run_thread(at);
        }
    }

    /// Runs the thread if its tick is due.
    pub(super) fn wake(&mut self, at: usize, generation: u64) {
        let host = &self.hosts[at];
        let Some(process) = host.process.as_ref().filter(|_| host.generation == generation) else { return };
        match host.shown(self.now) < process.next_tick {
            // The clock runs slower than when this wake-up was planned.
            true => self.plan_tick(at),
            false => self.run_thread(at),
        }
    }

    fn plan_tick(&mut self, at: usize) {
        let host = &self.hosts[at];
        let Some(process) = &host.process else { return };
        let when = host.clock.map_or(process.next_tick, |clock| clock.when(process.next_tick));
        let generation = host.generation;
        self.queue.push(when.max(self.now), Event::Wake { at, generation });
    }

    /// Runs the thread until it has no work, or waits for the disk.
    pub(super) fn run_thread(&mut self, at: usize) {
        while self.is_running(at) {
            let now = self.hosts[at].shown(self.now);
            let Some(process) = &mut self.hosts[at].process else { return };
            match &mut process.writing {
                Some((_, false)) => return,
                Some((messages, true)) => {
                    let messages = std::mem::take(messages);
                    process.writing = None;
                    self.publish(at, messages);
                    continue;
                }
                None => {}
            }
            let is_due = now >= process.next_tick;
            if process.inbox.is_empty() && !is_due {
                return;
            }
            for _ in 0..JOBS_MAX {
                let job = self.hosts[at].process.as_mut().and_then(|process| process.inbox.pop_front());
                let Some(job) = job else { break };
                self.handle(at, job, now);
            }
            if let Some(process) = self.hosts[at].process.as_mut().filter(|_| is_due) {
                process.peer.tick(now);
                process.next_tick = (process.next_tick + LEASE / 10).max(now);
                self.plan_tick(at);
            }
            self.settle(at);
        }
    }

    fn handle(&mut self, at: usize, job: Job, now: Time) {
        let Some(process) = &mut self.hosts[at].process else { return };
        match job {
            Job::Message(bytes) => {
                if let Err(error) = process.peer.receive(&bytes, now) {
                    self.rules.fail("a message of a member can be read", || format!("master {at}: {error}"));
                }
            }
            Job::Load => {
                let state = process.peer.state().filter(|_| process.leads);
                process.view = state.map(|state| (state.epoch, state.entries.clone()));
                if let Some((epoch, _)) = process.view {
                    self.log.line(self.now, || format!("master {at}   takes over the registry in epoch {epoch}"));
                }
            }
            Job::Write(changes, operation) => match process.peer.write(changes.clone(), now) {
                Ok(number) => {
                    process.waiting.push_back((number, operation, changes));
                    if self.setup.defect == Some(Defect::AnswerBeforeCommit) {
                        self.answered(operation);
                    }
                }
                Err(_) => self.outcome_unknown(operation),
            },
            Job::Change(action) => self.change(at, action, now),
        }
    }

    /// Processes the output of the core, the records first.
    fn settle(&mut self, at: usize) {
        let (now, time) = (self.now, self.write_time(at));
        let host = &mut self.hosts[at];
        let Some(process) = &mut host.process else { return };
        let mut output = process.peer.take();
        let write = match output.anew || !output.changes.is_empty() {
            true => process.records.next(output.anew, output.changes, || process.peer.stored()),
            false => None,
        };
        self.rules.look((at, host.generation), &process.peer);
        for note in output.notes.iter().map(ToString::to_string) {
            if process.logged_notes.insert(note.clone()) {
                self.log.line(now, || format!("master {at}   logs: {note}"));
            }
        }
        let Some(write) = write else { return self.publish(at, output.messages) };
        let refused = host.disk.begin(write, now).err();
        let (generation, planned_crash) = (host.generation, host.planned_crash);
        if self.setup.defect == Some(Defect::SendBeforeDurable) {
            self.send(at, std::mem::take(&mut output.messages));
        }
        if let Some(error) = refused {
            return self.end(at, 0, Some(RESTART), &format!("the disk fails with {error}"));
        }
        if let Some((part, downtime)) = planned_crash {
            self.hosts[at].planned_crash = None;
            return self.end(at, part, Some(downtime), "a crash in a write");
        }
        if let Some(process) = &mut self.hosts[at].process {
            process.writing = Some((output.messages, false));
        }
        self.after(time, Event::Written { at, generation });
    }

    fn send(&mut self, from: usize, messages: Messages) {
        for (to, bytes) in messages {
            let Some(to) = self.hosts.iter().position(|host| host.address == to) else { continue };
            if let Some(sent) = self.network.send(from, to, self.now) {
                self.queue.push(sent.at, Event::Arrive { from, to, epoch: sent.epoch, bytes });
            }
        }
    }

    /// Publishes what has changed: sends messages, answers writes and renews the lease.
    fn publish(&mut self, at: usize, messages: Messages) {
        self.send(at, messages);
        let Some(process) = &mut self.hosts[at].process else { return };
        process.lease = process.peer.lease();
        let mut done = Vec::new();
        match process.peer.written() {
            Some(written) => {
                while let Some((_, operation, changes)) =
                    process.waiting.pop_front_if(|(number, ..)| *number <= written)
                {
                    if let Some((_, view)) = &mut process.view {
                        changes.into_iter().for_each(|(key, value)| match value {
                            Some(value) => drop(view.insert(key, value)),
                            None => drop(view.remove(&key)),
                        });
                    }
                    done.push((operation, true));
                }
            }
            None => done.extend(process.waiting.drain(..).map(|(_, operation, _)| (operation, false))),
        }
        for (operation, is_written) in done {
            match is_written {
                true => self.answered(operation),
                false => self.outcome_unknown(operation),
            }
        }
        self.publish_lead(at);
        self.answers(at);
    }

    /// Publishes whether this process leads.
    fn publish_lead(&mut self, at: usize) {
        let now = self.hosts[at].shown(self.now);
        let host = &mut self.hosts[at];
        let Some(process) = &mut host.process else { return };
        if let MembershipState::Removed { members } = process.peer.membership_state() {
            host.removed = true;
            return self.end(at, 0, None, &format!("it was removed from the group of {members}"));
        }
        let leads = match self.setup.defect {
            Some(Defect::IgnoredLease) => process.peer.written().is_some(),
            _ => process.peer.leader(now) == Leader::Own,
        };
        if leads == process.leads {
            return;
        }
        process.leads = leads;
        if leads {
            process.inbox.push_back(Job::Load);
            return;
        }
        process.view = None;
        self.log.line(self.now, || format!("master {at}   no longer leads"));
        if self.setup.ends_when_deposed || process.has_resigned {
            let generation = host.generation;
            self.after(ENDING, Event::Ends { at, generation });
        }
    }

    /// Returns whether a process answers clients now.
    pub(super) fn answers(&mut self, at: usize) -> bool {
        let host = &self.hosts[at];
        let Some(process) = host.process.as_ref().filter(|_| self.is_running(at)) else { return false };
        let Some((epoch, _)) = process.view else { return false };
        let holds = host.shown(self.now) < process.lease || self.setup.defect == Some(Defect::IgnoredLease);
        if holds && self.rules.answers((at, host.generation), epoch) {
            self.took_over(at);
        }
        holds
    }

    /// Draws the duration of a write.
    fn write_time(&mut self, at: usize) -> Duration {
        self.setup.write.draw(&mut self.disk_times) + self.hosts[at].disk.delay(self.now)
    }
}
