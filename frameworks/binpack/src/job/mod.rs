//! Jobs, and the file that describes them.
//!
//! [`read`] converts a file to jobs or reports all of its faults; a [`Job`] satisfies all rules of that file. What
//! happens to a job on a cluster is elsewhere.

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

/// What kind of work a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One task that ends.
    #[default]
    Batch,
    /// Many tasks that end, each with its number.
    Array,
    /// Tasks that are kept running.
    Service,
    /// Tasks that are started together or not at all, and end together.
    Gang,
}

impl Kind {
    /// The name, as job files have it.
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

/// How the tasks of a service are replaced by those of a new version.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// The part of the count that stays healthy meanwhile, 0 to 1.
    pub min_healthy: f64,
    /// The part of the count that may run beyond it meanwhile, 0 to 1.
    pub max_over: f64,
}

impl Default for Update {
    /// Marathon's: all stay, and up to as many again may run meanwhile.
    fn default() -> Update {
        Update { min_healthy: 1.0, max_over: 1.0 }
    }
}

/// When a gang has done its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GangEnd {
    /// When all ranks have finished.
    #[default]
    All,
    /// When rank 0 has finished; the others are ended then. For launchers such as mpirun.
    First,
}

/// A job that keeps all rules. What is kept of it on disk is read by later versions: what is missing there is the
/// default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default = "Job::unnamed")]
pub struct Job {
    /// Letters, digits, `.`, `_` and `-`; unique among the jobs of a framework that have not ended.
    pub name: String,
    /// What kind of work it is.
    pub kind: Kind,
    /// How many tasks: 1 for a batch job, the ranks of a gang, the instances of a service (which may be 0).
    pub count: u32,
    /// What each task runs.
    pub run: Run,
    /// What each task needs.
    pub need: Need,
    /// Environment variables of each task, beside those that the framework sets.
    pub env: BTreeMap<String, String>,
    /// Labels of each task.
    pub labels: BTreeMap<String, String>,
    /// Files for each sandbox.
    pub uris: Vec<Uri>,
    /// The user that the tasks run as, if not the framework's.
    pub user: Option<String>,
    /// The container image, as docker names it.
    pub image: Option<String>,
    /// What runs the image, its network and its ports.
    pub container: Container,
    /// Where tasks may run.
    pub constraints: Vec<Constraint>,
    /// Where tasks go among the places where they may run, if not by the framework's policy.
    pub policy: Option<Policy>,
    /// Jobs with more come first.
    pub priority: i32,
    /// How often a task that failed is tried again. Services are without end.
    pub retries: u32,
    /// How a task is known to be well.
    pub health: Option<Health>,
    /// How long to wait before a task is started again.
    pub restart: Restart,
    /// How a service is replaced by its next version.
    pub update: Update,
    /// How long a gang may hold offers while it gathers.
    #[serde(with = "seconds")]
    pub gather: Duration,
    /// When a gang has done its work.
    pub ends: GangEnd,
    /// How long a task may run; one that runs longer is ended, and has failed.
    #[serde(with = "seconds::optional")]
    pub time_limit: Option<Duration>,
    /// The time between asking a task to end and killing it, if not the agent's.
    #[serde(with = "seconds::optional")]
    pub kill_grace: Option<Duration>,
}

impl Job {
    /// A job of one task with this name, command and need, and defaults for all else.
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

    /// Whether this is the same job, apart from the secret that a gang was given ([`TOKEN`]).
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

    /// What stands for the fields that an older version did not write. Readers must check that it has a name.
    fn unnamed() -> Job {
        Job::new("", "", Need::default())
    }

    /// Whether tasks of one can continue as tasks of the other: they differ only in the count.
    pub fn is_same_but_for_count(&self, other: &Job) -> bool {
        *self == Job { count: self.count, ..other.clone() }
    }
}

/// The variable by which the ranks of a gang know each other: a secret that each gang is given unless it brings one.
pub(crate) const TOKEN: &str = "TEPUI_TOKEN";
/// Default time for which a gang gathers offers.
const GATHER: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
