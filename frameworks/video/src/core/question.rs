//! Questions that the shell asks the scheduler for users and for workers, and the answers.

use serde::{Deserialize, Serialize};

use super::status::Status;
use crate::media::camera::FeedStatus;
use crate::pipeline::{Config, Notice, Score};
use crate::profile::Point;
use crate::spec::QuerySpec;

/// A query with its profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// Query as the user specified it.
    pub spec: QuerySpec,
    /// Pareto-optimal configurations of the query, from cheap to expensive.
    pub points: Vec<Point>,
    /// Configuration that quality is measured against.
    #[serde(default = "golden")]
    pub golden: Config,
}

fn golden() -> Config {
    Config::GOLDEN
}

/// A question to the scheduler.
#[derive(Debug)]
pub enum Question {
    /// Adds queries: all or none.
    Submit(Vec<Submission>),
    /// Replaces the profile of a query, because the scene that it was made from has changed.
    Profile {
        /// Name of the query.
        query: String,
        /// Pareto-optimal configurations of the query, from cheap to expensive.
        points: Vec<Point>,
    },
    /// Ends the query of this name and forgets it.
    Remove(String),
    /// Asks for the status of the framework.
    Status,
    /// A worker has started or reconnected. It has a position in its stream if it has begun to process it.
    Hello {
        /// Id of the worker's task.
        task: String,
        /// Position in the stream up to which the worker has processed it, in seconds; `None` before it begins.
        position: Option<f64>,
    },
    /// A worker sends a report.
    Report {
        /// Id of the worker's task.
        task: String,
        /// The worker's report.
        report: Report,
    },
    /// Stops the scheduler process, and ends the framework with its tasks on a teardown.
    Stop {
        /// Whether the framework and its tasks end too.
        teardown: bool,
    },
}

/// An answer of the scheduler.
#[derive(Debug)]
pub enum Answer {
    /// The request was carried out.
    Done,
    /// The request was refused, for this reason.
    Refused(String),
    /// The request failed, since there is no query with this name.
    NoQuery(String),
    /// Status of the framework.
    Status(Box<Status>),
    /// Tells a worker to start, or to continue.
    Start(Box<Start>),
    /// Tells a worker the configuration and the cores that it uses from now on.
    Orders(Orders),
    /// Tells a worker of this framework that its query has ended, or that another task has taken over. The worker exits
    /// with success.
    QueryEnded,
    /// Tells a worker that there is no such task.
    Unknown,
}

/// Data that a worker needs to begin with a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Query to process.
    pub spec: QuerySpec,
    /// Age of the stream, in seconds since it began.
    pub age: f64,
    /// Position in the stream at which to begin, in seconds.
    pub position: f64,
    /// Configuration and cores of the worker.
    pub orders: Orders,
    /// Golden configuration, with which samples of the stream are compared.
    #[serde(default = "golden")]
    pub golden: Config,
    /// Interval between samples, in seconds; 0 for no samples.
    #[serde(default)]
    pub sample_every: f64,
    /// Time for which the worker continues without a scheduler, in seconds.
    pub patience: f64,
}

/// The configuration and the cores that a worker may use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// Configuration of the worker's pipeline.
    pub config: Config,
    /// Number of cores that the worker may use.
    pub cores: f64,
}

/// Comparison of a configuration with the golden one on a sample of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QualitySample {
    /// Number of the sample; it starts at 1 with each start of a worker.
    pub number: u32,
    /// End of the sample, in seconds of the stream.
    pub at: f64,
    /// Configuration that was compared.
    pub config: Config,
    /// Score of its findings against those of the golden configuration.
    pub score: Score,
}

/// A report of a worker on its progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Position up to which the stream is processed, in seconds.
    pub position: f64,
    /// Seconds by which the worker is behind the stream.
    pub lag: f64,
    /// Core-seconds that this worker has used so far.
    pub core_seconds: f64,
    /// Number of cores that the worker used recently.
    #[serde(default)]
    pub used: f64,
    /// Current configuration of the worker.
    pub config: Option<Config>,
    /// Number of frames that this worker has examined so far.
    pub frames: u64,
    /// Number of findings since the last report.
    pub found: u64,
    /// Last sample of quality; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Box<QualitySample>>,
    /// State of the live source; `None` for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<FeedStatus>,
    /// Recent events of the source and of its view, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// Whether the stream has ended.
    #[serde(default)]
    pub done: bool,
    /// Reason why the rest of the video cannot be read; `None` if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
