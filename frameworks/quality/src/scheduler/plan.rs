//! Plans an epoch: the number of workers of each job, and the workers to release.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sdk::Calls;
use sdk::base::Time;

use super::entry::{Entry, WorkerTask};
use super::growth::PlacesByAgent;
use super::question::{
    Answer, Directive, Earlier, Iteration, JobRefused, Outcome, Progress, Question, Restored, Submission,
};
use super::status::{Point, State};
use super::workers::FAILURES_MAX;
use super::{FreePlaces, Quality};
use crate::allocate::{Bid, decide};
use crate::job::JOBS_MAX;

/// Time for which free places are assumed to exist after their last offer.
const FREE_PLACES_VALID_FOR: Duration = Duration::from_secs(8);
/// Minimum interval between two requests for offers.
const REVIVAL: Duration = Duration::from_millis(500);

impl Quality {
    /// Returns the number of workers that are possible: those that exist, and those for which there seem to be free
    /// places.
    fn capacity(&self) -> u32 {
        let live = self.jobs.values().flat_map(|j| j.workers.values()).map(|h| h.places).fold(0, u32::saturating_add);
        let room: u32 = self.free_places.values().map(|r| r.places).fold(0, u32::saturating_add);
        live.saturating_add(room).min(self.settings.workers_max)
    }

    /// Returns whether there are places for more workers than jobs should have, and a job that could use them.
    pub(super) fn has_unused_places(&self, now: Time) -> bool {
        let cores = self.settings.worker.cores;
        let active = self.jobs.values().filter(|j| j.is_open(now));
        let (targets, ceilings) =
            active.fold((0_u32, 0_u32), |(t, c), j| (t.saturating_add(j.target), c.saturating_add(j.ceiling(cores))));
        targets < self.capacity().min(ceilings)
    }

    /// Shares the workers, and revives offers if a job lacks some.
    pub(super) fn plan(&mut self, now: Time, calls: &mut Calls) {
        self.planned = now;
        self.drop_unknown(now, calls);
        self.free_places.retain(|_, room| now.since(room.seen) < FREE_PLACES_VALID_FOR);
        // Cores are also shared in the middle of an epoch, which does not count as another epoch.
        let epoch = u32::from(now.since(self.counted) >= self.settings.epoch);
        if epoch > 0 {
            self.counted = now;
            self.save_running(now, calls);
        }
        let names = self.active(now);
        for name in &names {
            if let Some(entry) = self.jobs.get_mut(name) {
                entry.count_epochs(epoch);
            }
        }
        let cores = self.settings.worker.cores;
        // All places of a program are on one agent.
        let largest = self.agent_places().into_values().max().unwrap_or(0).max(1);
        let bid = |entry: &Entry| {
            let bid = entry.bid(now, cores);
            let most = if entry.is_program() { largest.max(bid.floor) } else { u32::MAX };
            Bid { ceiling: bid.ceiling.min(most), ..bid }
        };
        let bids: Vec<_> = names.iter().filter_map(|n| self.jobs.get(n)).map(bid).collect();
        let shares = decide(self.settings.policy, &bids, self.capacity(), self.settings.epoch.as_secs_f64());
        for (name, share) in names.iter().zip(shares) {
            if let Some(entry) = self.jobs.get_mut(name) {
                entry.target = share;
                if entry.is_program() {
                    adjust_program(entry, &self.free_places, now);
                }
            }
        }
        self.reserved_places = self.places_for_programs();
        for name in &names {
            if let Some(entry) = self.jobs.get_mut(name).filter(|entry| !entry.is_program()) {
                adjust_workers(entry, &self.reserved_places, now);
            }
        }
        self.clear_places_for_programs(now);
        self.want_offers(&names, now, calls);
    }

    fn want_offers(&mut self, names: &[String], now: Time, calls: &mut Calls) {
        if !self.connected {
            return;
        }
        if names.is_empty() {
            if !self.suppressed {
                self.suppressed = true;
                calls.suppress();
            }
            return;
        }
        let lacking = names.iter().any(|n| self.jobs.get(n).is_some_and(|e| e.lacks(now) > 0));
        let unseen = self.free_places.is_empty() && self.needs_more_places(now);
        let rested = self.revived.is_none_or(|at| now.since(at) >= REVIVAL);
        if self.suppressed || ((lacking || unseen) && rested) {
            self.suppressed = false;
            self.revived = Some(now);
            calls.revive();
        }
    }

    /// Returns whether jobs could use more workers than the known places allow.
    fn needs_more_places(&self, now: Time) -> bool {
        let cores = self.settings.worker.cores;
        let active = self.jobs.values().filter(|j| j.is_open(now));
        let wanted = active.map(|j| j.ceiling(cores)).fold(0, u32::saturating_add).min(self.settings.workers_max);
        self.capacity() < wanted
    }

    /// Answers a question. Returns `true` if cores should be shared again at once.
    pub(super) fn handle(&mut self, question: &Question, now: Time, calls: &mut Calls) -> (Answer, bool) {
        match question {
            Question::Submit(submissions) => {
                let taken = self.submit(submissions, now, calls);
                let changed = taken.is_ok();
                (Answer::Submitted(taken), changed)
            }
            Question::Progress(progress) => (Answer::Directive(self.progress(progress, now, calls)), false),
            Question::Ended { job, outcome, free } => {
                self.end(job, outcome, now, calls);
                // Other jobs get the workers at once, if they should have more.
                self.plan(now, calls);
                self.next_epoch = now + self.settings.epoch;
                (Answer::Directive(self.release(job, free, now, calls)), false)
            }
            Question::Forget(name) => {
                let known = self.jobs.get(name).map(|j| j.is_active() || !j.workers.is_empty());
                let result = match known {
                    None => Err(JobRefused::Unknown(name.clone())),
                    Some(true) => Err(JobRefused::Active(name.clone())),
                    Some(false) => {
                        self.drop_job(name, calls);
                        Ok(())
                    }
                };
                (Answer::Submitted(result), false)
            }
            Question::Stop { teardown } => {
                if *teardown {
                    calls.teardown()
                } else {
                    calls.stop()
                }
                (Answer::Done, false)
            }
            Question::Status => (Answer::Status(Box::new(self.status(now))), false),
            Question::Restored => {
                (Answer::Restored { jobs: self.restored(now), lost: std::mem::take(&mut self.lost) }, false)
            }
        }
    }

    fn submit(&mut self, submissions: &[Submission], now: Time, calls: &mut Calls) -> Result<(), JobRefused> {
        let mut names = BTreeSet::new();
        for Submission { job, .. } in submissions {
            job.check()?;
            if self.jobs.contains_key(&job.name) || !names.insert(&job.name) {
                return Err(JobRefused::Exists(job.name.clone()));
            }
        }
        if self.jobs.len() + submissions.len() > JOBS_MAX {
            return Err(JobRefused::TooMany);
        }
        let first = self.jobs.values().map(|j| j.number + 1).max().unwrap_or(0);
        for (number, Submission { job, token }) in (first..).zip(submissions) {
            let begins = now + Duration::try_from_secs_f64(job.after).unwrap_or_default();
            self.jobs.insert(job.name.clone(), Entry::new(job.clone(), token.clone(), number, begins));
            self.save(&job.name, now, calls);
        }
        Ok(())
    }

    fn restored(&self, now: Time) -> Vec<Restored> {
        let age = |j: &Entry| now.as_secs_f64() - j.submitted.as_secs_f64();
        let active = self.jobs.values().filter(|j| j.is_active());
        active.map(|j| Restored { job: j.job.clone(), token: j.token.clone(), age: age(j) }).collect()
    }

    fn progress(&mut self, progress: &Progress, now: Time, calls: &mut Calls) -> Directive {
        let started = self.started.unwrap_or(now);
        let per_worker = f64::from(self.settings.worker.cores);
        let Some(entry) = self.jobs.get_mut(&progress.job) else { return Directive::default() };
        if let Some(earlier) = &progress.earlier {
            restore_progress(entry, earlier);
        }
        if progress.capabilities.is_some() {
            entry.capabilities = progress.capabilities;
        }
        entry.repeated = match progress.iteration {
            Some(_) => None,
            None => progress.repeated.or(entry.repeated),
        };
        if let Some(iteration) = &progress.iteration {
            learn(entry, iteration);
            let seconds = now.since(started).as_secs_f64();
            let normalised = entry.forecaster.normalised();
            let cores = iteration.workers * per_worker;
            let (number, loss) = (iteration.number, iteration.loss);
            let validation_loss = iteration.validation.map(|v| v.loss);
            let rows = iteration.rows.map(|rows| rows.mean);
            let point = Point { seconds, iteration: number, loss, validation_loss, normalised, cores, rows };
            entry.results.remember(point);
        }
        let first = entry.results.iteration.is_some() && entry.saved.0.is_none();
        let give_up = (entry.failures >= FAILURES_MAX).then(|| {
            format!("workers ended {FAILURES_MAX} times without an iteration in between: {}", entry.last_failure)
        });
        let least_rows = entry.least_rows(self.settings.worker.cores);
        if first {
            self.save_results(&progress.job, now, calls);
        }
        Directive { give_up, least_rows, ..self.release(&progress.job, &progress.free, now, calls) }
    }

    fn end(&mut self, name: &str, outcome: &Outcome, now: Time, calls: &mut Calls) {
        let Some(entry) = self.jobs.get_mut(name).filter(|e| e.is_active()) else { return };
        let (state, reason) = match outcome {
            Outcome::Finished(why) => (State::Finished, why.clone()),
            Outcome::Failed(why) => (State::Failed, why.clone()),
            Outcome::Stopped => (State::Stopped, "stopped by its user".to_owned()),
        };
        entry.state = state;
        entry.reason = reason;
        entry.results.seconds = Some(now.since(entry.submitted).as_secs_f64());
        entry.target = 0;
        for worker in entry.workers.values_mut() {
            worker.leaving.get_or_insert(now);
        }
        self.save(name, now, calls);
    }
}

/// Records an iteration of a job.
fn learn(entry: &mut Entry, iteration: &Iteration) {
    entry.state = State::Running;
    (entry.failures, entry.failed) = (0, None);
    entry.results.iteration = Some(iteration.number);
    entry.results.loss = Some(iteration.loss);
    entry.results.accuracy = iteration.accuracy;
    // With critical rows, not every iteration is measured on validation data.
    entry.results.validation = iteration.validation.or(entry.results.validation.filter(|_| iteration.rows.is_some()));
    if iteration.number == 0 {
        entry.results.first_loss = Some(iteration.loss);
    }
    entry.results.go_back(iteration.number);
    entry.done = entry.done.saturating_add(1);
    entry.forecaster.observe(iteration.loss);
    let workers = (iteration.workers.round().max(1.0)) as u32;
    let (now, mean) = iteration.rows.map_or((1.0, 1.0), |rows| (rows.now, rows.mean));
    entry.forecaster.observe_part(iteration.seconds, workers, iteration.busy, now, mean);
    entry.results.rows = iteration.rows.map(|rows| rows.mean);
    entry.results.time = entry.forecaster.time();
    entry.results.left = entry.forecaster.normalised();
    entry.results.error = entry.forecaster.errors().median().or(entry.results.error);
}

/// Restores the progress before a restart: the job continues from there, regardless of persisted later iterations.
fn restore_progress(entry: &mut Entry, earlier: &Earlier) {
    earlier.losses.iter().for_each(|loss| entry.forecaster.observe(*loss));
    if let Some(first) = entry.results.first_loss.or(earlier.losses.first().copied()) {
        entry.results.first_loss = Some(first);
        entry.forecaster.set_first_loss(first);
    }
    if let Some(last) = &earlier.last {
        entry.state = State::Running;
        entry.results.iteration = Some(last.number);
        entry.results.loss = Some(last.loss);
        entry.results.accuracy = last.accuracy;
        entry.results.validation = last.validation;
        entry.results.left = entry.forecaster.normalised();
        entry.results.go_back(last.number + 1);
    }
}

/// Changes which workers of a job are to leave, so that as many stay as the job should have.
///
/// Of superfluous workers, those on agents on which programs should grow leave first, then those that do not run yet,
/// and then the newest. If more should stay, the oldest running ones do first. No worker has been asked to leave yet: a
/// worker is asked at the end of an iteration.
fn adjust_workers(entry: &mut Entry, wanted: &PlacesByAgent, now: Time) {
    let (target, staying) = (entry.target as usize, entry.staying() as usize);
    let leave = match target.cmp(&staying) {
        Ordering::Equal => return,
        Ordering::Less => true,
        Ordering::Greater => false,
    };
    let eligible =
        |worker: &WorkerTask| !worker.killed && !worker.leaves_for_program && worker.leaving.is_none() == leave;
    let mut workers: Vec<String> =
        entry.workers.iter().filter(|(_, h)| eligible(h)).map(|(id, _)| id.clone()).collect();
    // The oldest running workers come first.
    newest_last(&mut workers);
    workers.sort_by_key(|id| entry.workers.get(id).is_none_or(|worker| !worker.running));
    if leave {
        workers.reverse();
        let elsewhere = |worker: &WorkerTask| !wanted.contains_key(worker.agent.value.as_str());
        workers.sort_by_key(|id| entry.workers.get(id).is_none_or(elsewhere));
    }
    for id in workers.into_iter().take(target.abs_diff(staying)) {
        if let Some(worker) = entry.workers.get_mut(&id) {
            worker.leaving = leave.then_some(now);
        }
    }
}

/// Makes a program end if its successor should have other cores and one agent has places for them.
fn adjust_program(entry: &mut Entry, room: &BTreeMap<String, FreePlaces>, now: Time) {
    let Some(worker) = entry.workers.values().find(|h| h.leaving.is_none()) else { return };
    let own = |agent: &str| if agent == worker.agent.value.as_str() { worker.places } else { 0 };
    let others = room.iter().map(|(agent, room)| room.places.saturating_add(own(agent)));
    let most = others.fold(worker.places, u32::max);
    if entry.is_to_restart(worker.places, most) {
        entry.workers.values_mut().for_each(|worker| worker.leaving = worker.leaving.or(Some(now)));
    }
}

/// Sorts tasks by their age, the oldest first.
pub(super) fn newest_last(tasks: &mut [String]) {
    tasks.sort_by_key(|id| serial(id));
}

/// Returns the run and the serial number in a task's id.
fn serial(task_id: &str) -> (u64, u64) {
    let mut parts = task_id.rsplitn(3, '.').map(|p| p.parse::<u64>().unwrap_or(0));
    let serial = parts.next().unwrap_or(0);
    (parts.next().unwrap_or(0), serial)
}
