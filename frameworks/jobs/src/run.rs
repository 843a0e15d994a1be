//! What a task runs, what it finds in its sandbox, and how it is started again when it fails.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file::seconds;

/// What a task runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Run {
    /// A command for `/bin/sh -c`.
    Command(String),
    /// A program and its arguments, without a shell. The list is not empty.
    Program(Vec<String>),
    /// The image's own setting.
    Image,
}

/// A file that is brought into the sandbox before a task starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uri {
    /// Where it comes from.
    pub value: String,
    /// Whether an archive is unpacked.
    pub extract: bool,
    /// Whether the file is made executable.
    pub executable: bool,
    /// Whether the agent keeps it for the next task.
    pub cache: bool,
    /// Its name in the sandbox, if not the last part of `value`.
    pub output: Option<String>,
}

/// How a task that failed is started again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restart {
    /// The wait after the first failure.
    #[serde(with = "seconds")]
    pub first: Duration,
    /// By how much each further wait is longer; at least 1.
    pub factor: f64,
    /// The longest wait.
    #[serde(with = "seconds")]
    pub longest: Duration,
    /// After a run of this length a task has not failed: the waits start from the first one.
    #[serde(with = "seconds")]
    pub steady: Duration,
}

impl Default for Restart {
    /// Marathon's: a second, growing by 15 %, 5 min at most.
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
    /// How long to wait after this many failures in a row.
    pub fn wait(&self, failures: u32) -> Duration {
        let Some(before) = failures.checked_sub(1) else { return Duration::ZERO };
        let grown = self.first.as_secs_f64() * self.factor.powi(i32::try_from(before).unwrap_or(i32::MAX));
        Duration::try_from_secs_f64(grown).unwrap_or(self.longest).min(self.longest)
    }
}

/// Where a task runs or ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The task's id on the cluster.
    pub task_id: String,
    /// The agent's id.
    pub agent_id: String,
    /// The agent's host.
    pub host: String,
    /// The agent's API as `host:port`; empty if its offers did not say.
    #[serde(default)]
    pub agent: String,
    /// The ports that are the task's.
    pub ports: Vec<u64>,
}
