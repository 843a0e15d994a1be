//! The driver of one job: distributes shards to its workers, combines their results, reports every iteration, and
//! detects the end of the job.
//!
//! The scheduler decides the number of workers; the driver works with those that are connected.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::clock::now;
use super::common::{Common, DataDescription, report_end};
use super::files::Checkpoint;
use super::listener::Event;
use super::saved_model::SavedModel;
use super::stop::StopConditions;
use super::worker_pool::{WorkerPool, encoded};
use crate::frame::ToWorker;
use crate::job::Job;
use crate::learn::{LearnError, Learner, Round, combined, model_of, model_of_critical};
use crate::scheduler::{Answer, Iteration, Outcome, Progress, Score};

/// Interval of checks while no event arrives.
const LOOK: Duration = Duration::from_millis(500);
/// Number of losses that a checkpoint keeps for the predictions after a restart.
const LOSSES_KEPT: usize = 64;
/// Minimum interval between two checkpoints.
const CHECKPOINT: Duration = Duration::from_secs(1);
/// Time after which a worker counts as lost: this multiple of the last iteration's duration, and at least [`LATE`].
const LATE_FACTOR: u32 = 10;
const LATE: Duration = Duration::from_secs(20);

/// The driver of a job that an algorithm of this framework trains.
pub(super) struct LearnerDriver {
    common: Common,
    job: Job,
    description: DataDescription,
    /// State of the training; `None` while a thread makes a step with it.
    learner: Option<Learner>,
    events: mpsc::Receiver<Event>,
    pool: WorkerPool,
    setup: Arc<Vec<u8>>,
    /// Losses of the newest iterations.
    losses: Vec<f64>,
    iterations: u64,
    last: Option<Iteration>,
    /// Seconds from the job's submission to the start of this driver, and the time of this start.
    before: f64,
    since: Instant,
    written: Instant,
    stopping: StopConditions,
    /// Score of the current iteration on validation data, and the parameters for which it was computed.
    scored: Option<(Score, Vec<f64>)>,
    measure: Measure,
}

/// The measurements of the current iteration.
#[derive(Debug)]
struct Measure {
    began: Instant,
    rounds: u32,
    workers: usize,
    micros: u64,
    /// Time without workers so far, and the start of the current period without any.
    idle: Duration,
    idle_since: Option<Instant>,
}

impl Measure {
    fn start(pool: &WorkerPool) -> Measure {
        let idle_since = pool.is_empty().then(now);
        Measure { began: now(), rounds: 0, workers: 0, micros: 0, idle: Duration::ZERO, idle_since }
    }

    /// Records whether there are workers: a time without any is not part of an iteration.
    fn look(&mut self, pool: &WorkerPool) {
        match (pool.is_empty(), self.idle_since) {
            (true, None) => self.idle_since = Some(now()),
            (false, Some(since)) => {
                self.idle += since.elapsed();
                self.idle_since = None;
            }
            _ => {}
        }
    }
}

impl LearnerDriver {
    /// Creates a driver that continues from the job's checkpoint, if there is one; `age` is the time since the
    /// submission in seconds.
    pub(super) fn new(
        common: Common,
        job: Job,
        description: DataDescription,
        events: mpsc::Receiver<Event>,
        age: f64,
    ) -> Result<LearnerDriver, LearnError> {
        let path = common.checkpoint_path(&job.name);
        let text = serde_json::to_string(&job).unwrap_or_default();
        let mut driver = LearnerDriver {
            learner: Some(Learner::new(&job.algorithm, description.shape)?.on_critical_rows(
                job.critical_rows,
                &job.algorithm,
                &description.shape,
            )?),
            setup: encoded(&ToWorker::Setup { job: text, shape: description.shape }),
            events,
            pool: WorkerPool::default(),
            losses: Vec::new(),
            iterations: 0,
            last: None,
            before: age,
            since: now(),
            written: now(),
            stopping: StopConditions::default(),
            scored: None,
            measure: Measure::start(&WorkerPool::default()),
            common,
            job,
            description,
        };
        if let Some(checkpoint) = path.and_then(|p| Checkpoint::read(&p, &driver.job)) {
            driver.learner = Some(checkpoint.learner);
            driver.losses = checkpoint.losses;
            driver.last = checkpoint.last;
            driver.iterations = checkpoint.iterations;
            driver.stopping = checkpoint.stopping;
        }
        Ok(driver)
    }

    /// Trains until the job ends, reports to the scheduler, and stores the model. `first` has been received already.
    pub(super) async fn run(mut self, first: Option<Event>) {
        self.common.report_earlier(&self.job.name, &self.losses, self.last).await;
        let mut outcome = match first.and_then(|event| self.on_event(event)) {
            Some(outcome) => outcome,
            None => self.train().await,
        };
        if !matches!(outcome, Outcome::Failed(_))
            && let Err(why) = self.save_model().await
        {
            outcome = Outcome::Failed(format!("the model could not be saved: {why}"));
        }
        let answer = report_end(&self.common, &self.job.name, outcome, self.pool.tasks()).await;
        if let Some(Answer::Directive(directive)) = &answer {
            self.pool.dismiss(directive);
        }
        self.pool.dismiss_all();
        if answer.is_some() {
            self.common.remove_checkpoint(&self.job.name);
        }
    }

    async fn train(&mut self) -> Outcome {
        loop {
            let parameters = match &self.learner {
                Some(learner) => learner.parameters(),
                None => return Outcome::Failed("the training's state is lost".to_owned()),
            };
            self.pool.start(self.job.shards + self.job.validation_shards(), parameters);
            if let Some(outcome) = self.collect().await {
                return outcome;
            }
            self.measure.rounds += 1;
            self.measure.workers += self.pool.computed();
            let round = match self.fold().await {
                Ok(round) => round,
                Err(why) => return Outcome::Failed(why),
            };
            if let Round::Iteration { loss, accuracy, retried, .. } = round
                && let Some(outcome) = self.iteration_done(loss, accuracy, retried).await
            {
                return outcome;
            }
        }
    }

    /// Waits until the results of all shards of the round have arrived.
    async fn collect(&mut self) -> Option<Outcome> {
        let (mut progress, mut last_check) = (now(), now());
        while !self.pool.is_complete() {
            let outcome = self.deadline();
            if outcome.is_some() {
                return outcome;
            }
            match tokio::time::timeout(LOOK.min(self.left()), self.events.recv()).await {
                Ok(None) => return Some(Outcome::Stopped),
                Ok(Some(event)) => {
                    if matches!(event, Event::Partial { .. } | Event::Joined { .. }) {
                        progress = now();
                    }
                    let outcome = self.on_event(event);
                    self.measure.look(&self.pool);
                    if outcome.is_some() {
                        return outcome;
                    }
                }
                Err(_) => {}
            }
            // The check also runs while events arrive all the time.
            if last_check.elapsed() >= LOOK {
                last_check = now();
                if let Some(outcome) = self.check_periodically().await {
                    return Some(outcome);
                }
                let usual = self.last.map_or(0.0, |i| i.seconds);
                let patience = LATE.max(Duration::try_from_secs_f64(usual).unwrap_or_default() * LATE_FACTOR);
                if progress.elapsed() > patience {
                    self.drop_late();
                    progress = now();
                }
            }
        }
        None
    }

    /// Returns the time until the deadline.
    fn left(&self) -> Duration {
        let left = self.job.target.deadline.map(|d| d - self.seconds());
        left.map_or(Duration::MAX, |left| Duration::try_from_secs_f64(left).unwrap_or_default())
    }

    /// Returns the outcome if the deadline has passed.
    fn deadline(&self) -> Option<Outcome> {
        self.left().is_zero().then(|| Outcome::Finished("its deadline has passed".to_owned()))
    }

    fn on_event(&mut self, event: Event) -> Option<Outcome> {
        match event {
            Event::Joined { connection, task, cores, frames } => {
                self.pool.join(connection, task, cores, frames);
                self.pool.set_up(connection, &self.setup);
                self.pool.assign_shards();
            }
            Event::Partial { connection, round, shard, micros, values } => {
                if self.pool.take(connection, round, shard, values) {
                    self.measure.micros = self.measure.micros.saturating_add(micros);
                }
            }
            Event::Gone { connection } => {
                if self.pool.remove(connection).is_some() {
                    self.pool.assign_shards();
                }
            }
            Event::Failed { connection, why } => {
                let task = self.pool.remove(connection).map_or_else(String::new, |h| h.task);
                return Some(Outcome::Failed(format!("worker {task}: {why}")));
            }
            Event::Stop => return Some(Outcome::Stopped),
            // Only users' programs have lines, and those have another driver.
            Event::Line { .. } | Event::Ended { .. } => {}
        }
        None
    }

    fn drop_late(&mut self) {
        for connection in self.pool.unfinished() {
            if let Some(worker) = self.pool.remove(connection) {
                tracing::warn!(
                    job = self.job.name,
                    task = worker.task,
                    "a worker does not respond; others take over its work"
                );
            }
        }
        self.pool.assign_shards();
    }

    /// Checks periodically which workers can be released, and whether the scheduler has given the job up.
    async fn check_periodically(&mut self) -> Option<Outcome> {
        // No worker leaves in the middle of an iteration while there is work.
        let free = if self.pool.unfinished().is_empty() { self.pool.tasks() } else { Vec::new() };
        let directive = self.common.report(&self.job.name, Progress { free, ..Progress::default() }).await;
        self.pool.dismiss(&directive);
        directive.give_up.map(Outcome::Failed)
    }

    /// Makes a step from the round's results, on a thread that may block.
    async fn fold(&mut self) -> Result<Round, String> {
        let Some(mut learner) = self.learner.take() else { return Err("the training's state is lost".to_owned()) };
        let mut results = self.pool.results();
        let scores = results.split_off(self.job.shards.min(results.len()));
        if let Some(score) = combined(&self.job.algorithm, &scores).map_err(|error| error.to_string())? {
            let parameters = if self.job.patience.is_some() { self.pool.parameters().to_vec() } else { Vec::new() };
            self.scored = Some((score, parameters));
        }
        let folded = tokio::task::spawn_blocking(move || {
            let round = learner.fold(&results);
            (learner, round)
        });
        let (learner, round) = folded.await.map_err(|error| format!("the step failed: {error}"))?;
        self.learner = Some(learner);
        round.map_err(|error| error.to_string())
    }

    async fn iteration_done(&mut self, loss: f64, accuracy: Option<f64>, retried: bool) -> Option<Outcome> {
        let fresh = Measure::start(&self.pool);
        let measure = std::mem::replace(&mut self.measure, fresh);
        let (score, parameters) = self.scored.take().unzip();
        let iteration = Iteration {
            number: self.iterations,
            loss,
            accuracy,
            validation: score.map(|score| self.stopping.score(score, retried)),
            seconds: measure.began.elapsed().saturating_sub(measure.idle).as_secs_f64(),
            workers: measure.workers as f64 / f64::from(measure.rounds.max(1)),
            busy: measure.micros as f64 / 1e6 / f64::from(self.common.cores.max(1)),
            rows: self.learner.as_ref().and_then(Learner::row_shares),
        };
        self.iterations += 1;
        self.last = Some(iteration);
        if let Some(record) = &self.common.record {
            let seconds = self.common.started.elapsed().as_secs_f64();
            record.lock().unwrap_or_else(PoisonError::into_inner).add(&self.job, seconds, &iteration);
        }
        self.stopping.note(&self.job, &iteration, retried, parameters);
        self.losses.push(loss);
        if self.losses.len() > 256 {
            self.losses.drain(..128);
        }
        let progress = Progress { iteration: Some(iteration), free: self.pool.tasks(), ..Progress::default() };
        let directive = self.common.report(&self.job.name, progress).await;
        self.pool.dismiss(&directive);
        self.measure.look(&self.pool);
        if let (Some(least), Some(learner)) = (directive.least_rows, &mut self.learner) {
            learner.allow(f64::from(least) / 1000.0);
        }
        let reason = self.stopping.reason(&self.job, &iteration, self.iterations);
        let over = self.measured(reason).map(Outcome::Finished).or_else(|| self.deadline());
        if over.is_some() {
            return over;
        }
        if self.written.elapsed() >= CHECKPOINT {
            self.write_checkpoint().await;
        }
        None
    }

    /// Returns the reason why the job ends, if it does. A job on critical rows ends only after an iteration over all
    /// rows, whose loss is exact.
    fn measured(&mut self, reason: Option<String>) -> Option<String> {
        let Some(learner) = self.learner.as_mut().filter(|learner| learner.has_skipped()) else { return reason };
        if reason.is_some() || self.iterations + 1 == self.job.iterations {
            learner.use_all_rows_next();
        }
        None
    }

    /// Returns the seconds since the job's submission, including those without a scheduler.
    fn seconds(&self) -> f64 {
        self.before + self.since.elapsed().as_secs_f64()
    }

    async fn write_checkpoint(&mut self) {
        self.written = now();
        let (Some(path), Some(learner)) = (self.common.checkpoint_path(&self.job.name), self.learner.clone()) else {
            return;
        };
        let checkpoint = Checkpoint {
            losses: self.losses[self.losses.len().saturating_sub(LOSSES_KEPT)..].to_vec(),
            last: self.last,
            iterations: self.iterations,
            stopping: self.stopping.clone(),
            ..Checkpoint::new(&self.job, learner)
        };
        let written = tokio::task::spawn_blocking(move || checkpoint.write(&path)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(job = self.job.name, error = %base::error_chain(&error), "no checkpoint");
        }
    }

    /// Writes the model on a thread that may block. Returns the reason in words if that fails.
    async fn save_model(&self) -> Result<(), String> {
        let best = self.stopping.best(&self.job);
        let (model, iteration) = match best {
            Some(best) => {
                let of = if self.job.critical_rows.is_some() { model_of_critical } else { model_of };
                (of(&self.job.algorithm, &self.description.shape, &best.parameters), Some(&best.iteration))
            }
            None => (self.learner.as_ref().and_then(Learner::model), self.last.as_ref()),
        };
        let (Some(directory), Some(model)) = (self.common.models.clone(), model) else { return Ok(()) };
        let rows = self.learner.as_ref().and_then(Learner::mean_row_share);
        let saved = SavedModel::new(&self.job, &self.description, iteration, model).over_rows(rows);
        let written =
            tokio::task::spawn_blocking(move || saved.write(&directory).map_err(|error| base::error_chain(&error)));
        written.await.map_err(|error| error.to_string())??;
        tracing::debug!(job = self.job.name, columns = self.description.shape.columns, "the model is saved");
        Ok(())
    }
}
