//! Observer that records task and offer metrics of a run.

use base::{Text, Time};
use resources::{Amount, Name, Quantities};
use rustc_hash::FxHashMap;
use sdk::v1::scheduler::{Call, Event, call};
use sdk::v1::{Resource, TaskInfo, TaskState, TaskStatus};

use super::area::{Area, Areas};
use super::bundled::{BundledRecords, UnsubmittedTask};
use crate::users::{Needs, is_tried_again, task_number};
use crate::work::numbered;
use crate::world::{BEGIN, Observer};

/// The time of an event that has not happened: later than the end of every run.
const NOT_YET: f64 = f64::INFINITY;

/// The times of a task, in seconds since the beginning; infinite for events that have not happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskRecord {
    /// Time when the task was submitted to its framework.
    pub submitted: f64,
    /// Time of the framework's last launch of the task.
    pub launched: f64,
    /// Time when the framework received the first TASK_RUNNING.
    pub running: f64,
    /// Time when the framework received the terminal state.
    pub ended: f64,
    /// Whether the task ended with TASK_FINISHED.
    pub finished: bool,
    /// Number of the task's job.
    pub job: u32,
    /// Number of the agent on which the task ran last.
    pub agent: u32,
}

/// The times of a job, with the number of its tasks that have not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobRecord {
    pub submitted: f64,
    pub left: u32,
    retries: u32,
    pub ended: f64,
}

/// Whether a task that has ended is launched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    Never,
    /// If the job has retries left.
    Counted,
    Always,
}

impl Retry {
    fn of(state: TaskState) -> Retry {
        if is_tried_again(state) { Retry::Counted } else { Retry::Never }
    }
}

/// The records of one framework.
#[derive(Debug, Default)]
pub(super) struct FrameworkRecords {
    pub tasks: Vec<TaskRecord>,
    pub jobs: Vec<JobRecord>,
    needs: Vec<Needs>,
    /// Index in `needs`, by task.
    kinds: Vec<u16>,
    /// Resources of the framework's tasks, from launch to end.
    pub used: Quantities,
    /// Dominant share of the framework in use.
    share: Area,
    /// Needs of the framework's waiting tasks.
    pub waiting: Quantities,
    pub waiting_tasks: u64,
    pub running_tasks: u64,
    /// Offers that the framework holds, with the times of their receipt.
    offers: FxHashMap<Text, (Quantities, Time)>,
    pub held: Quantities,
    pub offers_received: u64,
    pub offers_accepted: u64,
    pub offers_declined: u64,
    pub offers_rescinded: u64,
    /// Total time for which offers were held, in seconds.
    pub offer_seconds: f64,
    pub failed: u64,
    /// Records that only a bundled framework has.
    pub bundled: BundledRecords,
}

/// The records of a run.
#[derive(Debug, Default)]
pub struct Recorder {
    pub(super) records: Vec<FrameworkRecords>,
    agents: FxHashMap<Text, u32>,
    /// Tasks on agents for a Gantt chart: agent, framework, start, end; recorded up to a limit.
    pub(super) strips: Vec<(u32, u32, f64, f64)>,
    strips_max: usize,
    /// Total resources of the agents; `used` has the integral of what is in use, by name.
    total: Quantities,
    used: Vec<(Name, Area)>,
    used_now: Quantities,
    held_now: Quantities,
    /// Part of the cluster in unanswered offers.
    offered: Area,
}

impl Recorder {
    /// Creates empty records of this many frameworks, and at most `strips_max` tasks of a Gantt chart. `total` are the
    /// resources of all agents.
    pub fn new(frameworks: usize, strips_max: usize, total: Quantities) -> Recorder {
        let records = (0..frameworks).map(|_| FrameworkRecords::default()).collect();
        let used = total.iter().map(|(name, _)| (name, Area::default())).collect();
        Recorder { records, strips_max, total, used, ..Recorder::default() }
    }

    /// Adds resources to those that a framework uses, or subtracts them.
    fn uses(&mut self, framework: usize, needs: &Quantities, way: Way, now: f64) {
        let records = &mut self.records[framework];
        way.change(&mut records.used, needs);
        records.share.set(records.used.ratio(&self.total), now);
        way.change(&mut self.used_now, needs);
        for (name, area) in &mut self.used {
            area.set(self.used_now.get(name).to_f64(), now);
        }
    }

    /// Adds resources to those that a framework holds as offers, or subtracts them.
    fn holds(&mut self, framework: usize, offered: &Quantities, way: Way, now: f64) {
        way.change(&mut self.records[framework].held, offered);
        way.change(&mut self.held_now, offered);
        self.offered.set(self.held_now.ratio(&self.total), now);
    }

    /// Returns the integrals until `now`.
    pub fn areas(&self, now: f64) -> Areas {
        Areas {
            at: now,
            shares: self.records.iter().map(|records| records.share.at(now)).collect(),
            used: self.used.iter().map(|(_, area)| area.at(now)).collect(),
            offered: self.offered.at(now),
        }
    }

    /// Records that a job of this many tasks is submitted to a framework. Returns the number of its first task.
    pub fn submit(&mut self, framework: usize, needs: &Needs, tasks: u32, retries: u32, now: Time) -> u64 {
        let records = &mut self.records[framework];
        let first = records.tasks.len() as u64;
        let job = records.jobs.len() as u32;
        let submitted = seconds(now);
        let kind = records.needs.iter().position(|known| known == needs).unwrap_or_else(|| {
            records.needs.push(needs.clone());
            records.needs.len() - 1
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
        records.tasks.extend((0..tasks).map(|_| task));
        // Kinds beyond the largest number share the last one in the records of demand.
        let kind = u16::try_from(kind).unwrap_or(u16::MAX);
        records.kinds.extend((0..tasks).map(|_| kind));
        records.jobs.push(JobRecord { submitted, left: tasks, retries, ended: NOT_YET });
        records.waiting_tasks += u64::from(tasks);
        needs.iter().for_each(|(name, amount)| records.waiting.add(&name, amount.scaled(f64::from(tasks))));
        first
    }

    /// Returns the number of frameworks.
    pub fn frameworks(&self) -> usize {
        self.records.len()
    }

    /// Returns the records of a framework's tasks.
    pub fn tasks(&self, framework: usize) -> &[TaskRecord] {
        &self.records[framework].tasks
    }

    /// Returns when the last task of a task's job ended; infinite before.
    pub fn job_end(&self, framework: usize, task: u64) -> f64 {
        let records = &self.records[framework];
        let job = records.tasks.get(task as usize).and_then(|task| records.jobs.get(task.job as usize));
        job.map_or(NOT_YET, |job| job.ended)
    }

    /// Returns whether every submitted task has ended and is not launched again.
    pub fn all_done(&self) -> bool {
        self.records.iter().all(|records| records.waiting_tasks == 0 && records.running_tasks == 0)
    }

    /// Returns the number of an agent.
    fn agent(&mut self, id: &Text) -> u32 {
        let next = self.agents.len() as u32;
        let known = self.agents.get(id).copied();
        known.unwrap_or_else(|| *self.agents.entry(id.clone()).or_insert(next))
    }

    /// Records the launch of a task by a framework.
    fn launches(&mut self, framework: usize, info: &TaskInfo, now: Time) {
        let (id, agent) = (&info.task_id.value, self.agent(&info.agent_id.value));
        if let Some((task, _)) = task_number(id) {
            self.launched(framework, task, agent, now);
        } else if let Some(task) = numbered(info) {
            self.replaced(framework, task.0, id);
            self.records[framework].bundled.names.insert(id.to_string(), task);
            self.launched(framework, task.0, agent, now);
        } else {
            let (needs, launched) = (scalars(&info.resources), seconds(now));
            self.uses(framework, &needs, Way::More, launched);
            self.records[framework]
                .bundled
                .unsubmitted_tasks
                .insert(id.to_string(), UnsubmittedTask { needs, launched, agent });
        }
    }

    /// Records that a task is launched again under another id.
    ///
    /// If the end of the former one was not reported, it stays in the records as a task that no job submitted: its
    /// framework has abandoned it with an unreachable agent.
    fn replaced(&mut self, framework: usize, task: u64, id: &str) {
        let records = &mut self.records[framework];
        let Some(before) = records.bundled.newest.insert(task, id.to_owned()) else { return };
        let Some(record) = records.tasks.get(task as usize).copied() else { return };
        if records.bundled.names.remove(&before).is_some() {
            let needs = (*records.needs_of(task)).clone();
            records.bundled.unsubmitted_tasks.insert(
                before,
                UnsubmittedTask { needs: needs.clone(), launched: record.launched, agent: record.agent },
            );
            records.running_tasks = records.running_tasks.saturating_sub(1);
            // The task counts as waiting until its new launch is recorded.
            records.waiting_tasks += 1;
            records.waiting += &needs;
        }
    }

    fn launched(&mut self, framework: usize, task: u64, agent: u32, now: Time) {
        let records = &mut self.records[framework];
        let Some(record) = records.tasks.get_mut(task as usize) else { return };
        (record.launched, record.agent) = (seconds(now), agent);
        let (over, job) = (record.ended < NOT_YET, record.job as usize);
        record.ended = NOT_YET;
        records.running_tasks += 1;
        let needs = records.needs_of(task);
        if over {
            // The task counted as ended, but its framework launches it again.
            let job = &mut records.jobs[job];
            (job.left, job.ended) = (job.left + 1, NOT_YET);
        } else {
            records.waiting_tasks = records.waiting_tasks.saturating_sub(1);
            records.waiting -= &needs;
        }
        self.uses(framework, &needs, Way::More, seconds(now));
    }

    /// Records a status that a framework receives.
    pub(crate) fn record_status(&mut self, framework: usize, status: &TaskStatus, now: Time) {
        let (id, state) = (&status.task_id.value, status.state());
        let bundled = &mut self.records[framework].bundled;
        if bundled.names.is_empty() && bundled.unsubmitted_tasks.is_empty() {
            if let Some(task) = task_number(id) {
                self.updated(framework, task, state, Retry::of(state), now);
            }
            return;
        }
        let over = sdk::is_terminal(state);
        if over && let Some(unsubmitted_task) = bundled.unsubmitted_tasks.remove(id.as_str()) {
            if self.strips.len() < self.strips_max {
                self.strips.push((unsubmitted_task.agent, framework as u32, unsubmitted_task.launched, seconds(now)));
            }
            return self.uses(framework, &unsubmitted_task.needs, Way::Less, seconds(now));
        }
        let named = if over { bundled.names.remove(id.as_str()) } else { bundled.names.get(id.as_str()).copied() };
        if let Some((number, attempt)) = named {
            if over {
                bundled.newest.remove(&number);
            }
            // The framework always launches a lost task again, and never one that is invalid.
            let retry = match state {
                TaskState::TaskError => Retry::Never,
                TaskState::TaskFinished | TaskState::TaskFailed | TaskState::TaskKilled => Retry::of(state),
                _ => Retry::Always,
            };
            self.updated(framework, (number, attempt), state, retry, now);
        }
    }

    fn updated(&mut self, framework: usize, (task, attempt): (u64, u32), state: TaskState, retry: Retry, now: Time) {
        let records = &mut self.records[framework];
        let Some(record) = records.tasks.get_mut(task as usize) else { return };
        let now = seconds(now);
        if state == TaskState::TaskRunning {
            record.running = record.running.min(now);
        }
        if !sdk::is_terminal(state) || record.ended < NOT_YET || record.launched == NOT_YET {
            return;
        }
        let strip = (record.agent, framework as u32, record.launched, now);
        let job = record.job as usize;
        let retried = match retry {
            Retry::Never => false,
            Retry::Counted => attempt < records.jobs[job].retries,
            Retry::Always => true,
        };
        records.running_tasks = records.running_tasks.saturating_sub(1);
        let needs = records.needs_of(task);
        if state != TaskState::TaskFinished {
            records.failed += 1;
        }
        let record = &mut records.tasks[task as usize];
        if retried {
            record.launched = NOT_YET;
            records.waiting_tasks += 1;
            records.waiting += &needs;
        } else {
            (record.ended, record.finished) = (now, state == TaskState::TaskFinished);
            let job = &mut records.jobs[job];
            job.left = job.left.saturating_sub(1);
            if job.left == 0 {
                job.ended = now;
            }
        }
        if self.strips.len() < self.strips_max {
            self.strips.push(strip);
        }
        self.uses(framework, &needs, Way::Less, now);
    }

    /// Records that a framework holds an offer no longer.
    fn answered(&mut self, framework: usize, id: &str, now: Time) {
        let records = &mut self.records[framework];
        if let Some((held, since)) = records.offers.remove(id) {
            records.offer_seconds += now.since(since).as_secs_f64();
            self.holds(framework, &held, Way::Less, seconds(now));
        }
    }

    pub(crate) fn offered(&mut self, framework: usize, id: &Text, resources: &[Resource], now: Time) {
        let records = &mut self.records[framework];
        let all = scalars(resources);
        records.offers_received += 1;
        self.holds(framework, &all, Way::More, seconds(now));
        self.records[framework].offers.insert(id.clone(), (all, now));
    }
}

impl Recorder {
    /// Records that an offer was rescinded.
    pub(crate) fn rescinded(&mut self, framework: usize, id: &str, now: Time) {
        self.records[framework].offers_rescinded += 1;
        self.answered(framework, id, now);
    }

    /// Records that all offers of a framework are void, because it has lost its connection or made another one.
    pub(crate) fn void_offers(&mut self, framework: usize, now: Time) {
        let mut ids: Vec<Text> = self.records[framework].offers.keys().cloned().collect();
        ids.sort_unstable();
        ids.iter().for_each(|id| self.rescinded(framework, id, now));
    }
}

impl FrameworkRecords {
    /// Records that a job has started which is not a single task.
    pub(super) fn job_started(&mut self, task: u64, now: f64) {
        let Some(record) = self.tasks.get_mut(task as usize).filter(|record| record.running == NOT_YET) else { return };
        record.running = now;
        self.waiting_tasks = self.waiting_tasks.saturating_sub(1);
        self.running_tasks += 1;
    }

    /// Records that such a job has ended; `well` if it succeeded.
    pub(super) fn job_ended(&mut self, task: u64, well: bool, now: f64) {
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

/// Returns the scalars among resources.
fn scalars(resources: &[Resource]) -> Quantities {
    let mut all = Quantities::new();
    for resource in resources {
        if let Some(scalar) = &resource.scalar {
            all.add(&Name::from(resource.name.as_str()), Amount::from_f64(scalar.value));
        }
    }
    all
}

/// Whether an amount is added or subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    More,
    Less,
}

impl Way {
    /// Adds or subtracts an amount.
    fn change(self, amounts: &mut Quantities, by: &Quantities) {
        match self {
            Way::More => *amounts += by,
            Way::Less => *amounts -= by,
        }
    }
}

/// Converts a time to seconds since the beginning.
pub(super) fn seconds(now: Time) -> f64 {
    now.since(BEGIN).as_secs_f64()
}

impl Observer for Recorder {
    fn received(&mut self, framework: usize, event: &Event, now: Time) {
        if let Some(update) = &event.update {
            self.record_status(framework, &update.status, now);
        }
        if event.subscribed.is_some() {
            self.void_offers(framework, now);
        }
        for offer in event.offers.iter().flat_map(|offers| &offers.offers) {
            self.offered(framework, &offer.id.value, &offer.resources, now);
        }
        if let Some(rescind) = &event.rescind {
            self.rescinded(framework, &rescind.offer_id.value, now);
        }
    }

    fn called(&mut self, framework: usize, call: &Call, now: Time) {
        match call.r#type() {
            call::Type::Accept => {
                let Some(accept) = &call.accept else { return };
                self.records[framework].offers_accepted += accept.offer_ids.len() as u64;
                accept.offer_ids.iter().for_each(|id| self.answered(framework, &id.value, now));
                let launches = accept.operations.iter().filter_map(|operation| operation.launch.as_ref());
                for task in launches.flat_map(|launch| &launch.task_infos) {
                    self.launches(framework, task, now);
                }
            }
            call::Type::Decline => {
                let Some(decline) = &call.decline else { return };
                self.records[framework].offers_declined += decline.offer_ids.len() as u64;
                decline.offer_ids.iter().for_each(|id| self.answered(framework, &id.value, now));
            }
            _ => {}
        }
    }

    fn started(&mut self, _: &str, _: &str, _: Time) {}
    fn ended(&mut self, _: &str, _: &str, _: Time) {}
}

/// The records of a framework at one time.
#[derive(Clone, Debug)]
pub struct FrameworkState {
    /// Resources of the framework's running tasks.
    pub used: Quantities,
    /// Needs of the framework's waiting tasks.
    pub waiting: Quantities,
    /// Resources in the framework's unanswered offers.
    pub held: Quantities,
    /// Number of tasks that wait.
    pub waiting_tasks: u64,
    /// Number of tasks that were launched and have not ended.
    pub running_tasks: u64,
    /// Number of attempts that did not finish.
    pub failed: u64,
    /// Number of offers that the framework received.
    pub offers_received: u64,
    /// Number of offers that the framework accepted.
    pub offers_accepted: u64,
    /// Number of offers that the framework declined.
    pub offers_declined: u64,
    /// Number of offers that were rescinded.
    pub offers_rescinded: u64,
    /// Mean time for which the framework held an answered or rescinded offer, in seconds.
    pub offer_held: f64,
}

impl Recorder {
    /// Returns the current records of a framework.
    pub fn state(&self, framework: usize) -> FrameworkState {
        let records = &self.records[framework];
        let answered = records.offers_accepted + records.offers_declined + records.offers_rescinded;
        FrameworkState {
            used: records.used.clone(),
            waiting: records.waiting.clone(),
            held: records.held.clone(),
            waiting_tasks: records.waiting_tasks,
            running_tasks: records.running_tasks,
            failed: records.failed,
            offers_received: records.offers_received,
            offers_accepted: records.offers_accepted,
            offers_declined: records.offers_declined,
            offers_rescinded: records.offers_rescinded,
            offer_held: if answered == 0 { 0.0 } else { records.offer_seconds / answered as f64 },
        }
    }

    /// Returns the times from submission to end of a framework's finished jobs, in seconds.
    pub fn job_times(&self, framework: usize) -> Vec<f64> {
        let ended = self.records[framework].jobs.iter().filter(|job| job.ended.is_finite());
        ended.map(|job| job.ended - job.submitted).collect()
    }

    /// Returns tasks on agents for a Gantt chart: agent, framework, start and end in seconds. Only the first tasks are
    /// recorded.
    pub fn strips(&self) -> &[(u32, u32, f64, f64)] {
        &self.strips
    }
}
