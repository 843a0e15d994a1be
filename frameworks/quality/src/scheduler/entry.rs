//! A job in the scheduler: its workers, its progress, and its bid for cores.

use std::collections::BTreeMap;

use sdk::base::Time;
use sdk::v1::AgentId;

use super::results::Results;
use super::status::State;
use crate::allocate::{Bid, PATIENCE};
use crate::job::Job;
use crate::predict::{Forecaster, Outlook};
use crate::trainer::Manner;

/// For this many epochs, and this many iterations, a program keeps its number of cores.
const RESIZE_EPOCHS: u32 = 4;
const RESIZE_ITERATIONS: u32 = 3;

/// By how much longer an iteration may take than one over the fewest rows.
const LONGER: f64 = 1.1;

/// A job.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) job: Job,
    pub(super) token: String,
    /// Its place in the order of submission.
    pub(super) number: u64,
    /// Time of its submission, or its start time.
    pub(super) submitted: Time,
    pub(super) state: State,
    /// Why it ended, in words.
    pub(super) reason: String,
    pub(super) workers: BTreeMap<String, Hand>,
    /// How many workers it should have.
    pub(super) target: u32,
    pub(super) forecaster: Forecaster,
    pub(super) results: Results,
    /// The newest iteration that is done again after a loss.
    pub(super) repeated: Option<u64>,
    /// The newest iteration whose results are kept for a restart, and since when.
    pub(super) kept: (Option<u64>, Time),
    /// For how many epochs no worker has been there, and for how many one has.
    pub(super) waited: u32,
    pub(super) served: u32,
    /// Iterations that ended since it has a worker.
    pub(super) done: u32,
    pub(super) received: f64,
    /// When `received` was brought up to date.
    pub(super) counted: Time,
    /// Number of worker failures since the last iteration, simultaneous ones counted once; the time and the message of
    /// the last one.
    pub(super) failures: u32,
    pub(super) failed: Option<Time>,
    pub(super) last_failure: String,
    pub(super) not_before: Time,
    /// What its program can do, if it is of the user's own and has said so.
    pub(super) manner: Option<Manner>,
}

/// A worker task.
#[derive(Clone, Debug)]
pub(super) struct Hand {
    pub(super) agent: AgentId,
    /// Number of places that it takes: that of its cores, divided by those of a worker. More than one for programs of
    /// the user's own only.
    pub(super) places: u32,
    /// Since when it is this job's.
    pub(super) hired: Time,
    pub(super) running: bool,
    /// Since when it is to leave.
    pub(super) leaving: Option<Time>,
    /// Whether it leaves for a program that needs its place on this agent: its job has other workers elsewhere.
    pub(super) makes_room: bool,
    pub(super) killed: bool,
}

impl Hand {
    /// A worker that is on its way.
    pub(super) fn new(agent: AgentId, places: u32, hired: Time) -> Hand {
        Hand { agent, places, hired, running: false, leaving: None, makes_room: false, killed: false }
    }
}

impl Entry {
    pub(super) fn new(job: Job, token: String, number: u64, now: Time) -> Entry {
        Entry {
            forecaster: Forecaster::new(job.family),
            job,
            token,
            number,
            submitted: now,
            state: State::Waiting,
            reason: String::new(),
            workers: BTreeMap::new(),
            target: 0,
            results: Results::default(),
            repeated: None,
            kept: (None, now),
            waited: 0,
            served: 0,
            done: 0,
            received: 0.0,
            counted: now,
            failures: 0,
            failed: None,
            last_failure: String::new(),
            not_before: now,
            manner: None,
        }
    }

    /// Whether it has not ended.
    pub(super) fn is_active(&self) -> bool {
        matches!(self.state, State::Waiting | State::Running)
    }

    /// Whether it has started and not ended.
    pub(super) fn is_open(&self, now: Time) -> bool {
        self.is_active() && self.submitted <= now
    }

    /// Workers that are to stay.
    pub(super) fn staying(&self) -> u32 {
        self.workers.values().filter(|h| h.leaving.is_none()).map(|h| h.places).fold(0, u32::saturating_add)
    }

    /// Whether a program of the user's own trains it: it has one worker at a time, of as many places as it should have.
    pub(super) fn is_program(&self) -> bool {
        self.job.program().is_some()
    }

    /// How many workers it lacks.
    pub(super) fn lacks(&self, now: Time) -> u32 {
        if !self.is_active() || now < self.not_before {
            return 0;
        }
        // The successor of a program begins when the program has ended.
        if self.is_program() && !self.workers.is_empty() {
            return 0;
        }
        self.target.saturating_sub(self.staying())
    }

    /// Number of workers that run.
    pub(super) fn running(&self) -> u32 {
        self.workers.values().filter(|h| h.running).map(|h| h.places).fold(0, u32::saturating_add)
    }

    /// Takes in that this many epochs have gone by. Only a worker that is there ends the wait: one that is promised may
    /// still be in the middle of another job's iteration, or not even started.
    pub(super) fn age(&mut self, epochs: u32) {
        if self.running() > 0 {
            self.waited = 0;
            self.served = self.served.saturating_add(epochs);
        } else {
            self.waited = self.waited.saturating_add(epochs);
            (self.served, self.done) = (0, 0);
        }
    }

    /// How long it has waited, if that is too long and no worker is on its way.
    pub(super) fn impatience(&self) -> u32 {
        if self.waited >= PATIENCE && self.staying() == 0 { self.waited } else { 0 }
    }

    /// Adds the time since the last call to what it has received.
    pub(super) fn count(&mut self, now: Time) {
        self.received += f64::from(self.running()) * now.since(self.counted).as_secs_f64();
        self.counted = now;
    }

    /// How many workers it can use, if a worker has `cores` cores.
    pub(super) fn ceiling(&self, cores: u32) -> u32 {
        if let Some((_, most)) = self.fixed() {
            return most;
        }
        self.job.ceiling().div_ceil(cores.max(1)).max(1)
    }

    /// Whether it has reached its target and continues only because its definition says so.
    pub(super) fn reached(&self) -> bool {
        let target = &self.job.target;
        let loss = target.loss.is_some_and(|t| self.results.loss.is_some_and(|l| l <= t));
        let accuracy = target.accuracy.is_some_and(|t| self.results.accuracy.is_some_and(|a| a >= t));
        target.go_on && (loss || accuracy)
    }

    /// The smallest share of the rows, in thousandths, that iterations are to be over now, of a job on critical rows.
    /// It skips none while it has as many cores as it can use; else so many that more would save little time.
    pub(super) fn least_rows(&self, cores: u32) -> Option<u16> {
        let least = self.job.critical_rows?.least;
        let time = self.forecaster.time();
        let seconds = |share: f64| time.seconds_of(share, self.target.max(1));
        let mut share = 1.0;
        if self.target < self.ceiling(cores) {
            while share > least && (!time.is_known() || seconds(share) > LONGER * seconds(least)) {
                share = (share / 2.0).max(least);
            }
        }
        // Between 0 and 1.
        Some((1000.0 * share).round() as u16)
    }

    /// What it brings when workers of `cores` cores are shared out.
    pub(super) fn bid(&self, now: Time, cores: u32) -> Bid {
        let ceiling = self.ceiling(cores);
        Bid {
            priority: self.job.priority,
            floor: self.fixed().map_or_else(|| self.floor(now, ceiling), |(least, _)| least),
            ceiling,
            held: self.staying(),
            outlook: self.forecaster.outlook(),
            reached: self.reached(),
            waited: self.waited,
            served: self.served,
            done: self.done,
            received: self.received,
            remaining: self.remaining(),
        }
    }

    /// The least and the most places of a program whose number of cores does not change now: one that is not elastic
    /// has one place, and one that has begun only lately, or has not said yet what it can do, keeps what it has.
    fn fixed(&self) -> Option<(u32, u32)> {
        if !self.is_program() {
            return None;
        }
        let held = self.staying().max(1);
        match self.manner {
            Some(manner) if !manner.elastic => Some((1, 1)),
            Some(_) if !self.rests() => None,
            _ => Some((held, held)),
        }
    }

    /// Whether its program has begun only lately: to change its cores now would cost more than it brings.
    fn rests(&self) -> bool {
        !self.workers.is_empty() && (self.served < RESIZE_EPOCHS || self.done < RESIZE_ITERATIONS)
    }

    /// Whether its program is to have more places beside its own on the same agent.
    pub(super) fn is_to_grow(&self) -> bool {
        let elastic = self.manner.is_some_and(|manner| manner.elastic);
        let held = self.workers.values().map(|hand| hand.places).next();
        let more = |held: u32| self.target > held && differs(self.target, held);
        self.is_active() && self.is_program() && elastic && held.is_some_and(more)
    }

    /// Whether its program is to end, so that its successor has other cores; or because it has to wait, if it can
    /// continue later. There is room for `most`
    /// places on one agent, its own counted: others must have left before it can have more.
    pub(super) fn is_to_restart(&self, held: u32, most: u32) -> bool {
        let manner = self.manner.unwrap_or_default();
        if self.target == 0 {
            return manner.checkpoints;
        }
        manner.elastic && !self.rests() && differs(self.target.min(most), held)
    }

    /// One worker; or as many as are needed to reach a loss by a deadline, if this many are enough.
    fn floor(&self, now: Time, ceiling: u32) -> u32 {
        let (Some(loss), Some(deadline), Outlook::Clear { curve, time, .. }) =
            (self.job.target.loss, self.job.target.deadline, self.forecaster.outlook())
        else {
            return 1;
        };
        let left = deadline - now.since(self.submitted).as_secs_f64();
        match curve.reaches(loss) {
            Some(iterations) if left > 0.0 && !self.reached() => time.cores_for(iterations, left, ceiling).unwrap_or(1),
            _ => 1,
        }
    }

    /// How many seconds one worker would still need: to the target, or to 99 % of what can be learnt; of a job that
    /// follows no curve, to its last iteration.
    fn remaining(&self) -> Option<f64> {
        let time = self.forecaster.time();
        let most = (self.job.iterations.saturating_sub(self.results.iteration.unwrap_or(0))) as f64;
        let iterations = match self.forecaster.outlook() {
            Outlook::New { .. } => return None,
            Outlook::Unclear => most,
            Outlook::Clear { curve, .. } => {
                let end = curve.end() + 0.01 * (self.results.first_loss? - curve.end());
                curve.reaches(self.job.target.loss.unwrap_or(end)).unwrap_or(most).min(most)
            }
        };
        Some(iterations * time.seconds(1))
    }
}

/// Whether a program is to start again with so many places instead of those that it has: a difference of less than a
/// quarter is not worth it.
fn differs(target: u32, held: u32) -> bool {
    target.saturating_mul(4) <= held.saturating_mul(3) || target.saturating_mul(4) >= held.saturating_mul(5)
}
