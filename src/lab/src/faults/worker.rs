//! The scheduler of a campaign's frameworks: each has work, records it in its state, and ends when all is done.
//!
//! Its [`View`] shows its state to the checker.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use base::Time;
use resources::{Resources, Role, parse_text};
use sdk::v1::{ExecutorId, ExecutorInfo, FrameworkId, Offer, TaskInfo, TaskState, TaskStatus, executor_info};
use sdk::{Calls, Event, Packer, Scheduler, is_terminal};

use super::plan::FrameworkPlan;
use super::rng::FaultRng;
use super::volume_slots::{self, Slot};

mod volumes;

/// Time after which a task that neither agent nor master knows is abandoned, and another task does its work.
const ABANDON_AFTER: Duration = Duration::from_secs(20 * 60);

/// The state of a scheduler that the checker reads, and requests to the scheduler.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Id of the framework; `None` before it has subscribed.
    pub id: Option<String>,
    /// Whether the scheduler is subscribed.
    pub subscribed: bool,
    /// Number of jobs that are not done, without services.
    pub left: usize,
    /// Number of services that do not run, as far as the scheduler knows.
    pub down: usize,
    /// Tasks in the scheduler's ledger, with their states.
    pub tasks: BTreeMap<String, TaskState>,
    /// Set by the run to request that the scheduler ends its services and itself.
    pub finish: bool,
}

/// A job, which may take several tasks one after the other.
#[derive(Clone, Debug, Default)]
struct Job {
    /// Number of the last task for the job, from 1.
    attempt: u32,
    done: bool,
    /// Whether the scheduler assumes that this task exists.
    running: bool,
    /// Time since when neither master nor agent has known the task.
    lost: Option<Time>,
}

/// The scheduler of a framework in a fault campaign.
#[derive(Debug)]
pub(super) struct CampaignScheduler {
    plan: Rc<FrameworkPlan>,
    /// Number of the scheduler among the frameworks.
    framework: usize,
    view: Rc<RefCell<View>>,
    rng: FaultRng,
    needs: Resources,
    jobs: Vec<Job>,
    slots: Vec<Slot>,
    held: Vec<Offer>,
    decide_at: Option<Time>,
    unacknowledged: Vec<TaskStatus>,
    acknowledge_at: Option<Time>,
    suppressed: bool,
    subscribed: bool,
    /// Time when the scheduler's process started.
    started_at: Option<Time>,
}

fn task_id(job: usize, attempt: u32) -> String {
    format!("t{job}.{attempt}")
}

fn read_id(id: &str) -> Option<(usize, u32)> {
    let (job, attempt) = id.strip_prefix('t')?.split_once('.')?;
    Some((job.parse().ok()?, attempt.parse().ok()?))
}

impl CampaignScheduler {
    /// Creates a scheduler whose process has just started.
    pub fn new(plan: Rc<FrameworkPlan>, framework: usize, view: Rc<RefCell<View>>, rng: FaultRng) -> CampaignScheduler {
        let jobs = vec![Job::default(); (plan.tasks + plan.services) as usize];
        CampaignScheduler {
            framework,
            slots: vec![Slot::default(); plan.volumes as usize],
            view,
            rng,
            needs: parse_text("cpus:1;mem:64", &Role::star()).unwrap_or_default(),
            jobs,
            held: Vec::new(),
            decide_at: None,
            unacknowledged: Vec::new(),
            acknowledge_at: None,
            suppressed: false,
            subscribed: false,
            started_at: None,
            plan,
        }
    }

    fn is_service(&self, job: usize) -> bool {
        job >= self.plan.tasks as usize
    }

    fn restored(&mut self, own: &BTreeMap<String, Vec<u8>>, now: Time, calls: &Calls) {
        for (n, slot) in self.slots.iter_mut().enumerate() {
            let saved = own.get(&volume_slots::key(n)).and_then(|bytes| Slot::from_bytes(bytes, now));
            *slot = saved.unwrap_or_default();
        }
        for (n, job) in self.jobs.iter_mut().enumerate() {
            let Some([a, b, c, d, done]) = own.get(&n.to_string()).map(Vec::as_slice) else { continue };
            job.attempt = u32::from_le_bytes([*a, *b, *c, *d]);
            job.done = *done == 1;
            job.running = !job.done && calls.tasks().get(&task_id(n, job.attempt)).is_some();
        }
    }

    fn save(&self, n: usize, calls: &mut Calls) {
        let job = &self.jobs[n];
        let mut bytes = job.attempt.to_le_bytes().to_vec();
        bytes.push(u8::from(job.done));
        calls.save(&n.to_string(), bytes);
    }

    fn updated(&mut self, status: &TaskStatus, now: Time, calls: &mut Calls) {
        if self.plan.late > 0 && status.uuid.is_some() && self.rng.chance(self.plan.late) {
            calls.hold_acknowledgement();
            self.unacknowledged.push(status.clone());
            let acknowledge_at = now + self.rng.span(Duration::from_secs(15));
            self.acknowledge_at.get_or_insert(acknowledge_at);
        }
        let (id, state) = (&status.task_id.value, status.state());
        let Some((n, attempt)) = read_id(id) else { return };
        let finish = self.view.borrow().finish;
        let service = self.is_service(n);
        let Some(job) = self.jobs.get_mut(n) else { return };
        if attempt != job.attempt || job.done {
            // The task was abandoned as lost but exists. A kill of a task that does not exist would be answered with
            // its state again.
            let is_there = !is_terminal(state) && !matches!(state, TaskState::TaskUnreachable | TaskState::TaskUnknown);
            if is_there {
                calls.kill(id, None);
            }
            return;
        }
        match state {
            TaskState::TaskFinished | TaskState::TaskKilled => (job.done, job.running) = (true, false),
            _ if is_terminal(state) => (job.running, job.done) = (false, finish && service),
            TaskState::TaskUnreachable | TaskState::TaskUnknown => {
                job.lost.get_or_insert(now);
                return;
            }
            _ => (job.running, job.lost) = (true, None),
        }
        if job.done && service && !finish {
            // Another process has killed the service, so it must run again.
            job.done = false;
        }
        let done = job.done;
        self.save(n, calls);
        if done {
            self.change_volume(n, calls);
        }
        if state == TaskState::TaskRunning && !service && self.plan.kills > 0 && self.rng.chance(self.plan.kills) {
            calls.kill(id, None);
        }
    }

    fn waiting(&self) -> impl Iterator<Item = usize> {
        let finish = self.view.borrow().finish;
        let over = move |(n, job): &(usize, &Job)| job.done || job.running || (finish && self.is_service(*n));
        self.jobs.iter().enumerate().filter(move |job| !over(job)).map(|(n, _)| n)
    }

    /// Performs all actions that are due.
    fn act(&mut self, now: Time, calls: &mut Calls) {
        if self.view.borrow().finish {
            self.finish(calls);
        }
        self.give_up(now);
        if self.acknowledge_at.is_some_and(|at| at <= now) {
            self.acknowledge_at = None;
            std::mem::take(&mut self.unacknowledged).iter().for_each(|status| calls.acknowledge(status));
        }
        if self.decide_at.is_some_and(|at| at <= now) {
            self.decide_at = None;
            self.decide(now, calls);
        }
        let missed = self.miss_volumes(now, calls);
        let wants = self.waiting().next().is_some() || self.slots.iter().any(|slot| slot.live);
        if self.subscribed && self.plan.suppress && wants == self.suppressed {
            self.suppressed = !wants;
            if wants { calls.revive() } else { calls.suppress() }
        }
        let started_at = *self.started_at.get_or_insert(now);
        let quits = self.plan.quits.map(|after| started_at + after);
        if self.subscribed && (self.all_over(calls) || quits.is_some_and(|at| at <= now)) {
            return calls.teardown();
        }
        let lost = self.jobs.iter().filter_map(|job| Some(job.lost? + ABANDON_AFTER)).min();
        [self.acknowledge_at, self.decide_at, lost, missed, quits.filter(|at| *at > now)]
            .into_iter()
            .flatten()
            .for_each(|at| calls.wake_at(at));
    }

    /// Returns whether all work is done and the framework can be torn down.
    fn all_over(&self, calls: &Calls) -> bool {
        let gone = |state| matches!(state, TaskState::TaskUnreachable | TaskState::TaskUnknown);
        self.plan.tears_down
            && self.unacknowledged.is_empty()
            && self.jobs.iter().all(|job| job.done)
            && self.slots.iter().all(|slot| !slot.live)
            && calls.tasks().iter().all(|(_, entry)| gone(entry.state))
            && (self.plan.services == 0 || self.view.borrow().finish)
    }

    fn finish(&mut self, calls: &mut Calls) {
        for n in self.plan.tasks as usize..self.jobs.len() {
            let id = task_id(n, self.jobs[n].attempt);
            if !self.jobs[n].running {
                self.jobs[n].done = true;
            } else if calls.tasks().get(&id).is_some_and(|entry| entry.kill.is_none()) {
                calls.kill(&id, None);
            }
        }
    }

    /// Abandons tasks that have been unknown for [`ABANDON_AFTER`].
    fn give_up(&mut self, now: Time) {
        let finish = self.view.borrow().finish;
        let tasks = self.plan.tasks as usize;
        for (n, job) in self.jobs.iter_mut().enumerate() {
            if job.lost.is_some_and(|since| since + ABANDON_AFTER <= now) {
                (job.lost, job.running) = (None, false);
                job.done = finish && n >= tasks;
            }
        }
    }

    /// Launches two tasks in one executor as a group, if an offer fits both.
    fn launch_group(&mut self, calls: &mut Calls) {
        // Services are left out: a service would hold the executor's resources forever, and plans reserve none for
        // executors.
        let two: Vec<usize> =
            self.waiting().filter(|n| !self.is_service(*n) && self.slot_of(*n).is_none()).take(2).collect();
        let (Some(id), Ok(room)) =
            (self.view.borrow().id.clone(), parse_text("cpus:2.1;mem:160;disk:1", &Role::star()))
        else {
            return;
        };
        let fits = |offer: &Offer| {
            let all = sdk::task::from_v1(&offer.resources).unwrap_or_default();
            let plain: Resources = all.unallocated().iter().filter(|one| one.is_unreserved()).cloned().collect();
            plain.contains(&room)
        };
        let Some(at) = self.held.iter().position(fits).filter(|_| two.len() == 2) else { return };
        let offer = self.held.remove(at);
        let mut tasks: Vec<TaskInfo> = Vec::new();
        for n in two {
            let id = task_id(n, self.jobs[n].attempt + 1);
            tasks.push(sdk::task::shell(&id, &self.command(n), &self.needs));
            self.launched(n, calls);
        }
        let needs = parse_text("cpus:0.1;mem:32;disk:1", &Role::star()).unwrap_or_default();
        let executor = ExecutorInfo {
            r#type: Some(executor_info::Type::Default as i32),
            executor_id: ExecutorId { value: format!("group-{}", tasks[0].task_id.value).into() },
            framework_id: Some(FrameworkId { value: id.into() }),
            resources: sdk::task::to_v1(&needs),
            ..ExecutorInfo::default()
        };
        calls.launch_group(&offer, executor, tasks, self.plan.refuse);
    }

    /// Returns the command of the next task for a job. The duration depends on the job only, so that it is the same in
    /// each try.
    fn command(&self, n: usize) -> String {
        let seconds = self.plan.longest.as_secs_f64() * ((n * 37 + 11) % 100) as f64 / 100.0;
        if self.is_service(n) { "sleep infinity".to_owned() } else { format!("sleep {seconds:.3}") }
    }

    /// Records that the next task for a job is being launched.
    fn launched(&mut self, n: usize, calls: &mut Calls) {
        (self.jobs[n].attempt, self.jobs[n].running) = (self.jobs[n].attempt + 1, true);
        self.save(n, calls);
    }

    fn decide(&mut self, now: Time, calls: &mut Calls) {
        if !self.slots.is_empty() {
            self.use_volumes(now, calls);
        }
        if self.plan.groups > 0 && self.rng.chance(self.plan.groups) {
            self.launch_group(calls);
        }
        let mut packer = Packer::new(std::mem::take(&mut self.held));
        let waiting = self.waiting().filter(|n| self.slot_of(*n).is_none());
        for n in waiting.take(self.plan.at_once).collect::<Vec<usize>>() {
            let attempt = self.jobs[n].attempt + 1;
            let id = task_id(n, attempt);
            let mut task = sdk::task::shell(&id, &self.command(n), &self.needs);
            if attempt == 1 && self.plan.wrong > 0 && self.rng.chance(self.plan.wrong) {
                task.command = None;
            }
            if packer.place(task).is_err() {
                break;
            }
            self.launched(n, calls);
        }
        packer.finish(calls, self.plan.refuse);
    }

    fn show(&self, calls: &Calls) {
        let mut view = self.view.borrow_mut();
        view.subscribed = self.subscribed;
        let tasks = self.plan.tasks as usize;
        view.left = self.jobs[..tasks].iter().filter(|job| !job.done).count();
        view.down = self.jobs[tasks..].iter().filter(|job| !job.running).count();
        view.tasks = calls.tasks().iter().map(|(id, entry)| (id.to_owned(), entry.state)).collect();
    }
}

impl Scheduler for CampaignScheduler {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        match event {
            Event::Restored(own) => self.restored(&own, now, calls),
            Event::Subscribed { framework_id, .. } => {
                (self.subscribed, self.suppressed) = (true, false);
                self.held.clear();
                self.view.borrow_mut().id = Some(framework_id.value.into());
            }
            Event::Disconnected { .. } => {
                self.subscribed = false;
                self.held.clear();
            }
            Event::Offers(offers) => {
                self.held.extend(offers);
                self.decide_at.get_or_insert(now + self.plan.hold);
            }
            Event::Rescinded(id) => self.held.retain(|offer| offer.id != id),
            Event::Update(status) => self.updated(&status, now, calls),
            _ => {}
        }
        self.act(now, calls);
        self.show(calls);
    }
}
