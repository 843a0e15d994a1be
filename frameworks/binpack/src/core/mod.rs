//! The scheduler: it receives jobs and makes calls. It does no I/O and reads no clock, so it runs on a cluster and in
//! the laboratory.
//!
//! An event first changes the state (`updates`, `requests`), then every job moves closer to its goal (`services`,
//! `gangs`), then waiting tasks are placed on the current offers (`round`), and finally changes are saved and the next
//! wake-up is set. [`crate::place`] chooses places, [`Knobs`] defines the behaviour towards the cluster. Its interface
//! is [`Request`]; HTTP is elsewhere.

mod ability;
mod avoid;
mod capacity;
mod cluster;
mod container;
mod gangs;
mod launch;
mod queue;
mod record;
mod requests;
mod round;
mod services;
mod sizing;
mod updates;
mod view;
mod why;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use advice::agents::Agents;
use base::Time;
use sdk::{Calls, Event, Scheduler};

use crate::job::Kind;
use crate::{Knobs, Need};
use capacity::Capacity;
use jobs::known_agents::KnownAgents;
use jobs::offer_state::OfferState;
use jobs::offers::Offers;
use jobs::request_handler::RequestHandler;
use jobs::unreachable_tasks::UnreachableTasks;
use queue::{JobKey, Queue};
use record::{META, Meta, Phase, Record, head_key, instance_key, instance_value};

pub use ability::Ability;
pub use capacity::{AgentTotals, RequiredCapacity};
pub use jobs::Place;
pub use record::{Counts, Damaged, LiveState, Outcome, RemovedTask};
pub use requests::{Reply, Request, RequestError, SubmissionEffect, Submitted};
pub use sizing::{Measurable, Measurement, SizingView};
pub use view::{JobEvent, JobSummary, JobView, State, Status, TaskView, Totals, VersionView};
pub use why::{Impossible, Unsatisfied};

/// Maximum number of jobs that have not ended.
pub const JOBS_MAX: usize = 20_000;
/// Maximum number of tasks of jobs that have not ended.
pub const TASKS_MAX: u64 = 1_000_000;
/// Maximum number of ended jobs that are remembered.
pub const ENDED_MAX: usize = 1_000;
/// Maximum number of tasks of the ended jobs that are remembered. The last job that ended is remembered in any case.
pub const ENDED_TASKS_MAX: u64 = 200_000;
/// Number of tasks above which a service is large: checking all of them after each update would take too long.
const LARGE: usize = 500;
/// Shortest interval between two examinations of a large service.
const LARGE_SERVICE_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of queued events for followers; the oldest are dropped.
const EVENTS_MAX: usize = 10_000;

/// The bin-packing scheduler.
#[derive(Debug)]
pub struct Core {
    knobs: Knobs,
    /// Jobs by serial, that is, in the order of submission.
    records: BTreeMap<u64, Record>,
    /// Serial of the newest job of each name.
    names: BTreeMap<String, u64>,
    /// Serials of ended jobs, the oldest first.
    ended: VecDeque<u64>,
    /// Number of tasks of the jobs in `ended`.
    ended_tasks: u64,
    next_serial: u64,
    queue: Queue,
    offers: Offers,
    known_agents: KnownAgents,
    pace: Pacing,
    offer_state: OfferState,
    changed: UnsavedChanges,
    /// Resources that this framework's tasks use, by agent.
    usage: BTreeMap<String, Need>,
    /// Tasks on unreachable agents.
    unreachable: UnreachableTasks<(u64, u32)>,
    /// Serial of the gang that holds offers.
    gathering: Option<u64>,
    capacity: Capacity,
    /// Record of task failures by agent, if failing agents are avoided.
    agents: Agents,
    /// Serials of jobs that may not be at their goal.
    jobs_to_advance: BTreeSet<u64>,
    /// Large services, with the time at which they may be examined again.
    next_examination: BTreeMap<u64, Time>,
    /// Whether something other than offers and the queue has changed, so that a waiting task may fit now.
    dirty: bool,
    events: VecDeque<JobEvent>,
    totals: view::Totals,
    framework_id: Option<String>,
    /// Error of restoring the saved state; the scheduler then does nothing.
    damaged: Option<String>,
}

/// Number of tasks that may still be placed, and the time until which it counts.
#[derive(Clone, Copy, Debug, Default)]
struct Pacing {
    left: u32,
    until: Option<Time>,
}

/// Changes that must be saved.
#[derive(Clone, Debug, Default)]
struct UnsavedChanges {
    meta: bool,
    heads: BTreeSet<u64>,
    instances: BTreeSet<(u64, u32)>,
    /// Keys of entries to delete: a job is forgotten with all its tasks.
    gone: Vec<String>,
}

impl Core {
    /// Creates a scheduler without jobs.
    pub fn new(knobs: Knobs) -> Core {
        Core {
            knobs,
            records: BTreeMap::new(),
            names: BTreeMap::new(),
            ended: VecDeque::new(),
            ended_tasks: 0,
            next_serial: 1,
            queue: Queue::default(),
            offers: Offers::default(),
            known_agents: KnownAgents::default(),
            pace: Pacing::default(),
            offer_state: OfferState::default(),
            changed: UnsavedChanges::default(),
            usage: BTreeMap::new(),
            unreachable: UnreachableTasks::default(),
            gathering: None,
            capacity: Capacity::default(),
            agents: Agents::default(),
            jobs_to_advance: BTreeSet::new(),
            next_examination: BTreeMap::new(),
            dirty: false,
            events: VecDeque::new(),
            totals: view::Totals::default(),
            framework_id: None,
            damaged: None,
        }
    }

    /// Returns the settings of the scheduler.
    pub fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    /// Returns whether every job has ended. Services never end by themselves.
    pub fn is_done(&self) -> bool {
        self.records.values().all(Record::is_over)
    }

    /// Removes the queued events for followers and returns them, the oldest first.
    pub fn take_events(&mut self) -> Vec<JobEvent> {
        self.events.drain(..).collect()
    }

    /// Answers a request, and acts on the change that it makes.
    ///
    /// # Errors
    /// The request is invalid, or names what does not exist. Nothing has changed then.
    pub fn request(&mut self, request: Request, now: Time, calls: &mut Calls) -> Result<Reply, RequestError> {
        let reply = self.answer(request, now, calls)?;
        if matches!(reply, Reply::Done | Reply::Submitted(_)) {
            self.apply_changes(now, calls);
        }
        Ok(reply)
    }

    /// Acts on changes: moves jobs closer to their goals, places tasks, saves, and sets the next wake-up.
    fn apply_changes(&mut self, now: Time, calls: &mut Calls) {
        self.advance_jobs(now, calls);
        self.queue.queue_due_tasks(now);
        self.dirty |= self.agents.expire(now);
        if self.offer_state.subscribed {
            self.round(now, calls);
            self.update_offer_state(now, calls);
        }
        self.save(calls);
        if let Some(at) = self.next_wake() {
            calls.wake_at(at);
        }
    }

    fn advance_jobs(&mut self, now: Time, calls: &mut Calls) {
        let mut later = BTreeSet::new();
        while let Some(serial) = self.jobs_to_advance.pop_first() {
            if self.next_examination.get(&serial).is_some_and(|next| now < *next) {
                later.insert(serial);
                continue;
            }
            self.next_examination.remove(&serial);
            self.advance_job(serial, now, calls);
            let large = self.records.get(&serial).is_some_and(|r| r.is_large_service());
            if large {
                self.next_examination.insert(serial, now + LARGE_SERVICE_INTERVAL);
            }
        }
        self.jobs_to_advance = later;
    }

    fn advance_job(&mut self, serial: u64, now: Time, calls: &mut Calls) {
        let Some(record) = self.records.get(&serial).filter(|r| !r.is_over()) else { return };
        match record.kind() {
            Kind::Service => self.advance_service(serial, now, calls),
            Kind::Gang => self.advance_gang(serial, now, calls),
            Kind::Batch | Kind::Array => {}
        }
        self.end_if_done(serial, now);
    }

    /// Ends a job whose tasks have all ended, and sets its outcome.
    fn end_if_done(&mut self, serial: u64, now: Time) {
        let Some(record) = self.records.get_mut(&serial) else { return };
        let counts = record.counts();
        if record.is_over() || counts.live > 0 || counts.waiting > 0 {
            return;
        }
        let outcome = match record.head.goal {
            record::Goal::Stop => Outcome::Stopped,
            record::Goal::Run if record.kind() == Kind::Service => return,
            record::Goal::Run if counts.failed > 0 => Outcome::Failed,
            record::Goal::Run => Outcome::Finished,
        };
        record.head.outcome = Some(outcome);
        record.head.ended = Some(now);
        record.head.deploying = false;
        let name = record.name().to_owned();
        self.ended_tasks += record.instances().len() as u64;
        self.ended.push_back(serial);
        self.next_examination.remove(&serial);
        self.changed.heads.insert(serial);
        self.record_event(JobEvent::Ended { name, outcome });
        self.forget_oldest();
    }

    /// Removes the oldest ended jobs when there are too many of them.
    fn forget_oldest(&mut self) {
        while self.ended.len() > ENDED_MAX || (self.ended.len() > 1 && self.ended_tasks > ENDED_TASKS_MAX) {
            if let Some(oldest) = self.ended.pop_front() {
                self.forget(oldest);
            }
        }
    }

    /// Removes a job that has ended.
    fn forget(&mut self, serial: u64) {
        let Some(record) = self.records.remove(&serial) else { return };
        if self.names.get(record.name()) == Some(&serial) {
            self.names.remove(record.name());
        }
        if record.is_over() {
            self.ended_tasks = self.ended_tasks.saturating_sub(record.instances().len() as u64);
        }
        self.agents.forget_job(serial);
        self.changed.heads.remove(&serial);
        self.changed.gone.push(head_key(serial));
        for number in record.instances().keys() {
            self.changed.instances.remove(&(serial, *number));
            self.changed.gone.push(instance_key(serial, *number));
        }
    }

    /// Returns the key of a job in the order of the queue.
    fn key(record: &Record) -> JobKey {
        (Reverse(record.job().priority), record.head.serial)
    }

    /// Puts a waiting task into the queue.
    fn enqueue(&mut self, serial: u64, number: u32, now: Time) {
        let Some(record) = self.records.get(&serial) else { return };
        // A gang waits as a whole; it is added to the queue when it is settled.
        if record.kind() == Kind::Gang {
            self.jobs_to_advance.insert(serial);
            return;
        }
        if let Some(Phase::Waiting { not_before, .. }) = record.get(number).map(|i| &i.phase) {
            self.queue.add(Core::key(record), number, *not_before, now);
        }
    }

    fn record_event(&mut self, event: JobEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Saves the changes.
    fn save(&mut self, calls: &mut Calls) {
        let changed = std::mem::take(&mut self.changed);
        if changed.meta
            && let Ok(value) = serde_json::to_vec(&Meta { next_serial: self.next_serial })
        {
            calls.save(META, value);
        }
        for key in changed.gone {
            calls.forget(&key);
        }
        for serial in changed.heads {
            if let Some(value) = self.records.get(&serial).and_then(|r| serde_json::to_vec(&r.head).ok()) {
                calls.save(&head_key(serial), value);
            }
        }
        for (serial, number) in changed.instances {
            let Some(record) = self.records.get(&serial) else { continue };
            match record.get(number).and_then(instance_value) {
                Some(value) => calls.save(&instance_key(serial, number), value),
                None => calls.forget(&instance_key(serial, number)),
            }
        }
    }

    /// Restores the saved state. An entry that cannot be read stops the scheduler: without it, it would know none of
    /// its tasks, and end or duplicate them.
    fn restore(&mut self, entries: &BTreeMap<String, Vec<u8>>, now: Time, calls: &mut Calls) {
        match record::restore(entries, now) {
            Ok((records, next_serial)) => {
                self.next_serial = next_serial;
                self.records = records;
            }
            Err(damaged) => {
                let why = format!(
                    "{damaged}. Nothing was changed, and the tasks continue. Start the version that wrote this state, \
                     or restore a copy; to start without it, move it away"
                );
                calls.fail(why.clone());
                self.damaged = Some(why);
                return;
            }
        }
        let mut ended: Vec<(Option<Time>, u64)> = Vec::new();
        let mut ended_tasks = 0;
        let mut waiting = Vec::new();
        for (serial, record) in &self.records {
            self.names.insert(record.name().to_owned(), *serial);
            if record.is_over() {
                ended.push((record.head.ended, *serial));
                ended_tasks += record.instances().len() as u64;
                continue;
            }
            self.jobs_to_advance.insert(*serial);
            let numbers = record.instances().iter().filter(|(_, i)| i.is_waiting()).map(|(n, _)| *n);
            waiting.extend(numbers.map(|n| (*serial, n)));
            for (number, live) in record.instances().iter().filter_map(|(n, i)| Some((*n, i.live()?))) {
                let usage = self.usage.entry(live.place.agent_id.clone()).or_default();
                *usage = usage.plus(&live.need);
                if live.stage == LiveState::Unreachable {
                    self.unreachable.add((*serial, number), now);
                }
            }
        }
        ended.sort_unstable();
        self.ended = ended.into_iter().map(|(_, serial)| serial).collect();
        self.ended_tasks = ended_tasks;
        self.forget_oldest();
        for (serial, number) in waiting {
            self.enqueue(serial, number, now);
        }
    }

    /// Returns the next time at which the scheduler must act without an event.
    fn next_wake(&self) -> Option<Time> {
        let mut next = self.queue.next();
        let mut sooner = |at: Option<Time>| next = next.into_iter().chain(at).min();
        sooner(self.offers.next());
        sooner(self.next_gang());
        if self.offer_state.subscribed && !self.queue.is_empty() {
            sooner(self.pace.until.filter(|_| self.knobs.pace.is_some()));
            sooner(self.next_revive());
            sooner(self.agents.next());
        }
        sooner(self.next_unreachable());
        sooner(self.jobs_to_advance.iter().filter_map(|serial| self.next_examination.get(serial).copied()).min());
        next
    }
}

/// Answer to a request.
pub type Answer = Result<Reply, RequestError>;

impl RequestHandler for Core {
    type Request = Request;
    type Answer = Answer;

    const EMPTY: Request = Request::Status;

    fn ask(&mut self, request: Request, now: Time, calls: &mut Calls) -> Answer {
        self.request(request, now, calls)
    }
}

impl Scheduler for Core {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        if self.damaged.is_some() {
            return;
        }
        match event {
            Event::Restored(entries) => self.restore(&entries, now, calls),
            Event::Subscribed { framework_id, .. } => {
                self.framework_id = Some(framework_id.value.into());
                self.offers = Offers::default();
                // Agents that were removed meanwhile were not reported.
                self.known_agents = KnownAgents::default();
                self.offer_state = OfferState::subscribed();
            }
            Event::Disconnected { .. } => {
                self.offers = Offers::default();
                self.offer_state.subscribed = false;
                self.forget_gathering();
            }
            Event::Offers(offers) => self.add_offers(offers, now, calls),
            Event::Rescinded(offer_id) => {
                let rest = self.offers.rescind(&offer_id);
                calls.decline(rest, Duration::ZERO);
            }
            Event::Update(status) => self.update(&status, now, calls),
            Event::AgentLost(agent_id) => {
                self.known_agents.lost(&agent_id.value);
                self.agents.lost(&agent_id.value);
                self.dirty = true;
            }
            // The tasks of a refused call are in the ledger; reconciliation reports them as missing.
            Event::Refused { call, .. } if call.accept.is_some() => calls.reconcile(),
            Event::Wake => self.check_unreachable(now, calls),
            _ => {}
        }
        if self.damaged.is_none() {
            self.apply_changes(now, calls);
        }
    }
}

#[cfg(test)]
mod tests;
