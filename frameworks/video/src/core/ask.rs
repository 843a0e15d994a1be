//! What the shell asks the scheduler, and what it answers: for users, and for workers.

use serde::{Deserialize, Serialize};

use super::status::Status;
use crate::media::camera::FeedStatus;
use crate::pipeline::{Config, Notice, Score};
use crate::profile::Point;
use crate::spec::QuerySpec;

/// A query with its profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// The query.
    pub spec: QuerySpec,
    /// Its configurations worth having, from cheap to dear.
    pub points: Vec<Point>,
    /// What quality is measured against.
    #[serde(default = "golden")]
    pub golden: Config,
}

fn golden() -> Config {
    Config::GOLDEN
}

/// A question.
#[derive(Debug)]
pub enum Question {
    /// Takes queries in: all or none.
    Submit(Vec<Submission>),
    /// Replaces a query's profile: what it was made on has changed.
    Profile {
        /// The query.
        query: String,
        /// Its configurations worth having, from cheap to dear.
        points: Vec<Point>,
    },
    /// Ends a query and forgets it.
    Remove(String),
    /// The status.
    Status,
    /// A worker has started, or reconnected; at this position of its stream if it has begun.
    Hello {
        /// Its task.
        task: String,
        /// Seconds of the stream that it has behind it.
        position: Option<f64>,
    },
    /// A worker reports.
    Report {
        /// Its task.
        task: String,
        /// The worker's report.
        report: Report,
    },
    /// Ends the framework, and all its tasks; or only this process.
    Stop {
        /// Whether tasks end, too.
        teardown: bool,
    },
}

/// An answer.
#[derive(Debug)]
pub enum Answer {
    /// Done.
    Done,
    /// Not done, and why.
    Refused(String),
    /// Not done: no query has this name.
    NoQuery(String),
    /// The status.
    Status(Box<Status>),
    /// To a worker: start, or continue.
    Start(Box<Start>),
    /// To a worker: what it may use from now on.
    Orders(Orders),
    /// To a worker of a task of this framework: its query has ended, or another task has taken over. It ends well.
    Over,
    /// To a worker: there is no such task.
    Unknown,
}

/// What a worker needs to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The query.
    pub spec: QuerySpec,
    /// How long ago the stream began, in seconds.
    pub age: f64,
    /// Where in the stream to begin, in seconds.
    pub position: f64,
    /// What it may use.
    pub orders: Orders,
    /// What samples of the stream are compared with.
    #[serde(default = "golden")]
    pub golden: Config,
    /// Seconds from one sample to the next; 0 for no samples.
    #[serde(default)]
    pub sample_every: f64,
    /// How long it continues without a scheduler, in seconds.
    pub patience: f64,
}

/// What a worker may use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// Its configuration.
    pub config: Config,
    /// Its cores.
    pub cores: f64,
}

/// A configuration compared with the golden one on a sample of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QualitySample {
    /// Its number, from 1 with each start of a worker.
    pub number: u32,
    /// When it ended, in seconds of the stream.
    pub at: f64,
    /// The configuration.
    pub config: Config,
    /// What it found, against what the golden one found.
    pub score: Score,
}

/// A worker's report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Seconds of the stream behind it.
    pub position: f64,
    /// Seconds that the stream is ahead of it.
    pub lag: f64,
    /// Core-seconds used so far by this worker.
    pub core_seconds: f64,
    /// Cores used lately.
    #[serde(default)]
    pub used: f64,
    /// The configuration that it is in.
    pub config: Option<Config>,
    /// Frames looked at so far by this worker.
    pub frames: u64,
    /// Findings since the last report.
    pub found: u64,
    /// The last sample of quality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Box<QualitySample>>,
    /// The state of its live source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<FeedStatus>,
    /// What happened to its source and its view lately, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// The stream has ended.
    #[serde(default)]
    pub done: bool,
    /// The video cannot be read any further, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
