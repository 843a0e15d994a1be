//! Jobs of stages, and the file that describes them.
//!
//! [`read`] converts a file to jobs or reports all of its faults; a [`Job`] satisfies all rules of that file. What
//! happens to a job on a cluster is elsewhere.

mod approximate;
pub mod graph;
mod input;
mod keep;
mod read;
mod stage;
pub mod template;
mod volumes;

use std::collections::BTreeMap;
use std::time::Duration;

use jobs::constraint::Constraint;
use jobs::file::seconds;
use jobs::{Containerizer, Need, Restart, Run, Uri};
use serde::{Deserialize, Serialize};

pub use approximate::{Approximate, Statistic};
pub use input::{By, FilesInput, Grouping, Input, RangeInput, Size, StagesInput};
pub use jobs::file::{FILE_BYTES_MAX, Fault, Faults, JOBS_MAX, Syntax};
pub use keep::Keep;
pub use read::{STAGES_MAX, read};
pub use stage::COUNT_MAX;
pub use volumes::{Volume, volumes};

/// How urgent a job is (DiAS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// It gives way: tasks of its approximate stages may be dropped.
    Low,
    /// Neither gives way nor sprints.
    #[default]
    Normal,
    /// Its tasks may sprint.
    High,
}

impl Class {
    /// The name, as job files have it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Low => "low",
            Class::Normal => "normal",
            Class::High => "high",
        }
    }
}

/// A job that keeps all rules. What is kept of it on disk is read by later versions: what is missing there is the
/// default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default = "Job::unnamed")]
pub struct Job {
    /// Letters, digits, `.`, `_` and `-`; unique among the jobs of a framework that have not ended.
    pub name: String,
    /// Its stages, in the order of the file. A stage names others by their place here.
    pub stages: Vec<Stage>,
    /// The directory in which stages leave their outputs, the same on all agents. Without one they stay in the
    /// sandboxes.
    pub shared: Option<String>,
    /// What stays in that directory once the job has ended.
    pub keep: Keep,
    /// Its class of priority.
    pub priority: Class,
    /// How long it should take from its submission, for the order by deadlines.
    #[serde(with = "seconds::optional")]
    pub deadline: Option<Duration>,
    /// Its share against other jobs; above 0.
    pub weight: f64,
}

impl Job {
    /// What stands for the fields that an older version did not write. Readers must check that it has a name.
    fn unnamed() -> Job {
        Job {
            name: String::new(),
            stages: Vec::new(),
            shared: None,
            keep: Keep::default(),
            priority: Class::Normal,
            deadline: None,
            weight: 1.0,
        }
    }

    /// How many tasks each stage has, if all of these are known before anything runs: no stage looks at files or finds
    /// its sizes on the way.
    pub fn task_counts(&self) -> Option<Vec<u32>> {
        let mut counts: Vec<u32> = Vec::with_capacity(self.stages.len());
        for stage in &self.stages {
            let source = |input: &StagesInput| input.stages.first().copied();
            counts.push(match &stage.input {
                Input::Tasks(count) => *count,
                Input::Range(RangeInput { from, to, size: Size::Fixed(size) }) => {
                    u32::try_from((to - from).div_ceil((*size).max(1))).ok()?
                }
                Input::Range(_) | Input::Files(_) => return None,
                Input::Stages(input) => match input.by {
                    Grouping::All => 1,
                    // Sources stand before their readers.
                    Grouping::Task => counts.get(source(input)?)?.div_ceil(input.size.max(1)),
                    Grouping::Partition => self.stages.get(source(input)?)?.partitions?,
                },
            });
        }
        Some(counts)
    }

    /// The place of the stage with this name.
    pub fn stage(&self, name: &str) -> Option<usize> {
        self.stages.iter().position(|stage| stage.name == name)
    }
}

/// One stage of a job: many tasks of one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default = "Stage::unnamed")]
pub struct Stage {
    /// Letters, digits, `_` and `-`; unique in its job.
    pub name: String,
    /// The stages that must have finished before, by their places; those of its input are among them. Ascending.
    pub after: Vec<usize>,
    /// What each task runs.
    pub run: Run,
    /// What each task needs.
    pub need: Need,
    /// Environment variables of each task, beside those that the framework sets.
    pub env: BTreeMap<String, String>,
    /// Files for each sandbox.
    pub uris: Vec<Uri>,
    /// The user that the tasks run as, if not the framework's.
    pub user: Option<String>,
    /// The container image, as Docker names it.
    pub image: Option<String>,
    /// What of the agent runs the image.
    pub containerizer: Containerizer,
    /// Rules on the agents that its tasks may run on; none of them is about other tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// How often a task that failed is tried again.
    pub retries: u32,
    /// How long to wait before that.
    pub restart: Restart,
    /// How long a task may run; one that runs longer is ended, and has failed.
    #[serde(with = "seconds::optional")]
    pub time_limit: Option<Duration>,
    /// What its tasks share among them.
    pub input: Input,
    /// Whether a task's part of the input files is its standard input.
    pub stdin: bool,
    /// Files that each task leaves, relative to its output directory; with partitions each contains `{partition}`.
    pub outputs: Vec<String>,
    /// How many parts each output has, for readers that take the same part of all tasks.
    pub partitions: Option<u32>,
    /// Whether tasks may be left out.
    pub approximate: Option<Approximate>,
}

impl Stage {
    fn unnamed() -> Stage {
        Stage {
            name: String::new(),
            after: Vec::new(),
            run: Run::Command(String::new()),
            need: Need::default(),
            env: BTreeMap::new(),
            uris: Vec::new(),
            user: None,
            image: None,
            containerizer: Containerizer::default(),
            constraints: Vec::new(),
            retries: 0,
            restart: Restart::default(),
            time_limit: None,
            input: Input::Tasks(1),
            stdin: false,
            outputs: Vec::new(),
            partitions: None,
            approximate: None,
        }
    }

    /// Whether a task's part may be of several files. Where files are cut these are for programs that read their part
    /// from standard input and do not ask which bytes of which file it is.
    pub fn spans_files(&self) -> bool {
        match &self.input {
            Input::Files(files) => files.by == By::Files || (self.stdin && !template::names_bytes(&self.run)),
            Input::Tasks(_) | Input::Range(_) | Input::Stages(_) => false,
        }
    }

    /// Whether its tasks are run by the framework's runner, which brings data and takes outputs, and not directly.
    pub fn needs_runner(&self) -> bool {
        let reads = matches!(self.input, Input::Files(_) | Input::Stages(_));
        let counts = self.approximate.as_ref().is_some_and(|a| a.value.is_some());
        reads || self.stdin || !self.outputs.is_empty() || counts
    }
}

#[cfg(test)]
mod tests;
