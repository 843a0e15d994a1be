//! The program of a task, the files in its sandbox, and its restarts after failures.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file::seconds;

/// Program of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Run {
    /// A command for `/bin/sh -c`.
    Command(String),
    /// A program and its arguments, without a shell. The list is not empty.
    Program(Vec<String>),
    /// The image's own entry point.
    Image,
}

/// A file that the agent fetches into the sandbox before a task starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uri {
    /// URI of the file.
    pub value: String,
    /// Whether an archive is unpacked.
    pub extract: bool,
    /// Whether the file is made executable.
    pub executable: bool,
    /// Whether the agent caches the file for other tasks.
    pub cache: bool,
    /// Name of the file in the sandbox; `None` for the last part of `value`.
    pub output: Option<String>,
}

/// Backoff with which a failed task is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restart {
    /// Delay after the first failure.
    #[serde(with = "seconds")]
    pub first: Duration,
    /// Factor between consecutive delays; at least 1.
    pub factor: f64,
    /// Longest delay.
    #[serde(with = "seconds")]
    pub longest: Duration,
    /// Length of a run after which the delays start again from the first one.
    #[serde(with = "seconds")]
    pub steady: Duration,
}

impl Default for Restart {
    /// Returns the values of Marathon: a first delay of one second, which grows by 15 % up to 5 min.
    fn default() -> Restart {
        Restart {
            first: Duration::from_secs(1),
            factor: 1.15,
            longest: Duration::from_secs(300),
            steady: Duration::from_secs(10),
        }
    }
}

impl Restart {
    /// Returns the delay after this many consecutive failures.
    pub fn wait(&self, failures: u32) -> Duration {
        let Some(before) = failures.checked_sub(1) else { return Duration::ZERO };
        let grown = self.first.as_secs_f64() * self.factor.powi(i32::try_from(before).unwrap_or(i32::MAX));
        Duration::try_from_secs_f64(grown).unwrap_or(self.longest).min(self.longest)
    }
}

/// The agent on which a task runs or ran, with the task's id and ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Id of the task on the cluster.
    pub task_id: String,
    /// Id of the agent.
    pub agent_id: String,
    /// Host name of the agent.
    pub host: String,
    /// Address of the agent's API as `host:port`; empty if its offers did not have it.
    #[serde(default)]
    pub agent: String,
    /// Ports of the task.
    pub ports: Vec<u64>,
}
