//! The scheduler core: a state machine that turns events and requests into calls. It does no I/O and reads no clock, so
//! it runs on a cluster and in the laboratory.
//!
//! An event first changes the state (`updates`, `requests`). Then every job that changed advances (`advance`,
//! `lineage`), tasks are placed on the held offers in the order of stages (`round`), and finally changes are saved and
//! the next wake-up is set. The owner of the core examines input files ([`WorkItem`]).

mod advance;
mod approximate;
mod container;
mod launch;
mod lineage;
mod observe;
mod persistence;
mod record;
mod removal;
mod requests;
mod round;
mod settings;
mod sizes;
mod tuning;
mod updates;
mod view;
mod why;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::Time;
use jobs::known_agents::KnownAgents;
use jobs::offer_state::OfferState;
use jobs::offers::Offers;
use jobs::request_handler::RequestHandler;
use jobs::unreachable_tasks::UnreachableTasks;
use sdk::{Calls, Event, Scheduler};

use crate::job::FilesInput;
use crate::order::{History, Policy};
use crate::sizing::Memory;
use persistence::UnsavedChanges;
use record::{LiveState, Machine, Phase, Record};

pub use persistence::Damaged;
pub use record::{Counts, Outcome, StagePhase};
pub use removal::{Removal, StageRemoval};
pub use requests::{Reply, Request, RequestError, SubmissionEffect, Submitted};
pub use settings::{After, Settings, Sprinting, Targets};
pub use tuning::TuningView;
pub use view::{
    EstimateView, JobEvent, JobSummary, JobView, MovingDelayView, SizingView, StageView, State, Status, TaskPage,
    TaskView, Totals,
};

/// Maximum number of jobs that have not ended.
pub const JOBS_MAX: usize = 20_000;
/// Maximum number of tasks, as far as they are known, of jobs that have not ended.
pub const TASKS_MAX: u64 = 2_000_000;
/// Number of ended jobs that are remembered.
pub const ENDED_MAX: usize = 1_000;
/// Number of tasks that the remembered ended jobs may have had. The job that ended last is always remembered.
pub const ENDED_TASKS_MAX: u64 = 200_000;
/// Number of events that are queued until they are taken; beyond it the oldest are dropped.
const EVENTS_MAX: usize = 10_000;
/// Number of agents whose record is shared by their tasks; beyond it each task has its own copy.
const MACHINES_MAX: usize = 100_000;

/// The key of a task: serial of its job, index of its stage, and its number.
type TaskKey = (u64, usize, u32);

/// Work that the owner of the scheduler does for it.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkItem {
    /// Examine input files, and answer with [`Request::Scanned`].
    Scan {
        /// Serial of the job.
        serial: u64,
        /// Index of the stage.
        stage: usize,
        /// Input files to examine.
        input: FilesInput,
    },
    /// Remove the outputs of a job that has ended, and answer with [`Request::Removed`].
    Remove {
        /// Serial of the job.
        serial: u64,
        /// Outputs to remove.
        removal: Removal,
    },
}

/// The scheduler of jobs that consist of stages.
pub struct Core {
    settings: Settings,
    order: Box<dyn Policy + Send>,
    /// Jobs by serial, that is in the order of submission.
    records: BTreeMap<u64, Record>,
    /// Serials of jobs that have not ended.
    active: BTreeSet<u64>,
    /// Serial of the newest job of each name.
    names: BTreeMap<String, u64>,
    /// Serials of ended jobs, oldest first.
    ended: VecDeque<u64>,
    ended_tasks: u64,
    next_serial: u64,
    offers: Offers,
    known_agents: KnownAgents,
    offer_state: OfferState,
    changed: UnsavedChanges,
    /// Tasks that wait for their next attempt, with the time of it.
    delayed: BTreeSet<(Time, TaskKey)>,
    unreachable: UnreachableTasks<TaskKey>,
    machines: BTreeMap<String, Arc<Machine>>,
    /// Jobs that may have to be advanced.
    jobs_to_advance: BTreeSet<u64>,
    /// Whether tasks have become ready since the last revive.
    fresh: bool,
    /// Whether a round may place more tasks than the last one did.
    dirty: bool,
    memory: Memory,
    history: History,
    moving: observe::MovingDelay,
    sprints: approximate::Sprints,
    /// Ids of agents that dropped a task because it had a limit.
    without_limits: BTreeSet<String>,
    tuning: tuning::Tuning,
    work_items: Vec<WorkItem>,
    removals: removal::Removals,
    /// Jobs that fail, with the reason.
    failing: Vec<(u64, String)>,
    events: VecDeque<JobEvent>,
    totals: Totals,
    framework_id: Option<String>,
    /// Reason why the saved state cannot be restored. If there is one, the scheduler does nothing.
    damaged: Option<String>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("jobs", &self.records.len())
            .field("order", &self.order.name())
            .finish_non_exhaustive()
    }
}

impl Core {
    /// Creates a scheduler without jobs.
    pub fn new(settings: Settings) -> Core {
        let order = settings.order.policy();
        Core::with_order(settings, order)
    }

    /// Creates a scheduler without jobs that uses this order of stages instead of that of the settings.
    pub fn with_order(settings: Settings, order: Box<dyn Policy + Send>) -> Core {
        Core {
            sprints: approximate::Sprints::new(settings.sprint),
            settings,
            order,
            records: BTreeMap::new(),
            active: BTreeSet::new(),
            names: BTreeMap::new(),
            ended: VecDeque::new(),
            ended_tasks: 0,
            next_serial: 1,
            offers: Offers::default(),
            known_agents: KnownAgents::default(),
            offer_state: OfferState::default(),
            changed: UnsavedChanges::default(),
            delayed: BTreeSet::new(),
            unreachable: UnreachableTasks::default(),
            machines: BTreeMap::new(),
            jobs_to_advance: BTreeSet::new(),
            fresh: false,
            dirty: false,
            memory: Memory::default(),
            history: History::default(),
            moving: observe::MovingDelay::default(),
            without_limits: BTreeSet::new(),
            tuning: tuning::Tuning::default(),
            work_items: Vec::new(),
            removals: removal::Removals::default(),
            failing: Vec::new(),
            events: VecDeque::new(),
            totals: Totals::default(),
            framework_id: None,
            damaged: None,
        }
    }

    /// Returns the settings of the scheduler.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sets the address of the API for the runners of tasks, which is known once the API is served.
    pub fn set_api(&mut self, api: String) {
        self.settings.api = api;
    }

    /// Returns whether every job has ended.
    pub fn is_done(&self) -> bool {
        self.active.is_empty()
    }

    /// Takes the events since the last call, oldest first.
    pub fn take_events(&mut self) -> Vec<JobEvent> {
        self.events.drain(..).collect()
    }

    /// Takes the work that the owner must do.
    pub fn take_work_items(&mut self) -> Vec<WorkItem> {
        std::mem::take(&mut self.work_items)
    }

    /// Answers a request and applies its consequences.
    ///
    /// # Errors
    /// The request is invalid, or names an object that does not exist. Nothing has changed then.
    pub fn request(&mut self, request: Request, now: Time, calls: &mut Calls) -> Result<Reply, RequestError> {
        let reply = self.answer(request, now, calls)?;
        if matches!(reply, Reply::Done | Reply::Submitted(_)) {
            self.apply_changes(now, calls);
        }
        Ok(reply)
    }

    /// Applies all consequences of a change.
    fn apply_changes(&mut self, now: Time, calls: &mut Calls) {
        self.advance_all(now, calls);
        self.make_due_tasks_ready(now);
        if self.offer_state.subscribed {
            self.round(now, calls);
            // The round may have dropped the last tasks of a stage.
            self.advance_all(now, calls);
        }
        let work = self.has_work();
        if self.offer_state.subscribed {
            self.update_offer_state(work, now, calls);
        }
        self.save(calls);
        if let Some(at) = self.next_wake(work) {
            calls.wake_at(at);
        }
    }

    fn advance_all(&mut self, now: Time, calls: &mut Calls) {
        self.end_failing_jobs(calls);
        while let Some(serial) = self.jobs_to_advance.pop_first() {
            self.advance(serial, now);
        }
    }

    /// Makes delayed tasks ready whose time has come.
    fn make_due_tasks_ready(&mut self, now: Time) {
        while let Some((_, key)) = self.delayed.first().copied().filter(|(at, _)| *at <= now) {
            self.delayed.pop_first();
            self.make_ready(key);
        }
    }

    fn make_ready(&mut self, (serial, stage, index): TaskKey) {
        let Some(run) = self.records.get_mut(&serial).and_then(|r| r.stages.get_mut(stage)) else { return };
        if run.tasks().get(&index).is_some_and(|task| matches!(task.phase, Phase::Waiting(_))) {
            run.ready.insert(index);
            (self.fresh, self.dirty) = (true, true);
        }
    }

    /// Schedules the next launch of a task, not before `at`.
    fn wait_until(&mut self, key: TaskKey, at: Time, now: Time) {
        if at <= now {
            self.make_ready(key);
        } else {
            self.delayed.insert((at, key));
        }
    }

    fn record_event(&mut self, event: JobEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Returns the record of an agent, shared by its tasks.
    fn machine(&mut self, id: &str, host: &str, address: &str) -> Arc<Machine> {
        if let Some(known) = self.machines.get(id)
            && known.address == address
        {
            return known.clone();
        }
        let machine = Arc::new(Machine { id: id.to_owned(), host: host.to_owned(), address: address.to_owned() });
        if self.machines.len() < MACHINES_MAX {
            self.machines.insert(id.to_owned(), machine.clone());
        }
        machine
    }

    /// Restores the saved state. An entry that cannot be read stops the scheduler: without it the scheduler would know
    /// none of its tasks, and end or duplicate them.
    fn restore(&mut self, entries: &BTreeMap<String, Vec<u8>>, now: Time, calls: &mut Calls) {
        let restored = match persistence::restore(entries, now) {
            Ok(restored) => restored,
            Err(damaged) => {
                let why = format!(
                    "{damaged}. Nothing was changed, and the tasks continue. Start the version that wrote this state, \
                     or restore a copy; to start without it, move it away"
                );
                calls.fail(why.clone());
                self.damaged = Some(why);
                return;
            }
        };
        self.next_serial = restored.next_serial;
        (self.memory, self.history, self.tuning) = (restored.memory, restored.history, restored.tuning);
        self.records = restored.records;
        self.resume_removals(restored.removals);
        let mut ended: Vec<(Option<Time>, u64)> = Vec::new();
        let mut waiting = Vec::new();
        for (serial, record) in &self.records {
            self.names.insert(record.name().to_owned(), *serial);
            if record.is_over() {
                ended.push((record.ended, *serial));
                self.ended_tasks += record.tasks_known();
                continue;
            }
            self.active.insert(*serial);
            self.jobs_to_advance.insert(*serial);
            for (stage, run) in record.stages.iter().enumerate() {
                for (index, task) in run.tasks() {
                    match task.phase {
                        Phase::Waiting(at) => waiting.push(((*serial, stage, *index), at)),
                        Phase::Live { step: LiveState::Unreachable, .. } => {
                            self.unreachable.add((*serial, stage, *index), now);
                        }
                        _ => {}
                    }
                }
                if run.head.phase == StagePhase::Planning
                    && let crate::job::Input::Files(input) = &record.stage(stage).input
                {
                    self.work_items.push(WorkItem::Scan { serial: *serial, stage, input: input.clone() });
                }
            }
        }
        for (key, at) in waiting {
            self.wait_until(key, at, now);
        }
        self.resume_sprints(now);
        ended.sort_unstable();
        self.ended = ended.into_iter().map(|(_, serial)| serial).collect();
        self.forget_oldest();
        (self.fresh, self.dirty) = (true, true);
    }

    /// Forgets the oldest ended jobs when there are too many of them.
    fn forget_oldest(&mut self) {
        while self.ended.len() > ENDED_MAX || (self.ended.len() > 1 && self.ended_tasks > ENDED_TASKS_MAX) {
            if let Some(oldest) = self.ended.pop_front() {
                self.forget(oldest);
            }
        }
    }

    /// Forgets a job.
    fn forget(&mut self, serial: u64) {
        let Some(record) = self.records.remove(&serial) else { return };
        if self.names.get(record.name()) == Some(&serial) {
            self.names.remove(record.name());
        }
        if record.is_over() {
            self.ended_tasks = self.ended_tasks.saturating_sub(record.tasks_known());
        }
        self.active.remove(&serial);
        self.changed.heads.remove(&serial);
        self.changed.inputs.retain(|(of, _)| *of != serial);
        self.changed.sizings.retain(|(of, _)| *of != serial);
        self.changed.tasks.retain(|(of, ..)| *of != serial);
        self.changed.gone.push(record);
    }

    /// Returns the next time at which the scheduler must act without an event.
    fn next_wake(&self, work: bool) -> Option<Time> {
        let mut next = self.delayed.first().map(|(at, _)| *at);
        let mut sooner = |at: Option<Time>| next = next.into_iter().chain(at).min();
        sooner(self.offers.next());
        if self.offer_state.subscribed && work {
            sooner(self.offer_state.next(self.fresh, Some(self.settings.revive_every)));
        }
        sooner(self.unreachable.first().map(|since| since + jobs::ends::UNREACHABLE_MAX));
        next
    }

    /// Suppresses or revives offers as needed.
    fn update_offer_state(&mut self, work: bool, now: Time, calls: &mut Calls) {
        if !work {
            self.fresh = false;
            // A stage may end soon and open the next one. Without live tasks none will.
            let soon = self.delayed.first().is_some_and(|(at, _)| *at <= now + SOON);
            if !soon {
                self.offer_state.suppress(calls);
            }
        } else if self.offer_state.revive(self.fresh, Some(self.settings.revive_every), now, calls) {
            self.fresh = false;
        }
    }

    /// Returns whether any task could be launched now.
    fn has_work(&self) -> bool {
        self.active.iter().filter_map(|serial| self.records.get(serial)).any(|record| {
            (0..record.stages.len()).any(|stage| {
                let run = &record.stages[stage];
                (!run.ready.is_empty() || run.fresh() > 0) && record.is_runnable(stage)
            })
        })
    }
}

/// Time until the next due task below which offers are not suppressed.
const SOON: Duration = Duration::from_secs(2);

/// The answer to a request.
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
                // Agents may have been removed during the disconnection without a report.
                self.known_agents = KnownAgents::default();
                self.offer_state = OfferState::subscribed();
            }
            Event::Disconnected { .. } => {
                self.offers = Offers::default();
                self.offer_state.subscribed = false;
            }
            Event::Offers(offers) => self.add_offers(offers, now, calls),
            Event::Rescinded(offer_id) => {
                let rest = self.offers.rescind(&offer_id);
                calls.decline(rest, Duration::ZERO);
            }
            Event::Update(status) => self.update(&status, now, calls),
            Event::AgentLost(agent_id) => {
                self.known_agents.lost(&agent_id.value);
                self.agent_lost(&agent_id.value);
                self.dirty = true;
            }
            // Tasks of a refused call are still recorded as launched; reconciliation reports them missing.
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
