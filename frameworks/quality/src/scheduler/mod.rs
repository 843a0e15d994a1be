//! The scheduler: turns jobs into worker tasks. It knows how many workers each job has and should have, and not what
//! they compute.
//!
//! Once an epoch, and whenever a job arrives or ends, the policy shares the workers that fit on the cluster. A job with
//! too few workers gets more as soon as an offer has resources for them. A job with too many receives the names of
//! those to release at the end of its iteration, and to which job. So a worker may serve several jobs.

mod entry;
mod growth;
mod plan;
#[cfg(test)]
mod program_tests;
mod question;
mod results;
mod saved;
mod status;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::BTreeMap;
use std::time::Duration;

use sdk::base::Time;
use sdk::v1::Offer;
use sdk::{Calls, Event, Requests};

use crate::allocate::Policy;
use entry::Entry;

pub use crate::learn::Score;
pub use question::{
    Answer, Directive, Earlier, Iteration, JobRefused, Move, Outcome, Progress, Question, Restored, Submission,
};
pub use status::{JobStatus, Point, State, Status};
pub use workers::{JOB_VARIABLE, TOKEN_VARIABLE};

/// The settings of the scheduler.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Policy that shares the workers among jobs.
    pub policy: Policy,
    /// Interval of decisions.
    pub epoch: Duration,
    /// Maximum number of workers at a time.
    pub workers_max: u32,
    /// Resources and command of a worker.
    pub worker: Worker,
}

/// The definition of a worker task.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Program with its first arguments; the scheduler adds further ones.
    pub command: Vec<String>,
    /// Address of the driver, as `host:port`.
    pub driver: String,
    /// Number of cores of a worker.
    pub cores: u32,
    /// Memory of a worker, in MB.
    pub mem: u32,
    /// Maximum speed of a core, in operations a second; `None` for no limit.
    pub pace: Option<f64>,
}

/// The scheduler of the framework, with its jobs and their workers.
#[derive(Debug)]
pub struct Quality {
    settings: Settings,
    requests: Requests<Question, Answer>,
    jobs: BTreeMap<String, Entry>,
    /// Job of each worker, by the id of the worker's task.
    job_of_worker: BTreeMap<String, String>,
    /// Free places for workers, by agent, as far as recent offers showed them.
    free_places: BTreeMap<String, FreePlaces>,
    /// Places that are reserved for programs, by agent.
    reserved_places: growth::PlacesByAgent,
    /// Time of the framework's first start, which restarts do not change.
    started: Option<Time>,
    next_epoch: Time,
    /// Time at which cores were last shared.
    planned: Time,
    /// Messages about state from before a restart that cannot be read.
    lost: Vec<String>,
    /// Time at which an epoch was last counted.
    counted: Time,
    revived: Option<Time>,
    suppressed: bool,
    connected: bool,
    /// Number of earlier starts of the scheduler, for ids that no earlier start has used.
    run: u64,
    serial: u64,
}

/// The free places on an agent.
#[derive(Clone, Copy, Debug)]
struct FreePlaces {
    places: u32,
    seen: Time,
}

impl Quality {
    /// Creates a scheduler without jobs, which takes its questions from `requests`.
    pub fn new(settings: Settings, requests: Requests<Question, Answer>) -> Quality {
        Quality {
            settings,
            requests,
            jobs: BTreeMap::new(),
            job_of_worker: BTreeMap::new(),
            free_places: BTreeMap::new(),
            reserved_places: growth::PlacesByAgent::new(),
            started: None,
            next_epoch: Time::EPOCH,
            planned: Time::EPOCH,
            lost: Vec::new(),
            counted: Time::EPOCH,
            revived: None,
            suppressed: false,
            connected: false,
            run: 0,
            serial: 0,
        }
    }

    /// Returns the jobs that have started and not ended, in the order of submission.
    fn active(&self, now: Time) -> Vec<String> {
        let mut active: Vec<&Entry> = self.jobs.values().filter(|j| j.is_open(now)).collect();
        active.sort_by_key(|j| j.number);
        active.into_iter().map(|j| j.job.name.clone()).collect()
    }

    fn on_offers(&mut self, offers: Vec<Offer>, now: Time, calls: &mut Calls) {
        let mut packer = sdk::Packer::new(offers);
        self.record_free_places(&packer, now);
        if self.has_unused_places(now) {
            self.plan(now, calls);
        }
        self.place(&mut packer, now, calls);
        self.record_free_places(&packer, now);
        let refuse = if self.active(now).is_empty() { sdk::DEFAULT_REFUSAL } else { self.settings.epoch };
        packer.finish(calls, refuse);
    }

    fn on_wake(&mut self, now: Time, calls: &mut Calls) {
        while let Some(request) = self.requests.next() {
            let (answer, changed) = self.handle(&request.question, now, calls);
            calls.answer(request, answer);
            if changed {
                self.next_epoch = now;
            }
        }
        let comes = |j: &Entry| j.is_open(now) && j.submitted > self.planned;
        if self.next_epoch <= now || self.jobs.values().any(comes) {
            self.plan(now, calls);
            self.next_epoch = now + self.settings.epoch;
        }
        self.kill_overdue_workers(now, calls);
    }
}

impl sdk::Scheduler for Quality {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        self.started.get_or_insert(now);
        match event {
            Event::Restored(entries) => self.restore(&entries, now, calls),
            Event::Subscribed { .. } => {
                self.connected = true;
                self.suppressed = false;
                self.free_places.clear();
                self.next_epoch = now;
            }
            Event::Disconnected { .. } => {
                self.connected = false;
                self.free_places.clear();
            }
            Event::Offers(offers) => self.on_offers(offers, now, calls),
            Event::InverseOffers(offers) => {
                let ids = offers.into_iter().map(|o| o.id).collect();
                calls.accept_inverse(ids, sdk::DEFAULT_REFUSAL);
            }
            Event::Update(status) => self.on_update(&status, now, calls),
            Event::Wake => self.on_wake(now, calls),
            _ => {}
        }
        if self.jobs.values().any(|j| j.is_open(now) || !j.workers.is_empty()) {
            calls.wake_at(self.next_epoch.max(now + Duration::from_millis(10)));
        }
        let to_come = self.jobs.values().filter(|j| j.is_active() && j.submitted > now);
        if let Some(next) = to_come.map(|j| j.submitted).min() {
            calls.wake_at(next);
        }
    }
}
