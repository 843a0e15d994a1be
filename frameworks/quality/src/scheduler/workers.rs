//! Worker tasks: creates and places them, and interprets their updates.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use resources::{Resources, Role, parse_text};
use sdk::base::Time;
use sdk::v1::{TaskInfo, TaskState, TaskStatus};
use sdk::{Bin, Calls, Packer, is_terminal};

use super::entry::{Entry, WorkerTask};
use super::{Directive, FreePlaces, Move, Quality, Worker};

/// Environment variable with the job that a worker starts with. The worker may change its job later, so neither its
/// task's id nor its arguments name one.
pub const JOB_VARIABLE: &str = "TEPUI_QUALITY_JOB";
/// Environment variable with a job's token.
pub const TOKEN_VARIABLE: &str = "TEPUI_QUALITY_TOKEN";
/// Key prefix of the stored job of a worker.
pub(super) const WORKER: &str = "worker/";
/// Key prefix of the stored number of a worker's places, if it is more than one.
pub(super) const PLACES: &str = "places/";
/// Number of worker failures without an iteration in between after which the job fails.
pub(super) const FAILURES_MAX: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Minimum time that a worker may take to leave, and the time while the duration of its job's iterations is unknown.
const LEAVING: Duration = Duration::from_secs(2);
const LEAVING_UNKNOWN: Duration = Duration::from_secs(60);
/// Time that a program's worker may take to leave. Its driver gives the program ten seconds to write its state and end.
const LEAVING_PROGRAM: Duration = Duration::from_secs(15);

/// Returns whether a task has ended because of its agent or of the master, through no fault of its job.
fn is_lost(state: TaskState) -> bool {
    use TaskState::{TaskDropped, TaskGone, TaskGoneByOperator, TaskLost};
    matches!(state, TaskLost | TaskDropped | TaskGone | TaskGoneByOperator)
}

impl Worker {
    fn needs(&self) -> Resources {
        // A text of this form with two whole numbers can always be parsed.
        parse_text(&format!("cpus:{};mem:{}", self.cores, self.mem), &Role::star()).unwrap_or_default()
    }

    /// Creates a task of this many places; the memory of a program is its own.
    fn task(&self, id: &str, entry: &Entry, places: u32) -> TaskInfo {
        let cores = self.cores.saturating_mul(places);
        let mem = entry.job.program().map_or(self.mem, |program| program.mem);
        let needs = Worker { cores, mem, ..self.clone() }.needs();
        let cores = cores.to_string();
        // A quarter of its memory is for files of jobs to which it may return; in MB, as all of it.
        let keep = (self.mem / 4).to_string();
        let pace = self.pace.map(|p| p.to_string());
        let mut words: Vec<&str> = self.command.iter().map(String::as_str).collect();
        words.extend(["--driver", &self.driver, "--task", id, "--cores", &cores]);
        words.extend(["--keep", &keep]);
        words.extend(pace.iter().flat_map(|p| ["--pace", p.as_str()]));
        let mut task = sdk::task::program(id, &words, &needs);
        if let Some(command) = &mut task.command {
            let first = [(JOB_VARIABLE, entry.job.name.as_str()), (TOKEN_VARIABLE, entry.token.as_str())];
            command.environment = Some(sdk::task::environment(first));
        }
        task
    }

    /// Returns the number of workers that fit into these resources.
    fn fit(&self, left: &Resources) -> u32 {
        let needs = self.needs();
        let left = left.non_revocable();
        let times = |has: resources::Amount, wants: resources::Amount| {
            has.thousandths().checked_div(wants.thousandths()).unwrap_or(i64::MAX)
        };
        let places = times(left.cpus(), needs.cpus()).min(times(left.mem(), needs.mem()));
        u32::try_from(places.max(0)).unwrap_or(u32::MAX)
    }
}

impl Quality {
    /// Records the free places on the current offers.
    pub(super) fn record_free_places(&mut self, packer: &Packer, now: Time) {
        for bin in packer.bins() {
            let places = self.settings.worker.fit(bin.left());
            self.free_places.insert(bin.agent_id().value.to_string(), FreePlaces { places, seen: now });
        }
    }

    /// Launches workers for the jobs that lack some, one for each in turn. Jobs that have waited too long come first.
    pub(super) fn place(&mut self, packer: &mut Packer, now: Time, calls: &mut Calls) {
        let mut order = self.active(now);
        order.sort_by_key(|name| Reverse(self.jobs.get(name).map_or(0, Entry::overdue_epochs)));
        loop {
            let mut any = false;
            for name in &order {
                let Some(entry) = self.jobs.get(name).filter(|e| e.lacks(now) > 0) else { continue };
                let id = format!("worker.{}.{}", self.run, self.serial);
                // A program has one worker of many places. If no agent has enough, it waits for the offer of the agent
                // that has most.
                let most = if entry.is_program() { entry.lacks(now) } else { 1 };
                let room = self.free_places.values().map(|room| room.places).fold(1, u32::max);
                let worker = &self.settings.worker;
                let reserved = if entry.is_program() { &BTreeMap::new() } else { &self.reserved_places };
                let score = |bin: &Bin| match reserved.get(bin.agent_id().value.as_str()) {
                    // The places that programs need on an agent are theirs; places beyond these come last.
                    Some(reserved) => (worker.fit(bin.left()) > *reserved).then_some(0.0),
                    None => Some(1.0),
                };
                let put = |places| packer.place_by(worker.task(&id, entry, places), score).map(|agent| (agent, places));
                let placed = (most.min(room)..=most).rev().map(put).find_map(Result::ok);
                let Some((agent, places)) = placed else {
                    // A worker that is not a program may still fit.
                    if entry.is_program() { continue } else { return }
                };
                self.serial += 1;
                any = true;
                self.assign_worker(id, name, WorkerTask::new(agent, places, now), now, calls);
            }
            if !any {
                return;
            }
        }
    }

    /// Assigns a worker to a job, and saves that for a restart.
    fn assign_worker(&mut self, id: String, job: &str, worker: WorkerTask, now: Time, calls: &mut Calls) {
        let Some(entry) = self.jobs.get_mut(job) else { return };
        entry.count(now);
        calls.save(&format!("{WORKER}{id}"), job.as_bytes().to_vec());
        if worker.places > 1 {
            calls.save(&format!("{PLACES}{id}"), worker.places.to_string().into_bytes());
        }
        if entry.is_program() {
            // The program starts anew.
            (entry.served, entry.done, entry.capabilities) = (0, 0, None);
        }
        self.job_of_worker.insert(id.clone(), job.to_owned());
        entry.workers.insert(id, worker);
    }

    /// Decides about workers that a job's driver can release now.
    ///
    /// - Superfluous workers move to the job that lacks most, or end if no job lacks any. If that is their own job they
    ///   stay.
    /// - A worker of another job is sent there: it was on its way when its connection, or the scheduler, broke.
    /// - A worker without a job, because its agent was considered lost, ends.
    pub(super) fn release(&mut self, job: &str, free: &[String], now: Time, calls: &mut Calls) -> Directive {
        let mut directive = Directive::default();
        for id in free {
            let Some(owner) = self.job_of_worker.get(id).cloned() else {
                directive.leave.push(id.clone());
                continue;
            };
            let Some(worker) = self.jobs.get(&owner).and_then(|e| e.workers.get(id)).cloned() else { continue };
            let stays = worker.leaving.is_none();
            if (owner == job && stays) || worker.killed {
                continue;
            }
            // A program's task has the program's memory and cores: it ends with the program.
            let is_program = self.jobs.get(&owner).is_some_and(Entry::is_program);
            let ends = is_program || worker.leaves_for_program;
            let next = if stays { Some(owner.clone()) } else { self.job_lacking_most_workers(now).filter(|_| !ends) };
            let Some(next) = next.and_then(|next| self.jobs.get(&next)) else {
                directive.leave.push(id.clone());
                continue;
            };
            let (name, token) = (next.job.name.clone(), next.token.clone());
            if name != job {
                directive.moves.push(Move { task: id.clone(), job: name.clone(), token });
            }
            if name != owner {
                if let Some(entry) = self.jobs.get_mut(&owner) {
                    entry.count(now);
                    entry.workers.remove(id);
                }
                self.assign_worker(
                    id.clone(),
                    &name,
                    WorkerTask { assigned_at: now, leaving: None, ..worker },
                    now,
                    calls,
                );
            } else if let Some(worker) = self.jobs.get_mut(&owner).and_then(|e| e.workers.get_mut(id)) {
                worker.leaving = None;
            }
        }
        directive
    }

    /// Returns the job that lacks workers most: the one that has waited too long, and longest; otherwise the one with
    /// the fewest workers. Among equals it is the oldest.
    fn job_lacking_most_workers(&self, now: Time) -> Option<String> {
        let lacking = self.jobs.values().filter(|e| e.lacks(now) > 0 && !e.is_program());
        lacking.min_by_key(|e| (Reverse(e.overdue_epochs()), e.staying(), e.number)).map(|e| e.job.name.clone())
    }

    /// Removes a worker whose task has ended.
    fn remove_worker(&mut self, id: &str, calls: &mut Calls) {
        calls.forget(&format!("{WORKER}{id}"));
        calls.forget(&format!("{PLACES}{id}"));
        self.job_of_worker.remove(id);
    }

    pub(super) fn on_update(&mut self, status: &TaskStatus, now: Time, calls: &mut Calls) {
        let id = status.task_id.value.as_str();
        let Some(entry) = self.job_of_worker.get(id).and_then(|job| self.jobs.get_mut(job)) else { return };
        entry.count(now);
        let state = status.state();
        if matches!(state, TaskState::TaskUnreachable | TaskState::TaskUnknown) {
            return self.replace_lost_worker(id, now, calls);
        }
        if !is_terminal(state) {
            if let Some(worker) = entry.workers.get_mut(id) {
                worker.running = state == TaskState::TaskRunning;
            }
            return;
        }
        let Some(worker) = entry.workers.remove(id) else { return };
        let room = self.free_places.entry(worker.agent.value.into()).or_insert(FreePlaces { places: 0, seen: now });
        *room = FreePlaces { places: room.places.saturating_add(worker.places), seen: now };
        if worker.leaving.is_none() && !is_lost(state) && entry.is_active() {
            let said = status.message.clone().unwrap_or_default();
            entry.last_failure = format!("{} ended with {}: {said}", id, state.as_str_name());
            // A failure of workers that were there when another one failed tells nothing new about the job.
            let again = entry.failed.is_none_or(|failed| worker.assigned_at >= failed);
            if again {
                (entry.failures, entry.failed) = (entry.failures + 1, Some(now));
            }
            if again && entry.failures > 1 {
                let pause = FIRST_PAUSE * 2_u32.saturating_pow(entry.failures.min(16));
                entry.not_before = now + pause.min(LONGEST_PAUSE);
            }
        }
        self.remove_worker(id, calls);
    }

    /// Removes a worker whose agent is lost, so that another one takes its place. If the agent returns its worker must
    /// end; the kill is requested once here, and repeated by the library until the task has ended.
    fn replace_lost_worker(&mut self, id: &str, now: Time, calls: &mut Calls) {
        let entry = self.job_of_worker.get(id).and_then(|job| self.jobs.get_mut(job));
        if let Some(worker) = entry.and_then(|entry| {
            entry.count(now);
            entry.workers.remove(id)
        }) {
            self.free_places.remove(worker.agent.value.as_str());
        }
        self.remove_worker(id, calls);
        calls.kill(id, None);
    }

    /// Kills workers that should have left by now, and at once those that have not even started.
    pub(super) fn kill_overdue_workers(&mut self, now: Time, calls: &mut Calls) {
        let epoch = self.settings.epoch;
        for entry in self.jobs.values_mut() {
            let time = entry.forecaster.time();
            // This is the predicted duration of the current iteration on its workers, without the overhead of the last
            // one.
            let iteration = Duration::try_from_secs_f64(time.seconds(entry.running().max(1))).unwrap_or(Duration::MAX);
            let known = if time.is_known() { LEAVING } else { LEAVING_UNKNOWN };
            let grace = if entry.is_program() { LEAVING_PROGRAM } else { known };
            let patience = grace.max(2 * epoch).max(iteration.saturating_mul(3));
            for (id, worker) in &mut entry.workers {
                let Some(since) = worker.leaving else { continue };
                if !worker.killed && (!worker.running || now.since(since) > patience) {
                    worker.killed = true;
                    calls.kill(id, None);
                }
            }
        }
    }

    /// Drops workers that the ledger does not know any more, because their launch was refused.
    pub(super) fn drop_unknown(&mut self, now: Time, calls: &mut Calls) {
        let mut gone = Vec::new();
        for entry in self.jobs.values_mut() {
            entry.count(now);
            entry.workers.retain(|id, _| {
                let known = calls.tasks().get(id).is_some();
                if !known {
                    gone.push(id.clone());
                }
                known
            });
        }
        gone.iter().for_each(|id| self.remove_worker(id, calls));
    }
}
