//! The framework with modelled workers: models what `worker` does with videos, with known profiles and in virtual time.
//!
//! The scheduler decides cores, configurations and agents, as it does live. This module computes the progress of
//! workers: in a second a core processes as many seconds of a stream as the profile states. Nothing is decoded.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use sdk::v1::{TaskState, TaskStatus};
use sdk::{Calls, Event, Requester, Scheduler, is_terminal};

use crate::core::{Answer, Options, Orders, Question, Report, Submission, VideoScheduler};
use crate::profile::Point;
use crate::worker::REPORT_EVERY;

/// An event in the life of a modelled query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryEvent {
    /// The first worker of the query of this name has started.
    Started(String),
    /// The query of this name has ended, with its means if it was processed to its end.
    Ended(String, Option<QueryMeans>),
}

/// Means over the stream of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryMeans {
    /// Mean quality of what was examined.
    pub quality: f64,
    /// Mean lag over time, in seconds.
    pub lag: f64,
    /// Fraction of the time in which the lag exceeded its goal.
    pub late: f64,
}

/// Progress of a query.
struct Query {
    points: Vec<Point>,
    max_lag: f64,
    /// Length of the stream, in seconds.
    seconds: f64,
    /// Time at which the stream began; `None` before that.
    began: Option<Time>,
    /// Seconds of the stream that were processed, and these weighted by their quality.
    position: f64,
    quality: f64,
    /// Integral of the lag over time, time over the goal, and the time until which both are counted.
    lag: f64,
    late: f64,
    counted: Time,
}

impl Query {
    fn current_lag(&self, now: Time) -> f64 {
        self.began.map_or(0.0, |began| (now.since(began).as_secs_f64().min(self.seconds) - self.position).max(0.0))
    }

    /// Adds the time until now to the sums, with the present lag.
    fn count(&mut self, now: Time) {
        let (passed, lag) = (now.since(self.counted).as_secs_f64(), self.current_lag(now));
        self.lag += lag * passed;
        self.late += if lag > self.max_lag { passed } else { 0.0 };
        self.counted = now;
    }

    fn means(&self, now: Time) -> QueryMeans {
        let lived = self.began.map_or(0.0, |began| now.since(began).as_secs_f64()).max(1e-9);
        QueryMeans { quality: self.quality / self.position.max(1e-9), lag: self.lag / lived, late: self.late / lived }
    }
}

/// A modelled worker that has started.
struct Worker {
    query: String,
    orders: Option<Orders>,
    /// Time until which its work is computed.
    at: Time,
    /// Core-seconds that the worker has used, and the cores that it used recently.
    core_seconds: f64,
    used: f64,
    /// Whether the worker has reported the end of its stream.
    done: bool,
}

/// Purpose of a question to the scheduler.
enum Purpose {
    Submitted(String),
    /// Sent for the worker of this task.
    Worker(String),
    Removed,
}

/// The framework with modelled workers; see the module's documentation.
pub struct Modelled {
    scheduler: VideoScheduler,
    requester: Requester<Question, Answer>,
    queries: BTreeMap<String, Query>,
    submitted: Vec<Submission>,
    /// Workers by task.
    workers: BTreeMap<String, Worker>,
    /// Queries of launched tasks whose workers have not started, by task.
    coming: BTreeMap<String, String>,
    asked: Vec<(Purpose, sdk::Answer<Answer>)>,
    /// Time of the next reports. All workers report at once, which makes no difference to them.
    reports: Time,
    events: Vec<QueryEvent>,
}

impl Modelled {
    /// Creates a framework without queries.
    pub fn new(options: Options) -> Modelled {
        let (requester, requests) = sdk::requests();
        Modelled {
            scheduler: VideoScheduler::new(options, requests),
            requester,
            queries: BTreeMap::new(),
            submitted: Vec::new(),
            workers: BTreeMap::new(),
            coming: BTreeMap::new(),
            asked: Vec::new(),
            reports: Time::EPOCH,
            events: Vec::new(),
        }
    }

    /// Submits a query at the next event. Its stream begins when its first worker starts, and ends after its length; a
    /// stream without an end is processed until the run ends.
    pub fn submit(&mut self, submission: Submission) {
        let query = Query {
            points: submission.points.clone(),
            max_lag: submission.spec.goals.max_lag,
            seconds: submission.spec.seconds.unwrap_or(f64::INFINITY),
            began: None,
            position: 0.0,
            quality: 0.0,
            lag: 0.0,
            late: 0.0,
            counted: Time::EPOCH,
        };
        self.queries.insert(submission.spec.name.clone(), query);
        self.submitted.push(submission);
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<QueryEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns means over the queries that have begun, at this time: the quality of their configurations (0 while they
    /// have no worker), their lag in seconds, and the fraction of them whose lag exceeds its goal.
    pub fn means(&self, now: Time) -> Option<[f64; 3]> {
        let begun = || self.queries.values().filter(|query| query.began.is_some());
        let quality = self.workers.values().filter_map(|worker| Some(self.point(worker)?.quality)).sum::<f64>();
        let lag = begun().map(|query| query.current_lag(now)).sum::<f64>();
        let late = begun().filter(|query| query.current_lag(now) > query.max_lag).count() as f64;
        let count = begun().count() as f64;
        (count > 0.0).then(|| [quality, lag, late].map(|sum| sum / count))
    }

    /// Returns how many more cores the queries could use.
    pub fn wanted(&self, now: Time) -> f64 {
        self.scheduler.wanted(now)
    }

    /// Returns the profile point of the worker's configuration.
    fn point(&self, worker: &Worker) -> Option<&Point> {
        let config = worker.orders?.config;
        self.queries.get(&worker.query)?.points.iter().find(|point| point.config == config)
    }

    fn ask(&mut self, why: Purpose, question: Question) {
        // A question that does not fit into the queue is lost, as a message would be; workers ask again.
        if let Ok(answer) = self.requester.put(question) {
            self.asked.push((why, answer));
        }
    }

    fn update(&mut self, status: &TaskStatus, now: Time) {
        let (id, state) = (status.task_id.value.as_str(), status.state());
        if state == TaskState::TaskRunning {
            let Some(query) = self.coming.remove(id) else { return };
            let worker = Worker { query, orders: None, at: now, core_seconds: 0.0, used: 0.0, done: false };
            self.workers.insert(id.to_owned(), worker);
            self.ask(Purpose::Worker(id.to_owned()), Question::Hello { task: id.to_owned(), position: None });
        } else if is_terminal(state) || matches!(state, TaskState::TaskUnreachable | TaskState::TaskUnknown) {
            self.coming.remove(id);
            self.work(now);
            self.workers.remove(id);
        }
    }

    /// Applies the answers of the scheduler to the modelled workers.
    fn handle_answers(&mut self, now: Time, calls: &mut Calls) {
        for (why, mut answer) in std::mem::take(&mut self.asked) {
            let Some(answer) = answer.take() else {
                self.asked.push((why, answer));
                continue;
            };
            match (why, answer) {
                (Purpose::Submitted(name), Ok(Answer::Refused(_))) => {
                    self.queries.remove(&name);
                    self.events.push(QueryEvent::Ended(name, None));
                }
                (Purpose::Worker(task), Ok(Answer::Start(start))) => self.start(&task, start.orders, now),
                (Purpose::Worker(task), Ok(Answer::Orders(orders))) => self.apply_orders(&task, orders, now),
                (Purpose::Worker(task), Ok(Answer::QueryEnded | Answer::Unknown)) => self.exit(&task, calls),
                _ => {}
            }
        }
    }

    /// Starts a worker.
    fn start(&mut self, task: &str, orders: Orders, now: Time) {
        let Some(worker) = self.workers.get_mut(task) else { return };
        (worker.orders, worker.at) = (Some(orders), now);
        let name = worker.query.clone();
        // The former worker of the query ends.
        self.workers.retain(|id, worker| id == task || worker.query != name);
        let Some(query) = self.queries.get_mut(&name).filter(|query| query.began.is_none()) else { return };
        (query.began, query.counted) = (Some(now), now);
        self.events.push(QueryEvent::Started(name));
    }

    /// Applies the orders to a worker. A worker whose stream is over ends, and with it its query, which the scheduler
    /// forgets.
    fn apply_orders(&mut self, task: &str, orders: Orders, now: Time) {
        let Some(worker) = self.workers.get_mut(task) else { return };
        worker.orders = Some(orders);
        if worker.done {
            let name = worker.query.clone();
            if let Some(query) = self.queries.remove(&name) {
                self.events.push(QueryEvent::Ended(name.clone(), Some(query.means(now))));
            }
            self.workers.remove(task);
            self.ask(Purpose::Removed, Question::Remove(name));
        }
    }

    /// Ends a worker; observers see a kill.
    fn exit(&mut self, task: &str, calls: &mut Calls) {
        self.workers.remove(task);
        calls.kill(task, None);
    }

    /// Computes the work of all workers until now.
    fn work(&mut self, now: Time) {
        for worker in self.workers.values_mut() {
            let passed = now.since(worker.at).as_secs_f64();
            worker.at = now;
            let (Some(query), Some(orders)) = (self.queries.get_mut(&worker.query), worker.orders) else { continue };
            let point = query.points.iter().find(|point| point.config == orders.config);
            let Some(point) = point.filter(|_| passed > 0.0) else { continue };
            let looked = (passed * orders.cores / point.cores).min(query.current_lag(now));
            query.position += looked;
            query.quality += looked * point.quality;
            worker.core_seconds += looked * point.cores;
            worker.used = looked * point.cores / passed;
        }
        self.queries.values_mut().filter(|query| query.began.is_some()).for_each(|query| query.count(now));
    }

    /// Sends the reports of all workers.
    fn report(&mut self, now: Time) {
        let mut reports = Vec::new();
        for (task, worker) in &mut self.workers {
            let (Some(query), Some(orders)) = (self.queries.get(&worker.query), worker.orders) else { continue };
            worker.done = query.position >= query.seconds - 1e-6;
            let report = Report {
                position: query.position,
                lag: if worker.done { 0.0 } else { query.current_lag(now) },
                core_seconds: worker.core_seconds,
                used: worker.used,
                config: Some(orders.config),
                done: worker.done,
                ..Report::default()
            };
            reports.push((task.clone(), report));
        }
        for (task, report) in reports {
            self.ask(Purpose::Worker(task.clone()), Question::Report { task, report });
        }
    }

    /// Schedules the start of the workers of launched tasks, each for the query in its label.
    fn note_launches(&mut self, before: usize, calls: &mut Calls) {
        let accepted = calls.queued()[before..].iter().filter_map(|call| call.accept.as_ref());
        let launches = accepted.flat_map(|accept| &accept.operations).filter_map(|one| one.launch.as_ref());
        for task in launches.flat_map(|launch| &launch.task_infos) {
            self.coming.insert(task.task_id.value.to_string(), task.name.clone());
        }
    }
}

impl Scheduler for Modelled {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        let before = calls.queued().len();
        if let Event::Update(status) = &event {
            self.update(status, now);
        }
        self.handle_answers(now, calls);
        for submission in std::mem::take(&mut self.submitted) {
            self.ask(Purpose::Submitted(submission.spec.name.clone()), Question::Submit(vec![submission]));
        }
        if now >= self.reports {
            self.reports = now + Duration::from_secs_f64(REPORT_EVERY);
            self.work(now);
            self.report(now);
        }
        self.scheduler.on_event(event, now, calls);
        if !self.asked.is_empty() {
            self.scheduler.on_event(Event::Wake, now, calls);
            // The answers are available as soon as this event is handled.
            calls.wake_at(now);
        }
        self.note_launches(before, calls);
        if !self.workers.is_empty() {
            calls.wake_at(self.reports);
        }
    }
}

#[cfg(test)]
mod tests;
