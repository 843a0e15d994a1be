//! Plays a trace through the classifier in the order of time: an end is learned when it happens, not before.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use advice::ends::{End, EndClassifier, JobStart, Launch, Score};
use serde::Serialize;

use crate::scenario::{GoogleEvent, ScenarioError, TaskEvent};

/// Ages, in seconds, at which a task that still runs is predicted again.
const AGES: [f64; 3] = [60.0, 600.0, 3_600.0];
/// Time, in seconds, after which a job counts as ended: none of its tasks was submitted again since the last one ended.
const QUIET: f64 = 600.0;
/// The most jobs that are tracked at once. Launches of further ones are ignored.
const JOBS_MAX: usize = 1_000_000;
/// The most tasks of a job whose last end is stored.
const TASKS_MAX: usize = 100_000;

/// Quality of predictions for tasks that have been running for some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Running {
    /// Time for which the tasks have been running, in seconds.
    pub age: f64,
    /// Score of the predictions at that age.
    pub then: Score,
    /// Score of the predictions at the launch of the same tasks.
    pub at_launch: Score,
}

/// Quality of the predictions for the later part of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Time from which on predictions count, in seconds since the trace's beginning.
    pub from: f64,
    /// Number of ended launches that began before `from`.
    pub learned: u64,
    /// Score for jobs, predicted when their first task is launched.
    pub jobs: Score,
    /// Score for jobs without a network: predicts how most jobs of that kind ended.
    pub jobs_by_habit: Score,
    /// Score for launches ("events" in the source), predicted when they begin.
    pub events: Score,
    /// Score for launches without a network: predicts how most launches of that job, or of its kind, ended.
    pub events_by_habit: Score,
    /// Score for launches by a classifier that stopped learning at the end of the first part.
    pub events_frozen: Score,
    /// Scores for launches that are still running, by their age.
    pub running: Vec<Running>,
}

/// A launch that has not ended.
struct Open {
    launch: Launch,
    began: f64,
    seen: Vec<f64>,
    predicted: End,
    habit: End,
    frozen: Option<End>,
    /// Features and prediction at each of [`AGES`] that the launch has reached.
    later: Vec<(Vec<f64>, End)>,
}

/// A job at its first launch.
struct LaunchedJob {
    at: f64,
    seen: Vec<f64>,
    predicted: End,
    habit: End,
}

/// A job that has not ended.
#[derive(Default)]
struct Job {
    start: JobStart,
    at_launch: Option<LaunchedJob>,
    /// Number of launches of each task, and its last end.
    tasks: BTreeMap<u32, (u32, Option<End>)>,
    open: u32,
    /// Number of submissions. A [`Due::Quiet`] with another number is outdated.
    quiets: u32,
}

/// An action that is due at a time: a task reaches an age, or a job ends. Times are stored as bits, which sort as the
/// times do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Age(u64, u32, u32),
    Quiet(u64, u32),
}

struct Evaluation {
    ends: EndClassifier,
    frozen: Option<EndClassifier>,
    jobs: BTreeMap<u64, Job>,
    open: BTreeMap<(u64, u32), Open>,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    outcome: Outcome,
}

/// Plays a trace whose events are in the order of time. Only predictions at `from` seconds or later count. Launches and
/// jobs that have not ended with the trace do not count.
///
/// # Errors
/// Returns an error if an event cannot be read.
pub fn evaluate(
    events: impl Iterator<Item = Result<GoogleEvent, ScenarioError>>,
    from: f64,
    seed: u64,
) -> Result<Outcome, ScenarioError> {
    let running = AGES.map(|age| Running { age, ..Running::default() }).to_vec();
    let mut evaluation = Evaluation {
        ends: EndClassifier::new(seed),
        frozen: None,
        jobs: BTreeMap::new(),
        open: BTreeMap::new(),
        due: BinaryHeap::new(),
        outcome: Outcome { from, running, ..Outcome::default() },
    };
    for event in events {
        let event = event?;
        evaluation.until(event.time);
        if event.time >= from && evaluation.frozen.is_none() {
            evaluation.frozen = Some(evaluation.ends.clone());
        }
        evaluation.take(&event);
    }
    evaluation.until(f64::INFINITY);
    Ok(evaluation.outcome)
}

/// Returns a number for a user, whom the trace identifies by name.
fn number(user: &str) -> u64 {
    user.bytes().fold(0, |hash, byte| base::scramble(hash ^ u64::from(byte)))
}

impl Evaluation {
    fn take(&mut self, event: &GoogleEvent) {
        let end = match event.event {
            TaskEvent::Submit => return self.submit(event),
            TaskEvent::Schedule => return self.launch(event),
            TaskEvent::Update => return,
            TaskEvent::Finish => Some(End::Finish),
            TaskEvent::Fail => Some(End::Fail),
            TaskEvent::Kill => Some(End::Kill),
            TaskEvent::Evict => Some(End::Evict),
            TaskEvent::Lost => None,
        };
        self.end(event, end);
    }

    fn submit(&mut self, event: &GoogleEvent) {
        if self.jobs.len() >= JOBS_MAX && !self.jobs.contains_key(&event.job) {
            return;
        }
        let job = self.jobs.entry(event.job).or_default();
        if job.at_launch.is_none() {
            let (user, class, priority) = (number(&event.user), event.class, event.priority);
            job.start = JobStart { user, class, priority, requested: event.requested, tasks: job.start.tasks + 1 };
        }
        job.open += 1;
        job.quiets += 1;
        if job.tasks.len() < TASKS_MAX && !job.tasks.contains_key(&event.task) {
            job.tasks.insert(event.task, (0, None));
            self.ends.submitted(event.job);
        }
    }

    fn launch(&mut self, event: &GoogleEvent) {
        let Some(job) = self.jobs.get_mut(&event.job) else { return };
        let now = event.time;
        if job.at_launch.is_none() {
            let seen = self.ends.job_features(&job.start, now);
            let predicted = End::likeliest(&self.ends.predict_job(&seen));
            let habit = self.ends.most_frequent_job_end(&job.start);
            job.at_launch = Some(LaunchedJob { at: now, seen, predicted, habit });
        }
        let Some((attempts, last)) = job.tasks.get_mut(&event.task) else { return };
        let launch = Launch {
            job: event.job,
            user: number(&event.user),
            machine: event.machine,
            class: event.class,
            priority: event.priority,
            requested: event.requested,
            last: *last,
            attempts: *attempts,
        };
        *attempts += 1;
        let attempt = *attempts;
        let seen = self.ends.task_features(&launch, 0.0, now);
        let predicted = End::likeliest(&self.ends.predict(&seen));
        let frozen = self.frozen.as_ref().map(|frozen| End::likeliest(&frozen.predict(&seen)));
        let habit = self.ends.most_frequent_end(&launch);
        let open = Open { launch, began: now, seen, predicted, habit, frozen, later: Vec::new() };
        self.open.insert((event.job, event.task), open);
        for age in AGES {
            self.due.push(Reverse(((now + age).to_bits(), Due::Age(event.job, event.task, attempt))));
        }
    }

    fn end(&mut self, event: &GoogleEvent, end: Option<End>) {
        let Some(job) = self.jobs.get_mut(&event.job) else { return };
        let now = event.time;
        job.open = job.open.saturating_sub(1);
        if let Some((_, last)) = job.tasks.get_mut(&event.task) {
            *last = end.or(*last);
        }
        if job.open == 0 {
            self.due.push(Reverse(((now + QUIET).to_bits(), Due::Quiet(event.job, job.quiets))));
        }
        // A task that was killed before its launch has no open launch.
        let Some(open) = self.open.remove(&(event.job, event.task)) else { return };
        let Some(end) = end else { return };
        self.score(&open, end);
        for seen in std::iter::once(&open.seen).chain(open.later.iter().map(|(seen, _)| seen)) {
            self.ends.learn(seen, end);
        }
        self.ends.ended(&open.launch, now - open.began, end, now);
    }

    fn score(&mut self, open: &Open, end: End) {
        let outcome = &mut self.outcome;
        if open.began < outcome.from {
            outcome.learned += 1;
            return;
        }
        outcome.events.add(open.predicted, end);
        outcome.events_by_habit.add(open.habit, end);
        if let Some(frozen) = open.frozen {
            outcome.events_frozen.add(frozen, end);
        }
        for (running, (_, predicted)) in outcome.running.iter_mut().zip(&open.later) {
            running.then.add(*predicted, end);
            running.at_launch.add(open.predicted, end);
        }
    }

    /// Performs the actions that are due before `now`.
    fn until(&mut self, now: f64) {
        while let Some(Reverse((at, due))) =
            self.due.peek().copied().filter(|Reverse((at, _))| f64::from_bits(*at) < now)
        {
            self.due.pop();
            match due {
                Due::Age(job, task, attempt) => self.predict_again(job, task, attempt, f64::from_bits(at)),
                Due::Quiet(job, quiets) => self.end_job(job, quiets, f64::from_bits(at)),
            }
        }
    }

    fn predict_again(&mut self, job: u64, task: u32, attempt: u32, now: f64) {
        let Some(open) = self.open.get_mut(&(job, task)).filter(|open| open.launch.attempts + 1 == attempt) else {
            return;
        };
        let seen = self.ends.task_features(&open.launch, now - open.began, now);
        let predicted = End::likeliest(&self.ends.predict(&seen));
        open.later.push((seen, predicted));
    }

    /// Ends a job: its end is the most frequent last end of its tasks.
    fn end_job(&mut self, id: u64, quiets: u32, now: f64) {
        if self.jobs.get(&id).is_none_or(|job| job.open > 0 || job.quiets != quiets) {
            return;
        }
        let Some(job) = self.jobs.remove(&id) else { return };
        let mut counts = [0.0; 4];
        job.tasks.values().filter_map(|(_, last)| *last).for_each(|end| counts[end.place()] += 1.0);
        let Some(launched) = job.at_launch.filter(|_| counts.iter().any(|count| *count > 0.0)) else { return };
        let end = End::likeliest(&counts);
        if launched.at >= self.outcome.from {
            self.outcome.jobs.add(launched.predicted, end);
            self.outcome.jobs_by_habit.add(launched.habit, end);
        }
        self.ends.learn_job(&launched.seen, end);
        self.ends.job_ended(&job.start, end, now);
    }
}
