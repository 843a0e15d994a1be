//! The specification of a task for its runner: the program, its part of the input, the outputs that it reads of other
//! stages, and those that it must write.
//!
//! The scheduler writes it into the task's environment; the runner (feature `service`) carries it out.

#[cfg(feature = "service")]
mod failed;
#[cfg(feature = "service")]
mod fetch;
#[cfg(feature = "service")]
mod framework;
#[cfg(feature = "service")]
mod inputs;
#[cfg(feature = "service")]
mod publish;
#[cfg(feature = "service")]
mod run;

#[cfg(feature = "service")]
pub use run::run;

use jobs::Run;
use serde::{Deserialize, Serialize};

use crate::split::Extent;

/// Name of the environment variable that contains a [`Spec`].
pub const VARIABLE: &str = "TEPUI_TASK";
/// Directory in the sandbox for outputs of other stages.
pub const INPUT: &str = "input";
/// Directory in the sandbox for the task's own outputs, if they stay there.
pub const OUTPUT: &str = "output";
/// Name of the manifest: the list of a task's outputs in their directory, with lengths and checksums.
pub const MANIFEST: &str = ".tepui-outputs";

/// The reason of a runner's failure that is not the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An input file has vanished or is shorter than it was.
    Input,
    /// An output is missing, although the program succeeded.
    Output,
    /// An output of another stage is not available; its task runs again.
    Source,
    /// The disk is full, or outputs cannot be published.
    Storage,
    /// The framework does not answer.
    Framework,
}

impl Fault {
    const ALL: [Fault; 5] = [Fault::Input, Fault::Output, Fault::Source, Fault::Storage, Fault::Framework];

    /// Returns the exit code of the runner. A program that exits with one of these codes is mistaken for the runner;
    /// programs hardly use 240 and above.
    pub fn code(self) -> u8 {
        match self {
            Fault::Input => 240,
            Fault::Output => 241,
            Fault::Source => 242,
            Fault::Storage => 243,
            Fault::Framework => 244,
        }
    }

    /// Returns the fault by the message of a failed task, which ends with the exit code.
    pub fn of_message(message: &str) -> Option<Fault> {
        let digits = message.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?;
        let code: u8 = digits.parse().ok()?;
        Fault::ALL.into_iter().find(|fault| fault.code() == code)
    }

    /// Returns the reason as text.
    pub fn what(self) -> &'static str {
        match self {
            Fault::Input => "an input file has vanished or has changed",
            Fault::Output => "an output is missing, although the program has succeeded",
            Fault::Source => "an output of another stage cannot be read",
            Fault::Storage => "its outputs cannot be written or published",
            Fault::Framework => "the framework did not answer",
        }
    }
}

/// The specification of a task for its runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Id of the task.
    pub id: String,
    /// Number of the task in its stage.
    pub index: u32,
    /// Number of the attempt.
    pub attempt: u32,
    /// Program to run.
    pub run: Run,
    /// Files and ranges of the task's part of the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extents: Vec<Extent>,
    /// Outputs of other stages that the task reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    /// Whether the program reads the task's part as its standard input.
    #[serde(default)]
    pub stdin: bool,
    /// Whether the part consists of lines: a file that does not end with a newline gets one before the next file.
    #[serde(default)]
    pub lines: bool,
    /// Outputs that the program must write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Number of partitions of each output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// Directory for the stage's outputs, if all agents share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Output whose content is a number that is reported as the task's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Address of the framework's API.
    pub api: String,
}

/// The outputs of other stages that a task reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// Outputs in directories that all agents share; empty where outputs are in sandboxes, whose locations the
    /// framework knows.
    pub shared: Vec<SharedSource>,
    /// Partition that is read; `None` for all of each output.
    pub partition: Option<u32>,
}

/// Outputs of some tasks of a stage in a shared directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedSource {
    /// Name of the stage.
    pub stage: String,
    /// Directory of the stage.
    pub directory: String,
    /// Number of the first task.
    pub first: u32,
    /// Number of tasks.
    pub count: u32,
    /// Numbers of the tasks among them that were dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<u32>,
}

/// The outputs of one task in its sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSource {
    /// Name of the stage.
    pub stage: String,
    /// Index of the task in its stage.
    pub index: u32,
    /// Attempt that has written the outputs.
    pub attempt: u32,
    /// Address of the agent's API as `host:port`.
    pub agent: String,
    /// Path of the sandbox in the agent's `/files`.
    pub path: String,
}

/// The report of a runner to the framework.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// Outputs of other tasks that cannot be read.
    pub missing: Vec<Missing>,
    /// Value of the task.
    pub value: Option<f64>,
    /// Description of a failure, in words.
    pub message: String,
}

/// The outputs of a task that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Name of the stage.
    pub stage: String,
    /// Index of the task in its stage.
    pub index: u32,
    /// Attempt that has written the outputs, if it is known.
    #[serde(default)]
    pub attempt: Option<u32>,
}

/// A published output, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Name of the file, relative to the output directory.
    pub name: String,
    /// Name of the output in the job file.
    pub output: String,
    /// Number of the partition.
    #[serde(default)]
    pub partition: Option<u32>,
    /// Length of the file in bytes.
    pub length: u64,
    /// CRC-32C of the file.
    pub checksum: u32,
}

/// Returns the directory of a stage's outputs, below that of its job.
pub fn stage_directory(shared: &str, job: &str, stage: &str) -> String {
    format!("{shared}/{job}/{stage}")
}

/// Returns the directory that an attempt writes into until its outputs are published.
pub fn attempt_directory(directory: &str, index: u32, attempt: u32) -> String {
    format!("{directory}/.tepui-{index}.{attempt}")
}

/// Returns the kind and the task of an entry in a stage's directory, by its name; `None` for names that no runner uses.
pub fn entry_of(name: &str) -> Option<Entry> {
    // The number must be written as runners do, without a sign and leading zeros.
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
    match name.strip_prefix(".tepui-") {
        None => number(name).map(Entry::Published),
        Some(attempt) => {
            let (index, rest) = attempt.split_once('.')?;
            (rest == DAMAGED || number(rest).is_some()).then_some(Entry::Attempt(number(index)?))
        }
    }
}

/// Suffix of the name of damaged outputs until they are removed.
const DAMAGED: &str = "damaged";

/// An entry of a stage's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Published outputs of the task with this number.
    Published(u32),
    /// Unpublished files of an attempt of the task with this number.
    Attempt(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_known_by_their_names() {
        let attempt = attempt_directory("", 3, 12);
        assert_eq!(entry_of(&attempt[1..]), Some(Entry::Attempt(3)));
        assert_eq!(entry_of(".tepui-3.damaged"), Some(Entry::Attempt(3)));
        assert_eq!(entry_of("17"), Some(Entry::Published(17)));
        for name in ["", "017", "+1", "1.2", "x", ".tepui-", ".tepui-1", ".tepui-1.", ".tepui-1.x", ".tepui-01.1", ".1"]
        {
            assert_eq!(entry_of(name), None, "{name}");
        }
    }

    #[test]
    fn the_runner_is_known_by_its_exit_code() {
        assert_eq!(Fault::of_message("TASK_FAILED: Command exited with status 242"), Some(Fault::Source));
        for message in ["", "exited with status 1", "terminated with signal 9", "2420", "status 300"] {
            assert_eq!(Fault::of_message(message), None, "{message}");
        }
        assert_eq!(Fault::ALL.map(Fault::code), [240, 241, 242, 243, 244]);
    }
}
