//! Jobs that consist of stages, and the file that describes them.
//!
//! [`fn@read`] converts a file to jobs or reports all of its faults; a [`Job`] satisfies all rules of that file.
//! Running a job on a cluster is the task of [`crate::core`].

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
pub use input::{FilesInput, Grouping, Input, RangeInput, Size, SplitUnit, StagesInput};
pub use jobs::file::{FILE_BYTES_MAX, Fault, Faults, JOBS_MAX, Syntax};
pub use keep::Keep;
pub use read::{STAGES_MAX, read};
pub use stage::COUNT_MAX;
pub use volumes::{Volume, volumes};

/// The priority class of a job (DiAS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Tasks of the job's approximate stages may be dropped.
    Low,
    /// Tasks of the job are neither dropped nor do they sprint.
    #[default]
    Normal,
    /// Tasks of the job may sprint.
    High,
}

impl Class {
    /// Returns the name in job files.
    pub fn name(self) -> &'static str {
        match self {
            Class::Low => "low",
            Class::Normal => "normal",
            Class::High => "high",
        }
    }
}

/// A job that satisfies all rules of a job file. Later versions read its saved form; missing fields have their default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default = "Job::unnamed")]
pub struct Job {
    /// Name of the job: letters, digits, `.`, `_` and `-`; unique among the jobs of a framework that have not ended.
    pub name: String,
    /// Stages in an order in which each follows those that it waits for; their index identifies them.
    pub stages: Vec<Stage>,
    /// Directory in which stages write their outputs, the same on all agents. Without one, outputs stay in the
    /// sandboxes.
    pub shared: Option<String>,
    /// Outputs that stay in the shared directory once the job has ended.
    pub keep: Keep,
    /// Priority class of the job.
    pub priority: Class,
    /// Time from the submission in which the job should finish, for the order by deadlines.
    #[serde(with = "seconds::optional")]
    pub deadline: Option<Duration>,
    /// Weight of the job's share against other jobs; above 0.
    pub weight: f64,
}

impl Job {
    /// Returns the defaults of fields that an older version did not save. Readers must check that the job has a name.
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

    /// Returns the number of tasks of each stage, if all of them are known before a task runs: no stage has input files
    /// or chooses its sizes while it runs.
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
                    // Sources precede their readers.
                    Grouping::Task => counts.get(source(input)?)?.div_ceil(input.size.max(1)),
                    Grouping::Partition => self.stages.get(source(input)?)?.partitions?,
                },
            });
        }
        Some(counts)
    }

    /// Returns the index of the stage with this name.
    pub fn stage(&self, name: &str) -> Option<usize> {
        self.stages.iter().position(|stage| stage.name == name)
    }
}

/// A stage of a job: many tasks of one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default = "Stage::unnamed")]
pub struct Stage {
    /// Name of the stage: letters, digits, `_` and `-`; unique in its job.
    pub name: String,
    /// Indices of the stages that must have finished first, ascending; those of the input are among them.
    pub after: Vec<usize>,
    /// Program that each task runs.
    pub run: Run,
    /// Resources that each task needs.
    pub need: Need,
    /// Environment variables of each task, in addition to those that the framework sets.
    pub env: BTreeMap<String, String>,
    /// Files that are fetched into each sandbox.
    pub uris: Vec<Uri>,
    /// User that the tasks run as; `None` for the framework's.
    pub user: Option<String>,
    /// Container image, as Docker names it.
    pub image: Option<String>,
    /// Containerizer that runs the image.
    pub containerizer: Containerizer,
    /// Constraints on the agents of the stage's tasks; none of them concerns other tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Number of times that a failed task is tried again.
    pub retries: u32,
    /// Delay before a failed task is tried again.
    pub restart: Restart,
    /// Time after which a running task is killed and has failed; `None` for no limit.
    #[serde(with = "seconds::optional")]
    pub time_limit: Option<Duration>,
    /// Input that the stage's tasks divide among themselves.
    pub input: Input,
    /// Whether a task receives its part of the input files as standard input.
    pub stdin: bool,
    /// Files that each task writes, relative to its output directory; with partitions each contains `{partition}`.
    pub outputs: Vec<String>,
    /// Number of partitions of each output, for readers that take the same partition of all tasks.
    pub partitions: Option<u32>,
    /// Limits of the approximation; `None` if no task may be dropped.
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

    /// Returns whether a task's part may consist of several files. Where files are split, that is only for programs
    /// that read their part from standard input and do not ask for its file and bytes.
    pub fn spans_files(&self) -> bool {
        match &self.input {
            Input::Files(files) => files.by == SplitUnit::Files || (self.stdin && !template::names_bytes(&self.run)),
            Input::Tasks(_) | Input::Range(_) | Input::Stages(_) => false,
        }
    }

    /// Returns whether the stage's tasks need the framework's runner, which fetches inputs and publishes outputs.
    pub fn needs_runner(&self) -> bool {
        let reads = matches!(self.input, Input::Files(_) | Input::Stages(_));
        let counts = self.approximate.as_ref().is_some_and(|a| a.value.is_some());
        reads || self.stdin || !self.outputs.is_empty() || counts
    }
}

#[cfg(test)]
mod tests;
