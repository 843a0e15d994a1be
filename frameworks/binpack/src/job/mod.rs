//! Jobs, and the file that describes them.
//!
//! [`fn@read`] converts a file to jobs or reports all of its faults; a [`Job`] satisfies all rules of that file. The
//! scheduling of jobs is elsewhere.

mod container;
mod health;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Need;
use crate::constraint::Constraint;
use crate::place::Policy;

pub use container::{Container, Network};
pub use health::{Health, Probe};
pub use jobs::file::seconds::parse as parse_time;
pub use jobs::file::{FILE_BYTES_MAX, Fault, Faults, JOBS_MAX, Syntax};
pub use jobs::{Containerizer, Restart, Run, Uri};
pub use read::{COUNT_MAX, read};

pub(crate) use jobs::file::seconds;

/// Kind of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A job of one task that ends.
    #[default]
    Batch,
    /// A job of many tasks that end, each with its number.
    Array,
    /// A job whose tasks are kept running.
    Service,
    /// A job whose tasks are started together or not at all, and end together.
    Gang,
}

impl Kind {
    /// Returns the name of the kind in job files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Batch => "batch",
            Kind::Array => "array",
            Kind::Service => "service",
            Kind::Gang => "gang",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bounds for the replacement of a service's tasks by those of a new version.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// Fraction of the count that stays healthy during the replacement, 0 to 1.
    pub min_healthy: f64,
    /// Fraction of the count that may run in addition during the replacement, 0 to 1.
    pub max_over: f64,
}

impl Default for Update {
    /// Returns Marathon's default: all tasks stay healthy, and up to as many again may run.
    fn default() -> Update {
        Update { min_healthy: 1.0, max_over: 1.0 }
    }
}

/// Condition under which a gang has finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GangEnd {
    /// All ranks have finished.
    #[default]
    All,
    /// Rank 0 has finished; the other ranks are killed then. For launchers such as mpirun.
    First,
}

/// A valid job. Saved jobs are read by later versions: a missing field has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default = "Job::unnamed")]
pub struct Job {
    /// Name of the job: letters, digits, `.`, `_` and `-`; unique among the jobs of a framework that have not ended.
    pub name: String,
    /// Kind of the job.
    pub kind: Kind,
    /// Number of tasks: 1 for a batch job, the ranks of a gang, the instances of a service (which may be 0).
    pub count: u32,
    /// Command that each task runs.
    pub run: Run,
    /// Resources that each task needs.
    pub need: Need,
    /// Environment variables of each task, besides those that the framework sets.
    pub env: BTreeMap<String, String>,
    /// Labels of each task.
    pub labels: BTreeMap<String, String>,
    /// Files to be fetched into each sandbox.
    pub uris: Vec<Uri>,
    /// User as which the tasks run; `None` for the framework's user.
    pub user: Option<String>,
    /// Container image, by the name that Docker uses.
    pub image: Option<String>,
    /// Containerizer, network and ports of the container.
    pub container: Container,
    /// Constraints on the agents of the tasks.
    pub constraints: Vec<Constraint>,
    /// Placement policy of the tasks; `None` for the framework's policy.
    pub policy: Option<Policy>,
    /// Priority of the job: jobs with a higher priority are placed first.
    pub priority: i32,
    /// Number of times that a failed task is started again. Services are restarted without limit.
    pub retries: u32,
    /// Health check of the tasks.
    pub health: Option<Health>,
    /// Waits before a task is started again.
    pub restart: Restart,
    /// Bounds for the replacement of a service by its next version.
    pub update: Update,
    /// Time for which a gang may hold offers while it gathers them.
    #[serde(with = "seconds")]
    pub gather: Duration,
    /// Condition under which a gang has finished.
    pub ends: GangEnd,
    /// Maximum run time of a task; a task that runs longer is killed and has failed.
    #[serde(with = "seconds::optional")]
    pub time_limit: Option<Duration>,
    /// Time between the request to end a task and its forced kill; `None` for the agent's default.
    #[serde(with = "seconds::optional")]
    pub kill_grace: Option<Duration>,
}

impl Job {
    /// Creates a job of one task with this name, command and need, and defaults for all other fields.
    pub fn new(name: &str, command: &str, need: Need) -> Job {
        Job {
            name: name.to_owned(),
            kind: Kind::Batch,
            count: 1,
            run: Run::Command(command.to_owned()),
            need,
            env: BTreeMap::new(),
            labels: BTreeMap::new(),
            uris: Vec::new(),
            user: None,
            image: None,
            container: Container::default(),
            constraints: Vec::new(),
            policy: None,
            priority: 0,
            retries: 0,
            health: None,
            restart: Restart::default(),
            update: Update::default(),
            gather: GATHER,
            ends: GangEnd::All,
            time_limit: None,
            kill_grace: None,
        }
    }

    /// Returns whether this is the same job, apart from the secret of a gang ([`TOKEN`]).
    pub(crate) fn is_same_but_for_secret(&self, other: &Job) -> bool {
        if self.kind != Kind::Gang || other.kind != Kind::Gang {
            return self == other;
        }
        let bare = |job: &Job| {
            let mut job = job.clone();
            job.env.remove(TOKEN);
            job
        };
        bare(self) == bare(other)
    }

    /// Returns the defaults for fields that an older version did not save. Readers must check that the job has a name.
    fn unnamed() -> Job {
        Job::new("", "", Need::default())
    }

    /// Returns whether tasks of one job can continue as tasks of the other: the jobs differ only in the count.
    pub fn is_same_but_for_count(&self, other: &Job) -> bool {
        *self == Job { count: self.count, ..other.clone() }
    }
}

/// Environment variable with the secret by which the ranks of a gang recognise each other. The framework sets it for
/// each gang, unless the job sets it.
pub(crate) const TOKEN: &str = "TEPUI_TOKEN";
/// Default time for which a gang gathers offers.
const GATHER: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
