//! The scheduler's record of a job: its workers, its progress, and its bid for cores.

use std::collections::BTreeMap;

use sdk::base::Time;
use sdk::v1::AgentId;

use super::results::Results;
use super::status::State;
use crate::allocate::{Bid, MAX_EPOCHS_WAITING};
use crate::job::Job;
use crate::predict::{Forecast, Forecaster};
use crate::trainer::Capabilities;

/// Number of epochs, and of iterations, for which a program keeps its number of cores.
const RESIZE_EPOCHS: u32 = 4;
const RESIZE_ITERATIONS: u32 = 3;

/// Maximum duration of an iteration, relative to one over the fewest rows.
const LONGER: f64 = 1.1;

/// A job with its workers and its progress.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) job: Job,
    pub(super) token: String,
    /// Number of the job in the order of submission.
    pub(super) number: u64,
    /// Time of the job's submission, or its start time.
    pub(super) submitted: Time,
    pub(super) state: State,
    /// Reason why the job ended, in words.
    pub(super) reason: String,
    pub(super) workers: BTreeMap<String, WorkerTask>,
    /// Number of workers that the job should have.
    pub(super) target: u32,
    pub(super) forecaster: Forecaster,
    pub(super) results: Results,
    /// Newest iteration that is repeated after a loss.
    pub(super) repeated: Option<u64>,
    /// Newest iteration whose results are saved for a restart, and the time of saving.
    pub(super) saved: (Option<u64>, Time),
    /// Number of epochs without a worker, and number of epochs with one.
    pub(super) waited: u32,
    pub(super) served: u32,
    /// Number of iterations that ended since the job has a worker.
    pub(super) done: u32,
    pub(super) received: f64,
    /// Time up to which `received` is computed.
    pub(super) counted: Time,
    /// Number of worker failures since the last iteration, simultaneous ones counted once; the time and the message of
    /// the last one.
    pub(super) failures: u32,
    pub(super) failed: Option<Time>,
    pub(super) last_failure: String,
    pub(super) not_before: Time,
    /// Capabilities of the job's program; `None` for other jobs, or before the program has reported them.
    pub(super) capabilities: Option<Capabilities>,
}

/// A worker task of a job.
#[derive(Clone, Debug)]
pub(super) struct WorkerTask {
    pub(super) agent: AgentId,
    /// Number of places that the task takes, which is its cores divided by those of a worker. More than one only for
    /// users' programs.
    pub(super) places: u32,
    /// Time since when the task works for this job.
    pub(super) assigned_at: Time,
    pub(super) running: bool,
    /// Time of the request that the worker leaves its job; `None` if it is to stay.
    pub(super) leaving: Option<Time>,
    /// Whether the task leaves for a program that needs its place on this agent: its job gets other workers elsewhere.
    pub(super) leaves_for_program: bool,
    pub(super) killed: bool,
}

impl WorkerTask {
    /// Creates a worker that has not started.
    pub(super) fn new(agent: AgentId, places: u32, assigned_at: Time) -> WorkerTask {
        WorkerTask {
            agent,
            places,
            assigned_at,
            running: false,
            leaving: None,
            leaves_for_program: false,
            killed: false,
        }
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
            saved: (None, now),
            waited: 0,
            served: 0,
            done: 0,
            received: 0.0,
            counted: now,
            failures: 0,
            failed: None,
            last_failure: String::new(),
            not_before: now,
            capabilities: None,
        }
    }

    /// Returns whether the job has not ended.
    pub(super) fn is_active(&self) -> bool {
        matches!(self.state, State::Waiting | State::Running)
    }

    /// Returns whether the job has started and not ended.
    pub(super) fn is_open(&self, now: Time) -> bool {
        self.is_active() && self.submitted <= now
    }

    /// Returns the number of places of workers that are to stay.
    pub(super) fn staying(&self) -> u32 {
        self.workers.values().filter(|h| h.leaving.is_none()).map(|h| h.places).fold(0, u32::saturating_add)
    }

    /// Returns whether a user's program trains the job. Such a job has one worker at a time, with as many places as the
    /// job should have.
    pub(super) fn is_program(&self) -> bool {
        self.job.program().is_some()
    }

    /// Returns the number of workers that the job lacks.
    pub(super) fn lacks(&self, now: Time) -> u32 {
        if !self.is_active() || now < self.not_before {
            return 0;
        }
        // The successor of a program starts when the program has ended.
        if self.is_program() && !self.workers.is_empty() {
            return 0;
        }
        self.target.saturating_sub(self.staying())
    }

    /// Returns the number of places of workers that run.
    pub(super) fn running(&self) -> u32 {
        self.workers.values().filter(|h| h.running).map(|h| h.places).fold(0, u32::saturating_add)
    }

    /// Records that this many epochs have passed. Only a running worker ends the wait: one that is promised may still
    /// be in the middle of another job's iteration, or may not have started.
    pub(super) fn count_epochs(&mut self, epochs: u32) {
        if self.running() > 0 {
            self.waited = 0;
            self.served = self.served.saturating_add(epochs);
        } else {
            self.waited = self.waited.saturating_add(epochs);
            (self.served, self.done) = (0, 0);
        }
    }

    /// Returns the number of epochs that the job has waited, if that is too long and no worker is on its way; otherwise
    /// 0.
    pub(super) fn overdue_epochs(&self) -> u32 {
        if self.waited >= MAX_EPOCHS_WAITING && self.staying() == 0 { self.waited } else { 0 }
    }

    /// Adds the time since the last call to the core-seconds that the job has received.
    pub(super) fn count(&mut self, now: Time) {
        self.received += f64::from(self.running()) * now.since(self.counted).as_secs_f64();
        self.counted = now;
    }

    /// Returns the number of workers that the job can use, if a worker has `cores` cores.
    pub(super) fn ceiling(&self, cores: u32) -> u32 {
        if let Some((_, most)) = self.fixed() {
            return most;
        }
        self.job.ceiling().div_ceil(cores.max(1)).max(1)
    }

    /// Returns whether the job has reached its target and continues only because its definition says so.
    pub(super) fn reached(&self) -> bool {
        let target = &self.job.target;
        let loss = target.loss.is_some_and(|t| self.results.loss.is_some_and(|l| l <= t));
        let accuracy = target.accuracy.is_some_and(|t| self.results.accuracy.is_some_and(|a| a >= t));
        target.go_on && (loss || accuracy)
    }

    /// Returns the smallest share of the rows, in thousandths, that iterations should compute with now, for a job on
    /// critical rows. It is all rows while the job has as many cores as it can use; otherwise so few that fewer would
    /// save little time.
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
        // The share is between 0 and 1.
        Some((1000.0 * share).round() as u16)
    }

    /// Returns the job's bid when workers of `cores` cores are shared.
    pub(super) fn bid(&self, now: Time, cores: u32) -> Bid {
        let ceiling = self.ceiling(cores);
        Bid {
            priority: self.job.priority,
            floor: self.fixed().map_or_else(|| self.floor(now, ceiling), |(least, _)| least),
            ceiling,
            held: self.staying(),
            forecast: self.forecaster.forecast(),
            reached: self.reached(),
            waited: self.waited,
            served: self.served,
            done: self.done,
            received: self.received,
            remaining: self.remaining(),
        }
    }

    /// Returns the minimum and maximum places of a program whose number of cores does not change now. A program that is
    /// not elastic has one place. One that has started only recently, or has not reported its capabilities yet, keeps
    /// what it has.
    fn fixed(&self) -> Option<(u32, u32)> {
        if !self.is_program() {
            return None;
        }
        let held = self.staying().max(1);
        match self.capabilities {
            Some(capabilities) if !capabilities.elastic => Some((1, 1)),
            Some(_) if !self.rests() => None,
            _ => Some((held, held)),
        }
    }

    /// Returns whether the job's program has started only recently, so that changing its cores now would cost more than
    /// it gains.
    fn rests(&self) -> bool {
        !self.workers.is_empty() && (self.served < RESIZE_EPOCHS || self.done < RESIZE_ITERATIONS)
    }

    /// Returns whether the job's program should have more places on its agent than it has.
    pub(super) fn is_to_grow(&self) -> bool {
        let elastic = self.capabilities.is_some_and(|capabilities| capabilities.elastic);
        let held = self.workers.values().map(|worker| worker.places).next();
        let more = |held: u32| self.target > held && differs(self.target, held);
        self.is_active() && self.is_program() && elastic && held.is_some_and(more)
    }

    /// Returns whether the job's program should end: so that its successor has other cores, or because it has to wait
    /// and can continue later. Up to `most` places are available on one agent, including its own; more become available
    /// only when other workers have left.
    pub(super) fn is_to_restart(&self, held: u32, most: u32) -> bool {
        let capabilities = self.capabilities.unwrap_or_default();
        if self.target == 0 {
            return capabilities.checkpoints;
        }
        capabilities.elastic && !self.rests() && differs(self.target.min(most), held)
    }

    /// Returns the minimum number of workers: one, or as many as are needed to reach a loss by a deadline, if this many
    /// are enough.
    fn floor(&self, now: Time, ceiling: u32) -> u32 {
        let (Some(loss), Some(deadline), Forecast::Fitted { curve, time, .. }) =
            (self.job.target.loss, self.job.target.deadline, self.forecaster.forecast())
        else {
            return 1;
        };
        let left = deadline - now.since(self.submitted).as_secs_f64();
        match curve.reaches(loss) {
            Some(iterations) if left > 0.0 && !self.reached() => time.cores_for(iterations, left, ceiling).unwrap_or(1),
            _ => 1,
        }
    }

    /// Returns the seconds that one worker would still need: to the target, or to 99 % of the loss reduction; for a job
    /// that follows no curve, to its last iteration.
    fn remaining(&self) -> Option<f64> {
        let time = self.forecaster.time();
        let most = (self.job.iterations.saturating_sub(self.results.iteration.unwrap_or(0))) as f64;
        let iterations = match self.forecaster.forecast() {
            Forecast::TooEarly { .. } => return None,
            Forecast::NoCurve => most,
            Forecast::Fitted { curve, .. } => {
                let end = curve.end() + 0.01 * (self.results.first_loss? - curve.end());
                curve.reaches(self.job.target.loss.unwrap_or(end)).unwrap_or(most).min(most)
            }
        };
        Some(iterations * time.seconds(1))
    }
}

/// Returns whether a program should restart with this many places instead of those that it has. A difference of less
/// than a quarter does not justify it.
fn differs(target: u32, held: u32) -> bool {
    target.saturating_mul(4) <= held.saturating_mul(3) || target.saturating_mul(4) >= held.saturating_mul(5)
}
