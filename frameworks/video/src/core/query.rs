//! A query as the scheduler knows it.

use std::time::Duration;

use base::Time;
use serde::{Deserialize, Serialize};

use super::ask::{Orders, Report, Submission};
use super::moves::Move;
use super::status::{QueryStatus, Sample};
use crate::pipeline::Config;
use crate::profile::Point;
use crate::schedule::{Correction, Demand, Horizon, SampledQuality, Share};

/// Samples of history; when there are more, every second one goes.
const HISTORY_MAX: usize = 240;
/// The least time between two changes of a task's size.
const RESIZE_EVERY: Duration = Duration::from_secs(30);
/// What a query falls behind while its worker ends and the next one starts, in seconds, on a busy agent.
const PAUSE: f64 = 10.0;
/// What is left of the memory of a former share with each decision: half after seven.
const FORGET: f64 = 0.9;

/// Where a query stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It has no task: none yet, or not again yet.
    Waiting,
    /// Its task is launched, its worker has not come up.
    Starting,
    /// Its worker works.
    Running,
    /// Its stream has ended.
    Done,
    /// Its video cannot be read.
    Failed,
}

/// A query and everything known of it.
#[derive(Debug)]
pub(super) struct Query {
    pub submission: Submission,
    /// The number of the submission: a name can come back while a task of the query that had it has not ended.
    pub run: u32,
    pub state: State,
    pub message: String,
    pub task: Option<String>,
    pub agent: String,
    pub host: String,
    pub reserved: f64,
    /// The most cores that its next task may hold; `None` for what it can use.
    pub reserve_at_most: Option<f64>,
    pub starts: u32,
    pub launched: Time,
    pub not_before: Time,
    pub waiting_since: Option<Time>,
    /// Since when it has missed its goals without a break.
    pub missing_since: Option<Time>,
    /// The task that it is about to change over to.
    pub moving: Option<Move>,
    /// When its stream began, in seconds since 1970.
    pub began: Option<f64>,
    pub share: Share,
    /// The most cores that it was given lately.
    pub given: f64,
    /// When its task was replaced by one of another size last.
    pub resized: Option<Time>,
    correction: Correction,
    sampled: SampledQuality,
    /// How often its profile was replaced.
    profiled_again: u32,
    /// The number of the last sample of its worker.
    samples_seen: u32,
    pub last: Report,
    pub used: f64,
    pub found: u64,
    quality_seconds: f64,
    pub lag_over_sum: f64,
    pub samples: u64,
    pub history: Vec<Sample>,
}

/// What survives a restart of the scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub submission: Submission,
    #[serde(default)]
    pub run: u32,
    pub state: State,
    pub message: String,
    pub task: Option<String>,
    pub agent: String,
    pub host: String,
    pub reserved: f64,
    pub starts: u32,
    pub began: Option<f64>,
    pub position: f64,
    pub correction: f64,
    pub found: u64,
    pub quality_seconds: f64,
    #[serde(default)]
    pub sampled: SampledQuality,
    #[serde(default)]
    pub profiled_again: u32,
}

impl Query {
    pub fn new(submission: Submission, run: u32, now: Time) -> Query {
        Query {
            submission,
            run,
            state: State::Waiting,
            message: String::new(),
            task: None,
            agent: String::new(),
            host: String::new(),
            reserved: 0.0,
            reserve_at_most: None,
            starts: 0,
            launched: now,
            not_before: now,
            waiting_since: Some(now),
            missing_since: None,
            moving: None,
            began: None,
            share: Share { point: 0, cores: 0.0 },
            given: 0.0,
            resized: None,
            correction: Correction::new(1.0),
            sampled: SampledQuality::default(),
            profiled_again: 0,
            samples_seen: 0,
            last: Report::default(),
            used: 0.0,
            found: 0,
            quality_seconds: 0.0,
            lag_over_sum: 0.0,
            samples: 0,
            history: Vec::new(),
        }
    }

    pub fn kept(&self) -> Kept {
        Kept {
            submission: self.submission.clone(),
            run: self.run,
            state: self.state,
            message: self.message.clone(),
            task: self.task.clone(),
            agent: self.agent.clone(),
            host: self.host.clone(),
            reserved: self.reserved,
            starts: self.starts,
            began: self.began,
            position: self.last.position,
            correction: self.correction.factor(),
            found: self.found,
            quality_seconds: self.quality_seconds,
            sampled: self.sampled.clone(),
            profiled_again: self.profiled_again,
        }
    }

    pub fn restored(kept: Kept, now: Time) -> Query {
        let mut query = Query::new(kept.submission, kept.run, now);
        query.state = kept.state;
        query.message = kept.message;
        query.task = kept.task;
        query.agent = kept.agent;
        query.host = kept.host;
        query.reserved = kept.reserved;
        query.starts = kept.starts;
        query.began = kept.began;
        query.last.position = kept.position;
        query.correction = Correction::new(kept.correction);
        query.found = kept.found;
        query.quality_seconds = kept.quality_seconds;
        query.sampled = kept.sampled;
        query.profiled_again = kept.profiled_again;
        query
    }

    /// The id of its next task.
    pub fn next_task(&self) -> String {
        format!("video-{}-{}.{}", self.submission.spec.name, self.run, self.starts + 1)
    }

    /// Whether a task of it runs or should.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Starting | State::Running)
    }

    /// Whether it waits for a task, and may have one by now.
    pub fn is_due(&self, now: Time) -> bool {
        self.state == State::Waiting && self.not_before <= now
    }

    /// Cores that its tasks hold.
    pub fn held(&self) -> f64 {
        let own = if self.is_live() { self.reserved } else { 0.0 };
        own + self.moving.as_ref().map_or(0.0, |m| m.reserved)
    }

    /// Whether its task can be ended to be launched again in another size: it works, and was not replaced lately.
    pub fn may_resize(&self, now: Time) -> bool {
        let lately = self.resized.is_some_and(|at| now.since(at) < RESIZE_EVERY);
        self.state == State::Running && self.moving.is_none() && !lately
    }

    /// Whether its lag goal and its source bear a pause of its worker.
    pub fn can_pause(&self, now: Time) -> bool {
        let spec = &self.submission.spec;
        spec.video.camera().is_none() && self.lag(now) + PAUSE <= spec.goals.max_lag
    }

    /// Remembers what it is given now, and forgets bit by bit what it was given.
    pub fn note_given(&mut self) {
        self.given = self.share.cores.max(self.given * FORGET);
    }

    /// Whether its lag goal is longer than one can look ahead, so that it can lend cores to others.
    pub fn is_patient(&self, horizon: Horizon) -> bool {
        self.submission.spec.goals.max_lag > horizon.seconds
    }

    pub fn demand(&self, now: Time) -> Demand<'_> {
        Demand {
            goals: self.submission.spec.goals,
            points: &self.submission.points,
            lag: self.lag(now),
            correction: self.correction.factor(),
        }
    }

    /// Its lag: as reported, or since the start of its stream while it has no worker.
    pub fn lag(&self, now: Time) -> f64 {
        match (self.state, self.began) {
            (State::Running, _) => self.last.lag,
            (State::Waiting | State::Starting, Some(began)) => {
                (now.as_secs_f64() - began - self.last.position).max(0.0)
            }
            _ => 0.0,
        }
    }

    pub fn orders(&self) -> Orders {
        let config = self.submission.points.get(self.share.point).map_or(Config::GOLDEN, |p| p.config);
        Orders { config, cores: self.share.cores }
    }

    /// Takes in a report: where it is, what it costs, what it found.
    pub fn report(&mut self, report: Report) {
        let moved = (report.position - self.last.position).max(0.0);
        let points = &self.submission.points;
        let point_of = |config| points.iter().find(|p| p.config == config);
        let point = report.config.and_then(point_of);
        if let Some(point) = point {
            self.quality_seconds += moved * point.quality;
            self.correction.look(point, report.position, report.core_seconds);
        }
        if let Some(sample) = report.sample.as_ref().filter(|sample| sample.number > self.samples_seen) {
            self.samples_seen = sample.number;
            if let Some(point) = point_of(sample.config) {
                self.sampled.add(sample.score, point.quality);
            }
        }
        self.found += report.found;
        self.last = report;
    }

    /// A worker starts again: its counters start from zero.
    pub fn worker_changed(&mut self) {
        self.correction.restart();
        self.samples_seen = 0;
        self.last.core_seconds = 0.0;
    }

    /// Takes another profile. The demand that was measured with the former one says nothing about it.
    pub fn profile(&mut self, points: Vec<Point>) {
        self.share.point = self.share.point.min(points.len().saturating_sub(1));
        self.submission.points = points;
        self.correction = Correction::new(1.0);
        self.sampled.clear();
        self.profiled_again += 1;
    }

    pub fn sample(&mut self, now: Time) {
        let lag = self.lag(now);
        self.lag_over_sum += (lag - self.submission.spec.goals.max_lag).max(0.0);
        self.samples += 1;
        if self.history.len() >= HISTORY_MAX {
            let mut odd = false;
            self.history.retain(|_| {
                odd = !odd;
                odd
            });
        }
        let quality = if self.state == State::Running { self.quality() } else { 0.0 };
        self.history.push(Sample { at: now.as_secs_f64(), cores: self.share.cores, quality, lag });
    }

    pub fn quality(&self) -> f64 {
        self.submission.points.get(self.share.point).map_or(0.0, |p| p.quality)
    }

    pub fn status(&self, now: Time) -> QueryStatus {
        let spec = &self.submission.spec;
        let running = self.state == State::Running;
        QueryStatus {
            name: spec.name.clone(),
            kind: spec.kind,
            state: self.state,
            message: self.message.clone(),
            goals: spec.goals,
            config: running.then(|| self.orders().config),
            cores: if running { self.share.cores } else { 0.0 },
            reserved: self.held(),
            used: if running { self.used } else { 0.0 },
            quality: if running { self.quality() } else { 0.0 },
            mean_quality: if self.last.position > 0.0 { self.quality_seconds / self.last.position } else { 0.0 },
            measured_quality: None,
            sampled: self.sampled.status(),
            profiled_again: self.profiled_again,
            lag: self.lag(now),
            mean_lag_over: self.lag_over_sum / self.samples.max(1) as f64,
            correction: self.correction.factor(),
            position: self.last.position,
            found: self.found,
            starts: self.starts,
            task: self.task.clone(),
            host: self.host.clone(),
            source: self.last.source.clone(),
            notices: self.last.notices.clone(),
            history: self.history.clone(),
        }
    }
}
