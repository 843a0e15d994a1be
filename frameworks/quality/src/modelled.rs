//! The framework with modelled drivers and workers, in virtual time: it replaces the processes and sockets of `service`
//! by trainings with recorded losses.
//!
//! The scheduler decides the numbers of workers, as it does live. This module computes how long iterations take with
//! them ([`RecordedJob::seconds`]), and reports that to the scheduler. It trains nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use sdk::base::Time;
use sdk::v1::{TaskState, TaskStatus};
use sdk::{Calls, Event, Requester, Scheduler, is_terminal};

use crate::job::Job;
use crate::replay::RecordedJob;
use crate::scheduler::{
    Answer, Directive, Iteration, JOB_VARIABLE, Outcome, Progress, Quality, Question, Settings, Submission,
};

/// Number of ended jobs that the scheduler remembers; it forgets older ones.
const REMEMBERED: usize = 1000;

/// An event of a training.
#[derive(Clone, Debug, PartialEq)]
pub enum TrainingEvent {
    /// The first worker of this training has connected.
    Started(String),
    /// An iteration of this training is done; the number is the share of the loss reduction that is left.
    Iteration(String, f64),
    /// This training has ended; the flag tells whether all its iterations are done.
    Ended(String, bool),
}

/// A modelled training.
struct Training {
    curve: RecordedJob,
    /// Number of iterations that are done.
    done: usize,
    begun: bool,
    workers: BTreeSet<String>,
    /// Whether the training waits for the scheduler's answer.
    asking: bool,
    current_iteration: CurrentIteration,
}

/// The current iteration of a training.
#[derive(Clone, Copy, Debug)]
struct CurrentIteration {
    /// Share of the iteration that is still to be done.
    left: f64,
    /// Time up to which the iteration's progress is computed.
    at: Time,
    /// Seconds in which there were workers, and the sum of all workers' seconds.
    seconds: f64,
    worker_seconds: f64,
}

impl CurrentIteration {
    fn new(at: Time) -> CurrentIteration {
        CurrentIteration { left: 1.0, at, seconds: 0.0, worker_seconds: 0.0 }
    }
}

impl Training {
    /// Returns the seconds that a whole iteration takes with the present workers; `None` without workers, or while the
    /// training waits for the scheduler.
    fn whole(&self, cores: u32) -> Option<f64> {
        let workers = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        (workers > 0 && !self.asking).then(|| self.curve.seconds(workers.saturating_mul(cores)))
    }

    /// Advances the iteration until now.
    fn advance(&mut self, now: Time, cores: u32) {
        if let Some(whole) = self.whole(cores) {
            let passed = now.since(self.current_iteration.at).as_secs_f64();
            self.current_iteration.left -= passed / whole.max(1e-9);
            self.current_iteration.seconds += passed;
            self.current_iteration.worker_seconds += passed * self.workers.len() as f64;
        }
        self.current_iteration.at = now;
    }

    /// Returns the time at which the iteration ends if nothing changes.
    fn ends(&self, cores: u32) -> Option<Time> {
        let left = self.current_iteration.left.max(0.0) * self.whole(cores)?;
        // The time is rounded up, so that nothing is left of the iteration then.
        Some(self.current_iteration.at + Duration::from_secs_f64(left) + Duration::from_nanos(1))
    }
}

/// The reason of a question to the scheduler.
enum Purpose {
    Submitted(String),
    /// An iteration is done.
    Progress(String),
    /// A worker has ended; the answer tells whether the job has failed.
    Look(String),
    Ended(String),
    Forgotten,
}

/// The framework with modelled drivers and workers; see the [module documentation](self).
pub struct Modelled {
    quality: Quality,
    requester: Requester<Question, Answer>,
    cores: u32,
    trainings: BTreeMap<String, Training>,
    /// Trainings to submit at the next event.
    submitted: Vec<(String, Job)>,
    asked: Vec<(Purpose, sdk::Answer<Answer>)>,
    /// Workers that were launched and are not running yet, with the job of each.
    coming: BTreeMap<String, String>,
    ended: VecDeque<String>,
    events: Vec<TrainingEvent>,
}

impl Modelled {
    /// Creates a framework without trainings.
    pub fn new(settings: Settings) -> Modelled {
        let (requester, requests) = sdk::requests();
        Modelled {
            cores: settings.worker.cores.max(1),
            quality: Quality::new(settings, requests),
            requester,
            trainings: BTreeMap::new(),
            submitted: Vec::new(),
            asked: Vec::new(),
            coming: BTreeMap::new(),
            ended: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Submits a training with these losses at the next event. `job` is its definition for the scheduler; its
    /// iterations, shards and cores are those of the curve.
    pub fn submit(&mut self, job: Job, curve: RecordedJob, now: Time) {
        let job = Job {
            iterations: curve.losses.len() as u64,
            shards: curve.shards as usize,
            max_cores: Some(curve.ceiling),
            priority: curve.priority,
            ..job
        };
        let training = Training {
            curve,
            done: 0,
            begun: false,
            workers: BTreeSet::new(),
            asking: false,
            current_iteration: CurrentIteration::new(now),
        };
        self.trainings.insert(job.name.clone(), training);
        self.submitted.push((job.name.clone(), job));
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<TrainingEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the share of the loss reduction that is left, as a mean over the active trainings.
    pub fn mean_left(&self) -> Option<f64> {
        let left = self.trainings.values().map(|training| training.curve.left(training.done));
        (!self.trainings.is_empty()).then(|| left.sum::<f64>() / self.trainings.len() as f64)
    }

    /// Returns the number of additional workers that the trainings could use.
    pub fn wanted(&self) -> u32 {
        let of = |training: &Training| {
            let most = training.curve.ceiling.div_ceil(self.cores);
            most.saturating_sub(u32::try_from(training.workers.len()).unwrap_or(u32::MAX))
        };
        let coming = u32::try_from(self.coming.len()).unwrap_or(u32::MAX);
        self.trainings.values().map(of).fold(0, u32::saturating_add).saturating_sub(coming)
    }

    fn ask(&mut self, why: Purpose, question: Question) {
        // A question that does not fit into the queue is lost, as a message would be. There is at most one for each
        // job.
        if let Ok(answer) = self.requester.put(question) {
            self.asked.push((why, answer));
        }
    }

    fn update(&mut self, status: &TaskStatus, now: Time, calls: &mut Calls) {
        let (id, state) = (status.task_id.value.as_str(), status.state());
        if state == TaskState::TaskRunning {
            if let Some(job) = self.coming.remove(id) {
                self.join(id, &job, now, calls);
            }
        } else if is_terminal(state) || matches!(state, TaskState::TaskUnreachable | TaskState::TaskUnknown) {
            self.coming.remove(id);
            self.lose(id, now);
        }
    }

    /// Adds a worker to a job. If the job has ended, the worker is killed.
    fn join(&mut self, task: &str, job: &str, now: Time, calls: &mut Calls) {
        let Some(training) = self.trainings.get_mut(job) else { return calls.kill(task, None) };
        training.advance(now, self.cores);
        training.workers.insert(task.to_owned());
        if !std::mem::replace(&mut training.begun, true) {
            self.events.push(TrainingEvent::Started(job.to_owned()));
        }
    }

    /// Removes a worker that has ended.
    fn lose(&mut self, task: &str, now: Time) {
        let cores = self.cores;
        let Some((name, training)) = self.trainings.iter_mut().find(|(_, one)| one.workers.contains(task)) else {
            return;
        };
        training.advance(now, cores);
        training.workers.remove(task);
        if !training.asking {
            let (name, progress) = (name.clone(), Progress { job: name.clone(), ..Progress::default() });
            self.ask(Purpose::Look(name), Question::Progress(Box::new(progress)));
        }
    }

    /// Applies the answers of the scheduler.
    fn handle_answers(&mut self, now: Time, calls: &mut Calls) {
        for (why, mut answer) in std::mem::take(&mut self.asked) {
            let Some(answer) = answer.take() else {
                self.asked.push((why, answer));
                continue;
            };
            let Ok(answer) = answer else { continue };
            match (why, answer) {
                (Purpose::Submitted(job), Answer::Submitted(Err(_))) => {
                    self.trainings.remove(&job);
                    self.events.push(TrainingEvent::Ended(job, false));
                }
                (Purpose::Progress(job), Answer::Directive(directive)) => {
                    self.apply_directive(&job, &directive, now, calls);
                    self.next_iteration(&job, directive.give_up, now);
                }
                (Purpose::Look(job), Answer::Directive(directive)) => {
                    self.apply_directive(&job, &directive, now, calls);
                    if directive.give_up.is_some() {
                        self.next_iteration(&job, directive.give_up, now);
                    }
                }
                (Purpose::Ended(job), Answer::Directive(directive)) => {
                    self.apply_directive(&job, &directive, now, calls);
                    self.over(&job, calls);
                }
                _ => {}
            }
        }
    }

    /// Removes the workers that are to end or to work for other jobs.
    fn apply_directive(&mut self, job: &str, directive: &Directive, now: Time, calls: &mut Calls) {
        let cores = self.cores;
        for task in directive.leave.iter().chain(directive.moves.iter().map(|one| &one.task)) {
            if let Some(training) = self.trainings.get_mut(job) {
                training.advance(now, cores);
                training.workers.remove(task);
            }
        }
        // A released worker ends; observers see a kill.
        directive.leave.iter().for_each(|task| calls.kill(task, None));
        for one in &directive.moves {
            self.join(&one.task, &one.job, now, calls);
        }
    }

    /// Starts the next iteration, or ends the training.
    fn next_iteration(&mut self, job: &str, failed: Option<String>, now: Time) {
        let Some(training) = self.trainings.get_mut(job) else { return };
        if failed.is_none() && training.done < training.curve.losses.len() {
            training.asking = false;
            training.current_iteration = CurrentIteration::new(now);
            return;
        }
        training.asking = true;
        let free = training.workers.iter().cloned().collect();
        let outcome = match failed {
            Some(why) => Outcome::Failed(why),
            None => Outcome::Finished("all its iterations are done".to_owned()),
        };
        self.ask(Purpose::Ended(job.to_owned()), Question::Ended { job: job.to_owned(), outcome, free });
    }

    fn over(&mut self, job: &str, calls: &mut Calls) {
        let Some(training) = self.trainings.remove(job) else { return };
        training.workers.iter().for_each(|task| calls.kill(task, None));
        let well = training.done == training.curve.losses.len();
        self.events.push(TrainingEvent::Ended(job.to_owned(), well));
        self.ended.push_back(job.to_owned());
        if self.ended.len() > REMEMBERED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.ask(Purpose::Forgotten, Question::Forget(oldest));
        }
    }

    /// Reports iterations that have ended by now.
    fn work(&mut self, now: Time) {
        let cores = self.cores;
        let due = |(_, training): &(&String, &Training)| training.ends(cores).is_some_and(|at| at <= now);
        let due: Vec<String> = self.trainings.iter().filter(due).map(|(name, _)| name.clone()).collect();
        for name in due {
            let Some(training) = self.trainings.get_mut(&name) else { continue };
            training.advance(now, cores);
            let CurrentIteration { seconds, worker_seconds, .. } = training.current_iteration;
            let iteration = Iteration {
                number: training.done as u64,
                loss: training.curve.losses[training.done],
                accuracy: None,
                validation: None,
                seconds,
                workers: worker_seconds / seconds.max(1e-9),
                busy: training.curve.busy() / f64::from(cores),
                rows: None,
            };
            training.done += 1;
            training.asking = true;
            let free = training.workers.iter().cloned().collect();
            self.events.push(TrainingEvent::Iteration(name.clone(), training.curve.left(training.done)));
            let progress = Progress { job: name.clone(), iteration: Some(iteration), free, ..Progress::default() };
            self.ask(Purpose::Progress(name), Question::Progress(Box::new(progress)));
        }
    }

    /// Records the launched tasks, which start later, with the job in their environment.
    fn note_launches(&mut self, before: usize, calls: &mut Calls) {
        let accepted = calls.queued()[before..].iter().filter_map(|call| call.accept.as_ref());
        let launches = accepted.flat_map(|accept| &accept.operations).filter_map(|one| one.launch.as_ref());
        for task in launches.flat_map(|launch| &launch.task_infos) {
            let variables = task.command.iter().filter_map(|command| command.environment.as_ref());
            let job = variables.flat_map(|all| &all.variables).find(|one| one.name == JOB_VARIABLE);
            if let Some(job) = job.and_then(|one| one.value.clone()) {
                self.coming.insert(task.task_id.value.to_string(), job);
            }
        }
    }
}

impl Scheduler for Modelled {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        let before = calls.queued().len();
        if let Event::Update(status) = &event {
            self.update(status, now, calls);
        }
        self.handle_answers(now, calls);
        for (name, job) in std::mem::take(&mut self.submitted) {
            let token = String::new();
            self.ask(Purpose::Submitted(name), Question::Submit(vec![Submission { job, token }]));
        }
        self.work(now);
        self.quality.on_event(event, now, calls);
        if !self.asked.is_empty() {
            self.quality.on_event(Event::Wake, now, calls);
            // The answers are available when this event is over.
            calls.wake_at(now);
        }
        self.note_launches(before, calls);
        if let Some(at) = self.trainings.values().filter_map(|training| training.ends(self.cores)).min() {
            calls.wake_at(at);
        }
    }
}

#[cfg(test)]
mod tests;
