//! Observer that records task and offer metrics of a simulation.

use base::{Text, Time};
use resources::{Amount, Name, Quantities};
use rustc_hash::FxHashMap;
use sdk::v1::scheduler::{Call, Event, call};
use sdk::v1::{Resource, TaskInfo, TaskState, TaskStatus};

use super::area::{Area, Areas};
use super::own::{Hand, Own};
use crate::users::{Needs, is_tried_again, task_number};
use crate::work::numbered;
use crate::world::{BEGIN, Observer};

/// The time of an event that has not happened: later than the end of every run.
const NOT_YET: f64 = f64::INFINITY;

/// A task's life, in seconds since the beginning; infinite for what has not happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskRecord {
    /// It was submitted to its framework.
    pub submitted: f64,
    /// Its framework launched it, for the last time.
    pub launched: f64,
    /// Its framework received the first TASK_RUNNING.
    pub running: f64,
    /// Its framework received its terminal state.
    pub ended: f64,
    /// It finished.
    pub finished: bool,
    /// Its job, by number.
    pub job: u32,
    /// On which agent it ran last.
    pub agent: u32,
}

/// A job's life.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobRecord {
    pub submitted: f64,
    pub left: u32,
    retries: u32,
    pub ended: f64,
}

/// Whether a task that has ended is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Never,
    /// If its job has tries left.
    Counted,
    Always,
}

impl Again {
    fn of(state: TaskState) -> Again {
        if is_tried_again(state) { Again::Counted } else { Again::Never }
    }
}

/// The records of one framework.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub tasks: Vec<TaskRecord>,
    pub jobs: Vec<JobRecord>,
    needs: Vec<Needs>,
    /// Which of `needs` a task has, by task.
    kinds: Vec<u16>,
    /// What its tasks use, from launch to end.
    pub used: Quantities,
    /// Its dominant share in use.
    share: Area,
    /// What its tasks that wait need.
    pub waiting: Quantities,
    pub waiting_tasks: u64,
    pub running_tasks: u64,
    /// Offers that it holds.
    offers: FxHashMap<Text, (Quantities, Time)>,
    pub held: Quantities,
    pub offers_received: u64,
    pub offers_accepted: u64,
    pub offers_declined: u64,
    pub offers_rescinded: u64,
    /// Seconds that offers were held, over all of them.
    pub offer_seconds: f64,
    pub failed: u64,
    /// Set for a bundled framework.
    pub own: Own,
}

/// The records of a world.
#[derive(Debug, Default)]
pub struct Recorder {
    pub(super) books: Vec<Books>,
    agents: FxHashMap<Text, u32>,
    /// Strips for a Gantt chart: agent, framework, task, from, to; kept up to a limit.
    pub(super) strips: Vec<(u32, u32, f64, f64)>,
    strips_max: usize,
    /// All that the agents have, and by name the same with what is used of it.
    total: Quantities,
    used: Vec<(Name, Area)>,
    used_now: Quantities,
    held_now: Quantities,
    /// The part of the cluster in unanswered offers.
    offered: Area,
}

impl Recorder {
    /// Books for this many frameworks, and this many strips of a Gantt chart; `total` is all that the agents have.
    pub fn new(frameworks: usize, strips_max: usize, total: Quantities) -> Recorder {
        let books = (0..frameworks).map(|_| Books::default()).collect();
        let used = total.iter().map(|(name, _)| (name, Area::default())).collect();
        Recorder { books, strips_max, total, used, ..Recorder::default() }
    }

    /// A framework uses so much more, or less.
    fn uses(&mut self, who: usize, needs: &Quantities, way: Way, now: f64) {
        let books = &mut self.books[who];
        way.change(&mut books.used, needs);
        books.share.set(books.used.ratio(&self.total), now);
        way.change(&mut self.used_now, needs);
        for (name, area) in &mut self.used {
            area.set(self.used_now.get(name).to_f64(), now);
        }
    }

    /// A framework holds so much more as offers, or less.
    fn holds(&mut self, who: usize, offered: &Quantities, way: Way, now: f64) {
        way.change(&mut self.books[who].held, offered);
        way.change(&mut self.held_now, offered);
        self.offered.set(self.held_now.ratio(&self.total), now);
    }

    /// The integrals up to now.
    pub fn areas(&self, now: f64) -> Areas {
        Areas {
            at: now,
            shares: self.books.iter().map(|books| books.share.at(now)).collect(),
            used: self.used.iter().map(|(_, area)| area.at(now)).collect(),
            offered: self.offered.at(now),
        }
    }

    /// This many tasks are submitted to a framework. The number of the first.
    pub fn submit(&mut self, who: usize, needs: &Needs, tasks: u32, retries: u32, now: Time) -> u64 {
        let books = &mut self.books[who];
        let first = books.tasks.len() as u64;
        let job = books.jobs.len() as u32;
        let submitted = seconds(now);
        let kind = books.needs.iter().position(|known| known == needs).unwrap_or_else(|| {
            books.needs.push(needs.clone());
            books.needs.len() - 1
        });
        let task = TaskRecord {
            submitted,
            launched: NOT_YET,
            running: NOT_YET,
            ended: NOT_YET,
            finished: false,
            job,
            agent: 0,
        };
        books.tasks.extend((0..tasks).map(|_| task));
        // Kinds beyond this number share the last one in the records of demand.
        let kind = u16::try_from(kind).unwrap_or(u16::MAX);
        books.kinds.extend((0..tasks).map(|_| kind));
        books.jobs.push(JobRecord { submitted, left: tasks, retries, ended: NOT_YET });
        books.waiting_tasks += u64::from(tasks);
        needs.iter().for_each(|(name, amount)| books.waiting.add(&name, amount.scaled(f64::from(tasks))));
        first
    }

    /// Number of frameworks.
    pub fn frameworks(&self) -> usize {
        self.books.len()
    }

    /// The tasks of a framework.
    pub fn tasks(&self, who: usize) -> &[TaskRecord] {
        &self.books[who].tasks
    }

    /// When the last task of a task's job ended; infinite before.
    pub fn job_end(&self, who: usize, task: u64) -> f64 {
        let books = &self.books[who];
        let job = books.tasks.get(task as usize).and_then(|task| books.jobs.get(task.job as usize));
        job.map_or(NOT_YET, |job| job.ended)
    }

    /// Whether every submitted task has ended for good.
    pub fn all_done(&self) -> bool {
        self.books.iter().all(|books| books.waiting_tasks == 0 && books.running_tasks == 0)
    }

    /// The number of an agent.
    fn agent(&mut self, id: &Text) -> u32 {
        let next = self.agents.len() as u32;
        let known = self.agents.get(id).copied();
        known.unwrap_or_else(|| *self.agents.entry(id.clone()).or_insert(next))
    }

    /// A framework launches a task.
    fn launches(&mut self, who: usize, info: &TaskInfo, now: Time) {
        let (id, agent) = (&info.task_id.value, self.agent(&info.agent_id.value));
        if let Some((task, _)) = task_number(id) {
            self.launched(who, task, agent, now);
        } else if let Some(task) = numbered(info) {
            self.replaced(who, task.0, id);
            self.books[who].own.names.insert(id.to_string(), task);
            self.launched(who, task.0, agent, now);
        } else {
            let (needs, launched) = (scalars(&info.resources), seconds(now));
            self.uses(who, &needs, Way::More, launched);
            self.books[who].own.hands.insert(id.to_string(), Hand { needs, launched, agent });
        }
    }

    /// A task is launched again under another id. If the end of the former one was not reported, it stays in the
    /// records as a task that no job submitted: its framework has given it up, with an unreachable agent.
    fn replaced(&mut self, who: usize, task: u64, id: &str) {
        let books = &mut self.books[who];
        let Some(before) = books.own.newest.insert(task, id.to_owned()) else { return };
        let Some(record) = books.tasks.get(task as usize).copied() else { return };
        if books.own.names.remove(&before).is_some() {
            let needs = (*books.needs_of(task)).clone();
            books
                .own
                .hands
                .insert(before, Hand { needs: needs.clone(), launched: record.launched, agent: record.agent });
            books.running_tasks = books.running_tasks.saturating_sub(1);
            // As if it had waited, for what follows.
            books.waiting_tasks += 1;
            books.waiting += &needs;
        }
    }

    fn launched(&mut self, who: usize, task: u64, agent: u32, now: Time) {
        let books = &mut self.books[who];
        let Some(record) = books.tasks.get_mut(task as usize) else { return };
        (record.launched, record.agent) = (seconds(now), agent);
        let (over, job) = (record.ended < NOT_YET, record.job as usize);
        record.ended = NOT_YET;
        books.running_tasks += 1;
        let needs = books.needs_of(task);
        if over {
            // It was taken for over, and its framework thinks otherwise.
            let job = &mut books.jobs[job];
            (job.left, job.ended) = (job.left + 1, NOT_YET);
        } else {
            books.waiting_tasks = books.waiting_tasks.saturating_sub(1);
            books.waiting -= &needs;
        }
        self.uses(who, &needs, Way::More, seconds(now));
    }

    /// A framework receives a status.
    pub(crate) fn heard(&mut self, who: usize, status: &TaskStatus, now: Time) {
        let (id, state) = (&status.task_id.value, status.state());
        let own = &mut self.books[who].own;
        if own.names.is_empty() && own.hands.is_empty() {
            if let Some(task) = task_number(id) {
                self.updated(who, task, state, Again::of(state), now);
            }
            return;
        }
        let over = sdk::is_terminal(state);
        if over && let Some(hand) = own.hands.remove(id.as_str()) {
            if self.strips.len() < self.strips_max {
                self.strips.push((hand.agent, who as u32, hand.launched, seconds(now)));
            }
            return self.uses(who, &hand.needs, Way::Less, seconds(now));
        }
        let named = if over { own.names.remove(id.as_str()) } else { own.names.get(id.as_str()).copied() };
        if let Some((number, attempt)) = named {
            if over {
                own.newest.remove(&number);
            }
            // Its framework tries again without end what was lost through no fault of its own, and never what is wrong
            // in itself.
            let again = match state {
                TaskState::TaskError => Again::Never,
                TaskState::TaskFinished | TaskState::TaskFailed | TaskState::TaskKilled => Again::of(state),
                _ => Again::Always,
            };
            self.updated(who, (number, attempt), state, again, now);
        }
    }

    fn updated(&mut self, who: usize, (task, attempt): (u64, u32), state: TaskState, again: Again, now: Time) {
        let books = &mut self.books[who];
        let Some(record) = books.tasks.get_mut(task as usize) else { return };
        let now = seconds(now);
        if state == TaskState::TaskRunning {
            record.running = record.running.min(now);
        }
        if !sdk::is_terminal(state) || record.ended < NOT_YET || record.launched == NOT_YET {
            return;
        }
        let strip = (record.agent, who as u32, record.launched, now);
        let job = record.job as usize;
        let retried = match again {
            Again::Never => false,
            Again::Counted => attempt < books.jobs[job].retries,
            Again::Always => true,
        };
        books.running_tasks = books.running_tasks.saturating_sub(1);
        let needs = books.needs_of(task);
        if state != TaskState::TaskFinished {
            books.failed += 1;
        }
        let record = &mut books.tasks[task as usize];
        if retried {
            record.launched = NOT_YET;
            books.waiting_tasks += 1;
            books.waiting += &needs;
        } else {
            (record.ended, record.finished) = (now, state == TaskState::TaskFinished);
            let job = &mut books.jobs[job];
            job.left = job.left.saturating_sub(1);
            if job.left == 0 {
                job.ended = now;
            }
        }
        if self.strips.len() < self.strips_max {
            self.strips.push(strip);
        }
        self.uses(who, &needs, Way::Less, now);
    }

    /// An offer is not held any more.
    fn answered(&mut self, who: usize, id: &str, now: Time) {
        let books = &mut self.books[who];
        if let Some((held, since)) = books.offers.remove(id) {
            books.offer_seconds += now.since(since).as_secs_f64();
            self.holds(who, &held, Way::Less, seconds(now));
        }
    }

    pub(crate) fn offered(&mut self, who: usize, id: &Text, resources: &[Resource], now: Time) {
        let books = &mut self.books[who];
        let all = scalars(resources);
        books.offers_received += 1;
        self.holds(who, &all, Way::More, seconds(now));
        self.books[who].offers.insert(id.clone(), (all, now));
    }
}

impl Recorder {
    /// An offer was taken back.
    pub(crate) fn rescinded(&mut self, who: usize, id: &str, now: Time) {
        self.books[who].offers_rescinded += 1;
        self.answered(who, id, now);
    }

    /// All offers of a framework are void: it has lost its connection, or made another one.
    pub(crate) fn void(&mut self, who: usize, now: Time) {
        let mut ids: Vec<Text> = self.books[who].offers.keys().cloned().collect();
        ids.sort_unstable();
        ids.iter().for_each(|id| self.rescinded(who, id, now));
    }
}

impl Books {
    /// A job that is not a single task is worked on.
    pub(super) fn begun(&mut self, task: u64, now: f64) {
        let Some(record) = self.tasks.get_mut(task as usize).filter(|record| record.running == NOT_YET) else { return };
        record.running = now;
        self.waiting_tasks = self.waiting_tasks.saturating_sub(1);
        self.running_tasks += 1;
    }

    /// It is over.
    pub(super) fn over(&mut self, task: u64, well: bool, now: f64) {
        let Some(record) = self.tasks.get_mut(task as usize).filter(|record| record.ended == NOT_YET) else { return };
        (record.ended, record.finished) = (now, well);
        let (begun, job) = (record.running < NOT_YET, record.job as usize);
        if begun {
            self.running_tasks = self.running_tasks.saturating_sub(1);
        } else {
            self.waiting_tasks = self.waiting_tasks.saturating_sub(1);
            let needs = self.needs_of(task);
            self.waiting -= &needs;
        }
        let job = &mut self.jobs[job];
        job.left = job.left.saturating_sub(1);
        if job.left == 0 {
            job.ended = now;
        }
        self.failed += u64::from(!well);
    }

    fn needs_of(&self, task: u64) -> Needs {
        let kind = usize::from(self.kinds[task as usize]).min(self.needs.len() - 1);
        self.needs[kind].clone()
    }
}

/// The scalars of resources.
fn scalars(resources: &[Resource]) -> Quantities {
    let mut all = Quantities::new();
    for resource in resources {
        if let Some(scalar) = &resource.scalar {
            all.add(&Name::from(resource.name.as_str()), Amount::from_f64(scalar.value));
        }
    }
    all
}

/// More or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    More,
    Less,
}

impl Way {
    /// Adds, or takes away.
    fn change(self, amounts: &mut Quantities, by: &Quantities) {
        match self {
            Way::More => *amounts += by,
            Way::Less => *amounts -= by,
        }
    }
}

/// Seconds since the beginning.
pub(super) fn seconds(now: Time) -> f64 {
    now.since(BEGIN).as_secs_f64()
}

impl Observer for Recorder {
    fn received(&mut self, who: usize, event: &Event, now: Time) {
        if let Some(update) = &event.update {
            self.heard(who, &update.status, now);
        }
        if event.subscribed.is_some() {
            self.void(who, now);
        }
        for offer in event.offers.iter().flat_map(|offers| &offers.offers) {
            self.offered(who, &offer.id.value, &offer.resources, now);
        }
        if let Some(rescind) = &event.rescind {
            self.rescinded(who, &rescind.offer_id.value, now);
        }
    }

    fn called(&mut self, who: usize, call: &Call, now: Time) {
        match call.r#type() {
            call::Type::Accept => {
                let Some(accept) = &call.accept else { return };
                self.books[who].offers_accepted += accept.offer_ids.len() as u64;
                accept.offer_ids.iter().for_each(|id| self.answered(who, &id.value, now));
                let launches = accept.operations.iter().filter_map(|operation| operation.launch.as_ref());
                for task in launches.flat_map(|launch| &launch.task_infos) {
                    self.launches(who, task, now);
                }
            }
            call::Type::Decline => {
                let Some(decline) = &call.decline else { return };
                self.books[who].offers_declined += decline.offer_ids.len() as u64;
                decline.offer_ids.iter().for_each(|id| self.answered(who, &id.value, now));
            }
            _ => {}
        }
    }

    fn started(&mut self, _: &str, _: &str, _: Time) {}
    fn ended(&mut self, _: &str, _: &str, _: Time) {}
}

/// A framework's records at one time.
#[derive(Clone, Debug)]
pub struct FrameworkState {
    /// What its tasks use.
    pub used: Quantities,
    /// What its tasks that wait need.
    pub waiting: Quantities,
    /// What it holds as offers.
    pub held: Quantities,
    /// Tasks that wait.
    pub waiting_tasks: u64,
    /// Tasks that were launched and have not ended.
    pub running_tasks: u64,
    /// Tries that did not end well.
    pub failed: u64,
    /// Offers that it was made.
    pub offers_received: u64,
    /// Offers that it used.
    pub offers_accepted: u64,
    /// Offers that it declined.
    pub offers_declined: u64,
    /// Offers that were taken back.
    pub offers_rescinded: u64,
    /// How long it held an offer that is answered, in the mean; seconds.
    pub offer_held: f64,
}

impl Recorder {
    /// A framework's current records.
    pub fn state(&self, who: usize) -> FrameworkState {
        let books = &self.books[who];
        let answered = books.offers_accepted + books.offers_declined + books.offers_rescinded;
        FrameworkState {
            used: books.used.clone(),
            waiting: books.waiting.clone(),
            held: books.held.clone(),
            waiting_tasks: books.waiting_tasks,
            running_tasks: books.running_tasks,
            failed: books.failed,
            offers_received: books.offers_received,
            offers_accepted: books.offers_accepted,
            offers_declined: books.offers_declined,
            offers_rescinded: books.offers_rescinded,
            offer_held: if answered == 0 { 0.0 } else { books.offer_seconds / answered as f64 },
        }
    }

    /// From submission to end, for each job that is done; seconds.
    pub fn job_times(&self, who: usize) -> Vec<f64> {
        let ended = self.books[who].jobs.iter().filter(|job| job.ended.is_finite());
        ended.map(|job| job.ended - job.submitted).collect()
    }

    /// Tasks on agents: agent, framework, from, to (seconds); the first ones only.
    pub fn strips(&self) -> &[(u32, u32, f64, f64)] {
        &self.strips
    }
}
