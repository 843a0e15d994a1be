//! State of a query in the scheduler.

use std::time::Duration;

use base::Time;
use serde::{Deserialize, Serialize};

use super::moves::Move;
use super::question::{Orders, Report, Submission};
use super::status::{QueryStatus, Sample};
use crate::pipeline::Config;
use crate::profile::Point;
use crate::schedule::{Correction, Demand, Horizon, SampledQuality, Share};

/// Maximum number of samples in the history; when it is reached, every second sample is removed.
const HISTORY_MAX: usize = 240;
/// Least time between two changes of a task's size.
const RESIZE_EVERY: Duration = Duration::from_secs(30);
/// Lag in seconds that a restart of the worker adds on a busy agent.
const PAUSE: f64 = 10.0;
/// Factor by which the remembered share decays with each decision: it halves in seven decisions.
const FORGET: f64 = 0.9;

/// State of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The query has no task, not yet or not again.
    Waiting,
    /// Its task is launched, but its worker has not connected.
    Starting,
    /// Its worker processes the stream.
    Running,
    /// Its stream has ended.
    Done,
    /// Its video cannot be read, or its task has failed too often.
    Failed,
}

/// A query with its task, its share and its measurements.
#[derive(Debug)]
pub(super) struct Query {
    pub submission: Submission,
    /// Number of the submission. It is part of the task id, since a name can be reused while a task of the former query
    /// with that name has not ended.
    pub run: u32,
    pub state: State,
    pub message: String,
    pub task: Option<String>,
    pub agent: String,
    pub host: String,
    pub reserved: f64,
    /// Largest number of cores that the next task may hold; `None` for as many as the query can use.
    pub reserve_at_most: Option<f64>,
    pub starts: u32,
    pub launched: Time,
    pub not_before: Time,
    pub waiting_since: Option<Time>,
    /// Start of the time in which the query has missed its goals without interruption; `None` while it meets them.
    pub missing_since: Option<Time>,
    /// Second task to which the query is moving.
    pub moving: Option<Move>,
    /// Time at which the stream began, in seconds since 1970; `None` before that.
    pub began: Option<f64>,
    pub share: Share,
    /// Largest share of cores in recent decisions, decayed.
    pub recent_share: f64,
    /// Time at which the task was last replaced by one of another size.
    pub resized: Option<Time>,
    correction: Correction,
    sampled: SampledQuality,
    /// Number of times that the profile was replaced.
    profiled_again: u32,
    /// Number of the last sample that was received from the worker.
    samples_seen: u32,
    pub last: Report,
    pub used: f64,
    pub found: u64,
    quality_seconds: f64,
    pub lag_over_sum: f64,
    pub samples: u64,
    pub history: Vec<Sample>,
}

/// State of a query that is persisted and survives a restart of the scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedQuery {
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
            recent_share: 0.0,
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

    pub fn to_saved(&self) -> SavedQuery {
        SavedQuery {
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

    pub fn restored(saved: SavedQuery, now: Time) -> Query {
        let mut query = Query::new(saved.submission, saved.run, now);
        query.state = saved.state;
        query.message = saved.message;
        query.task = saved.task;
        query.agent = saved.agent;
        query.host = saved.host;
        query.reserved = saved.reserved;
        query.starts = saved.starts;
        query.began = saved.began;
        query.last.position = saved.position;
        query.correction = Correction::new(saved.correction);
        query.found = saved.found;
        query.quality_seconds = saved.quality_seconds;
        query.sampled = saved.sampled;
        query.profiled_again = saved.profiled_again;
        query
    }

    /// Returns the id of the query's next task.
    pub fn next_task(&self) -> String {
        format!("video-{}-{}.{}", self.submission.spec.name, self.run, self.starts + 1)
    }

    /// Returns whether a task of the query is running or starting.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Starting | State::Running)
    }

    /// Returns whether the query waits for a task and its backoff has ended.
    pub fn is_due(&self, now: Time) -> bool {
        self.state == State::Waiting && self.not_before <= now
    }

    /// Returns the number of cores that the query's tasks hold.
    pub fn held(&self) -> f64 {
        let own = if self.is_live() { self.reserved } else { 0.0 };
        own + self.moving.as_ref().map_or(0.0, |m| m.reserved)
    }

    /// Returns whether the task may be replaced by one of another size: it is running, is not moving, and was not
    /// replaced recently.
    pub fn may_resize(&self, now: Time) -> bool {
        let lately = self.resized.is_some_and(|at| now.since(at) < RESIZE_EVERY);
        self.state == State::Running && self.moving.is_none() && !lately
    }

    /// Returns whether the lag goal and the source tolerate a pause of the worker.
    pub fn can_pause(&self, now: Time) -> bool {
        let spec = &self.submission.spec;
        spec.video.camera().is_none() && self.lag(now) + PAUSE <= spec.goals.max_lag
    }

    /// Records the current share, and decays the remembered one.
    pub fn record_recent_share(&mut self) {
        self.recent_share = self.share.cores.max(self.recent_share * FORGET);
    }

    /// Returns whether the lag goal is longer than the horizon, so that the query can lend cores to others.
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

    /// Returns the lag in seconds: the reported one, or the one since the start of the stream while there is no worker.
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

    /// Records a worker's report: its position, its cost, and its findings.
    pub fn report(&mut self, report: Report) {
        let moved = (report.position - self.last.position).max(0.0);
        let points = &self.submission.points;
        let point_of = |config| points.iter().find(|p| p.config == config);
        let point = report.config.and_then(point_of);
        if let Some(point) = point {
            self.quality_seconds += moved * point.quality;
            self.correction.record(point, report.position, report.core_seconds);
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

    /// Records that another worker has started, whose counters start from zero.
    pub fn worker_changed(&mut self) {
        self.correction.restart();
        self.samples_seen = 0;
        self.last.core_seconds = 0.0;
    }

    /// Replaces the profile. Demand and quality that were measured with the former one are discarded.
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
