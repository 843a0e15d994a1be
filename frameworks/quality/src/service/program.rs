//! The driver of a job that a user's program trains: starts the program in the job's worker, reports its iterations,
//! requests checkpoints, and continues from the last one when the program or the worker has ended.
//!
//! The scheduler decides about the number of cores. Every worker of such a job is a new task. One that should have
//! other cores is asked to end, and its successor continues.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::clock::now;
use super::common::{Common, report_end};
use super::files;
use super::listener::Event;
use super::stop::StopConditions;
use super::worker_pool::encoded;
use crate::frame::ToWorker;
use crate::job::Job;
use crate::learn::{ProgramOptions, Shape};
use crate::scheduler::{Directive, Iteration, Outcome, Progress};
use crate::trainer::{self, Capabilities, Line, LineError, Report, Start};

/// Interval of checks while no event arrives.
const LOOK: Duration = Duration::from_millis(500);
/// Time that a program may take to end after a request.
const GRACE: Duration = Duration::from_secs(10);
/// Number of ends by a signal without an iteration in between after which the job fails.
const CRASHES_MAX: u32 = 3;
/// Number of losses that a checkpoint keeps for the predictions after a restart.
const LOSSES_KEPT: usize = 64;
/// Version of checkpoints. A change that older programs cannot read raises it.
const VERSION: u32 = 2;

/// The saved state of a training.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ProgramCheckpoint {
    version: u32,
    /// Job, as JSON: a checkpoint of another job under the same name is ignored.
    job: String,
    /// Number of the iteration with which the program begins, and its state; `None` before the first checkpoint.
    next: u64,
    state: Option<String>,
    /// Losses of the newest iterations, the newest last, and the newest iteration.
    losses: Vec<f64>,
    last: Option<Iteration>,
    stopping: StopConditions,
    best: Option<Best>,
}

/// The state with the lowest validation loss, for a job with patience.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Best {
    loss: f64,
    state: String,
}

/// The worker of the job.
#[derive(Debug)]
struct Current {
    connection: u64,
    task: String,
    cores: u32,
    frames: mpsc::Sender<Arc<Vec<u8>>>,
    capabilities: Option<Capabilities>,
    /// Number of the iteration that must come next, and the validation loss of the one before.
    next: u64,
    validation_loss: Option<f64>,
    /// Times of the last line, of the last iteration, and of the last request for a checkpoint.
    line_at: Instant,
    iterated: Instant,
    asked: Instant,
    /// Whether the program runs, as far as is known.
    running: bool,
    /// Time at which the program was asked to end; `None` if it was not.
    leaving: Option<Instant>,
}

/// The driver of a job that a user's program trains.
pub(super) struct ProgramDriver {
    common: Common,
    job: Job,
    options: ProgramOptions,
    events: mpsc::Receiver<Event>,
    current: Option<Current>,
    checkpoint: ProgramCheckpoint,
    /// Number of iterations that are done. Those that are repeated after a loss do not count again.
    iterations: u64,
    losses: Vec<f64>,
    last: Option<Iteration>,
    stopping: StopConditions,
    crashes: u32,
    /// Seconds from the job's submission to the start of this driver, and the time of this start.
    before: f64,
    since: Instant,
}

impl ProgramDriver {
    /// Creates a driver that continues from the job's checkpoint, if there is one; `age` is the time since the
    /// submission in seconds.
    pub(super) fn new(
        common: Common,
        job: Job,
        options: ProgramOptions,
        events: mpsc::Receiver<Event>,
        age: f64,
    ) -> ProgramDriver {
        let text = serde_json::to_string(&job).unwrap_or_default();
        let path = common.checkpoint_path(&job.name);
        let read = path.and_then(|path| std::fs::read(path).ok()).and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let checkpoint =
            read.filter(|checkpoint: &ProgramCheckpoint| checkpoint.version == VERSION && checkpoint.job == text);
        let checkpoint =
            checkpoint.unwrap_or(ProgramCheckpoint { version: VERSION, job: text, ..ProgramCheckpoint::default() });
        ProgramDriver {
            iterations: checkpoint.next,
            losses: checkpoint.losses.clone(),
            last: checkpoint.last,
            stopping: checkpoint.stopping.clone(),
            checkpoint,
            common,
            job,
            options,
            events,
            current: None,
            crashes: 0,
            before: age,
            since: now(),
        }
    }

    /// Trains until the job ends, reports to the scheduler, and saves the last checkpoint. `first` has been received
    /// already.
    pub(super) async fn run(mut self, first: Option<Event>) {
        self.common.report_earlier(&self.job.name, &self.losses, self.last).await;
        let first = match first {
            Some(event) => self.on_event(event).await,
            None => None,
        };
        let mut outcome = match first {
            Some(outcome) => outcome,
            None => self.train().await,
        };
        if !matches!(outcome, Outcome::Failed(_)) {
            self.take_last_checkpoint().await;
            if let Err(why) = self.save_state() {
                outcome = Outcome::Failed(format!("its state could not be saved: {why}"));
            }
        }
        let tasks = self.current.iter().map(|c| c.task.clone()).collect();
        let answer = report_end(&self.common, &self.job.name, outcome, tasks).await;
        self.release();
        if answer.is_some() {
            self.common.remove_checkpoint(&self.job.name);
        }
    }

    async fn train(&mut self) -> Outcome {
        let mut last_check = now();
        loop {
            if self.left().is_zero() {
                return Outcome::Finished("its deadline has passed".to_owned());
            }
            match tokio::time::timeout(LOOK.min(self.left()), self.events.recv()).await {
                Ok(None) => return Outcome::Stopped,
                Ok(Some(event)) => {
                    if let Some(outcome) = self.on_event(event).await {
                        return outcome;
                    }
                }
                Err(_) => {}
            }
            if last_check.elapsed() >= LOOK {
                last_check = now();
                if let Some(outcome) = self.check_periodically().await {
                    return outcome;
                }
            }
        }
    }

    /// Returns the time until the deadline.
    fn left(&self) -> Duration {
        let seconds = self.before + self.since.elapsed().as_secs_f64();
        let left = self.job.target.deadline.map(|d| d - seconds);
        left.map_or(Duration::MAX, |left| Duration::try_from_secs_f64(left).unwrap_or_default())
    }

    async fn on_event(&mut self, event: Event) -> Option<Outcome> {
        match event {
            Event::Joined { connection, task, cores, frames } => self.join(connection, task, cores, frames),
            Event::Line { connection, number, text } if self.is_current(connection) => {
                return match self.on_line(number, &text).await {
                    Ok(outcome) => outcome,
                    Err(error) => Some(Outcome::Failed(error.to_string())),
                };
            }
            Event::Ended { connection, code, signal } if self.is_current(connection) => {
                return self.on_end(code, signal);
            }
            Event::Gone { connection } if self.is_current(connection) => self.current = None,
            Event::Failed { connection, why } if self.is_current(connection) => {
                // The worker itself may still be connected; it is released at the end.
                let task = self.current.as_ref().map_or_else(String::new, |c| c.task.clone());
                return Some(Outcome::Failed(format!("worker {task}: {why}")));
            }
            Event::Stop => return Some(Outcome::Stopped),
            _ => {}
        }
        None
    }

    fn is_current(&self, connection: u64) -> bool {
        self.current.as_ref().is_some_and(|c| c.connection == connection)
    }

    /// Accepts a worker, and starts the program in it. An older worker is released, as there is one program at a time.
    fn join(&mut self, connection: u64, task: String, cores: u32, frames: mpsc::Sender<Arc<Vec<u8>>>) {
        self.release();
        let setup = ToWorker::Setup { job: self.checkpoint.job.clone(), shape: Shape::default() };
        let at = now();
        let current = Current {
            connection,
            task,
            cores,
            frames,
            capabilities: None,
            next: self.checkpoint.next,
            validation_loss: None,
            line_at: at,
            iterated: at,
            asked: at,
            running: false,
            leaving: None,
        };
        post(&current, &setup);
        self.current = Some(current);
        self.start_program();
    }

    /// Starts the program from the last checkpoint.
    fn start_program(&mut self) {
        let Some(current) = &mut self.current else { return };
        let start = Start {
            job: &self.job.name,
            cores: current.cores,
            iteration: self.checkpoint.next,
            checkpoint: self.checkpoint.state.as_deref(),
            best: self.job.patience.map(|_| self.checkpoint.best.as_ref().map(|best| best.loss)),
        };
        let line = start.line();
        (current.line_at, current.iterated, current.asked) = (now(), now(), now());
        (current.next, current.capabilities, current.running) = (self.checkpoint.next, None, true);
        post(current, &ToWorker::Run { line });
    }

    fn release(&mut self) {
        if let Some(current) = self.current.take() {
            post(&current, &ToWorker::Leave);
        }
    }

    async fn on_line(&mut self, number: u64, text: &str) -> Result<Option<Outcome>, LineError> {
        let line = trainer::parse(number, text)?;
        let Some(current) = &mut self.current else { return Ok(None) };
        current.line_at = now();
        match line {
            Line::Hello(capabilities) => {
                current.capabilities = Some(capabilities);
                let directive = self.report(Progress { capabilities: Some(capabilities), ..Progress::default() }).await;
                self.follow(&directive);
            }
            Line::Iteration(report) => {
                let want = current.next;
                if report.iteration != want {
                    return Err(LineError::Order { line: number, got: report.iteration, want });
                }
                current.next += 1;
                current.validation_loss = report.validation.map(|score| score.loss);
                return Ok(self.iteration_done(&report).await);
            }
            Line::Checkpoint { iteration, state } => {
                let want = current.next.saturating_sub(1);
                if iteration != want {
                    return Err(LineError::Order { line: number, got: iteration, want });
                }
                self.save_checkpoint(iteration + 1, state);
            }
        }
        Ok(None)
    }

    async fn iteration_done(&mut self, report: &Report) -> Option<Outcome> {
        let current = self.current.as_mut()?;
        let seconds = current.iterated.elapsed().as_secs_f64();
        current.iterated = now();
        let (capabilities, connection_task) = (current.capabilities.unwrap_or_default(), current.task.clone());
        let workers = f64::from(current.cores) / f64::from(self.common.cores.max(1));
        if capabilities.checkpoints && current.asked.elapsed().as_secs_f64() >= self.options.checkpoint_seconds {
            current.asked = now();
            send(current, trainer::CHECKPOINT);
        }
        // An iteration that was done before, and is repeated after a loss, counts once.
        if report.iteration < self.iterations {
            let (repeated, free) = (Some(report.iteration), vec![connection_task]);
            let directive = self.report(Progress { repeated, free, ..Progress::default() }).await;
            self.follow(&directive);
            return None;
        }
        let busy = report.busy.map_or(seconds * workers, |busy| busy / f64::from(self.common.cores.max(1)));
        let iteration = Iteration {
            number: report.iteration,
            loss: report.loss,
            accuracy: report.accuracy,
            validation: report.validation,
            seconds,
            workers,
            busy,
            rows: None,
        };
        (self.iterations, self.crashes, self.last) = (report.iteration + 1, 0, Some(iteration));
        if let Some(record) = &self.common.record {
            let seconds = self.common.started.elapsed().as_secs_f64();
            record.lock().unwrap_or_else(PoisonError::into_inner).add(&self.job, seconds, &iteration);
        }
        self.stopping.note(&self.job, &iteration, false, None);
        self.losses.push(report.loss);
        if self.losses.len() > 4 * LOSSES_KEPT {
            self.losses.drain(..2 * LOSSES_KEPT);
        }
        let (free, capabilities) = (vec![connection_task], Some(capabilities));
        let directive =
            self.report(Progress { iteration: Some(iteration), free, capabilities, ..Progress::default() }).await;
        self.follow(&directive);
        self.stopping.reason(&self.job, &iteration, self.iterations).map(Outcome::Finished)
    }

    fn on_end(&mut self, code: Option<i32>, signal: Option<i32>) -> Option<Outcome> {
        let current = self.current.as_mut()?;
        current.running = false;
        if current.leaving.is_some() {
            self.release();
            return None;
        }
        let (done, task) = (self.iterations, &current.task);
        let where_to_look = format!("after {done} iterations; its standard error is in the sandbox of task {task}");
        match (code, signal) {
            (Some(0), _) if self.last.is_some() => Some(Outcome::Finished("its program has ended".to_owned())),
            (Some(0), _) => Some(Outcome::Failed("its program ended without an iteration".to_owned())),
            (Some(code), _) => {
                Some(Outcome::Failed(format!("its program ended with exit status {code} {where_to_look}")))
            }
            (None, signal) => {
                self.crashes += 1;
                let signal = signal.unwrap_or_default();
                if self.crashes >= CRASHES_MAX {
                    let times = format!("{CRASHES_MAX} times without an iteration in between,");
                    let why = format!("its program was ended by signal {signal} {times} {where_to_look}");
                    return Some(Outcome::Failed(why));
                }
                tracing::warn!(job = self.job.name, signal, "the program was ended by a signal; it starts again");
                self.start_program();
                None
            }
        }
    }

    /// Checks periodically whether the program hangs or has to end, and whether the scheduler has given the job up.
    async fn check_periodically(&mut self) -> Option<Outcome> {
        if let Some(current) = &self.current {
            if current.leaving.is_some_and(|since| since.elapsed() >= GRACE) {
                tracing::warn!(job = self.job.name, task = current.task, "the program does not end; it is killed");
                self.release();
            } else if current.line_at.elapsed().as_secs_f64() >= self.options.silence {
                let (done, silence) = (self.iterations, self.options.silence);
                let why = format!("its program has written no line for {silence} s after {done} iterations: it hangs");
                return Some(Outcome::Failed(why));
            }
        }
        let free = self.current.iter().map(|c| c.task.clone()).collect();
        let capabilities = self.current.as_ref().and_then(|c| c.capabilities);
        let directive = self.report(Progress { free, capabilities, ..Progress::default() }).await;
        self.follow(&directive);
        directive.give_up.map(Outcome::Failed)
    }

    /// Asks the program to end, if its worker has to leave.
    fn follow(&mut self, directive: &Directive) {
        let Some(current) = &mut self.current else { return };
        if !directive.leave.contains(&current.task) || current.leaving.is_some() {
            return;
        }
        current.leaving = Some(now());
        send(current, trainer::STOP);
    }

    /// Requests the last checkpoint at the end of the job, if the program writes checkpoints.
    async fn take_last_checkpoint(&mut self) {
        let Some(current) = &mut self.current else { return };
        let can = current.running && current.capabilities.is_some_and(|m| m.checkpoints);
        // A state that is not the best will not be saved.
        let is_best =
            current.validation_loss.is_some_and(|loss| self.checkpoint.best.as_ref().is_none_or(|b| loss < b.loss));
        let spare = self.job.patience.is_some() && self.checkpoint.best.is_some() && !is_best;
        if !can || spare || self.checkpoint.next == current.next {
            return;
        }
        let began = *current.leaving.get_or_insert_with(now);
        send(current, trainer::STOP);
        while let Some(left) = GRACE.checked_sub(began.elapsed())
            && let Ok(Some(event)) = tokio::time::timeout(left, self.events.recv()).await
        {
            match event {
                Event::Line { connection, number, text } if self.is_current(connection) => {
                    match trainer::parse(number, &text) {
                        Ok(Line::Checkpoint { iteration, state }) => return self.save_checkpoint(iteration + 1, state),
                        Ok(_) => {}
                        Err(error) => tracing::warn!(job = self.job.name, %error, "the last checkpoint is missing"),
                    }
                }
                Event::Ended { connection, .. } | Event::Gone { connection } if self.is_current(connection) => return,
                _ => {}
            }
        }
    }

    /// Saves the program's state after the iteration before `next`.
    fn save_checkpoint(&mut self, next: u64, state: String) {
        let losses = self.losses[self.losses.len().saturating_sub(LOSSES_KEPT)..].to_vec();
        let (last, stopping) = (self.last, self.stopping.clone());
        let (version, job) = (VERSION, std::mem::take(&mut self.checkpoint.job));
        let mut best = self.checkpoint.best.take();
        if let Some(loss) = self.current.as_ref().and_then(|c| c.validation_loss)
            && self.job.patience.is_some()
            && best.as_ref().is_none_or(|best| loss < best.loss)
        {
            best = Some(Best { loss, state: state.clone() });
        }
        self.checkpoint = ProgramCheckpoint { version, job, next, state: Some(state), losses, last, stopping, best };
        let Some(path) = self.common.checkpoint_path(&self.job.name) else { return };
        let bytes = postcard::to_stdvec(&self.checkpoint).unwrap_or_default();
        if let Err(error) = files::replace(&path, &bytes) {
            tracing::warn!(job = self.job.name, error = %base::error_chain(&error), "no checkpoint");
        }
    }

    /// Saves the last state, or with patience the best, in the directory of models. Returns the reason in words if that
    /// fails.
    fn save_state(&self) -> Result<(), String> {
        let state = self.checkpoint.best.as_ref().map(|best| &best.state).or(self.checkpoint.state.as_ref());
        let (Some(directory), Some(state)) = (&self.common.models, state) else { return Ok(()) };
        let path = directory.join(format!("{}.state", self.job.name));
        files::replace(&path, state.as_bytes()).map_err(|error| base::error_chain(&error))
    }

    async fn report(&self, progress: Progress) -> Directive {
        self.common.report(&self.job.name, progress).await
    }
}

fn send(current: &Current, line: &str) {
    post(current, &ToWorker::Say { line: line.to_owned() });
}

/// Sends a frame to the worker. A worker that does not read loses its connection.
fn post(current: &Current, frame: &ToWorker) {
    if current.frames.try_send(encoded(frame)).is_err() {
        tracing::debug!(task = current.task, "the worker does not read");
    }
}
