//! What the runner of a task gets: the program, its part of the input, what it reads of other stages, and the
//! outputs that it must leave.
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

/// The variable that a [`Spec`] stands in.
pub const VARIABLE: &str = "TEPUI_TASK";
/// The directory in the sandbox where outputs of other stages are.
pub const INPUT: &str = "input";
/// The directory in the sandbox where outputs are left that stay there.
pub const OUTPUT: &str = "output";
/// The list of a task's outputs beside them, with lengths and checksums.
pub const MANIFEST: &str = ".tepui-outputs";

/// How the runner ends when it is not the program that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An input file has vanished or is shorter than it was.
    Input,
    /// An output is missing, although the program succeeded.
    Output,
    /// An output of another stage is not available; it is made again.
    Source,
    /// There is no room, or outputs cannot be published.
    Room,
    /// The framework gives no answer.
    Framework,
}

impl Fault {
    const ALL: [Fault; 5] = [Fault::Input, Fault::Output, Fault::Source, Fault::Room, Fault::Framework];

    /// The exit code of the runner. A program that ends with one of these is taken for the runner; 240 on are hardly
    /// used by programs.
    pub fn code(self) -> u8 {
        match self {
            Fault::Input => 240,
            Fault::Output => 241,
            Fault::Source => 242,
            Fault::Room => 243,
            Fault::Framework => 244,
        }
    }

    /// By the message of a task that has failed, which ends with the exit code.
    pub fn of_message(message: &str) -> Option<Fault> {
        let digits = message.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?;
        let code: u8 = digits.parse().ok()?;
        Fault::ALL.into_iter().find(|fault| fault.code() == code)
    }

    /// The reason as text.
    pub fn what(self) -> &'static str {
        match self {
            Fault::Input => "an input file has vanished or has changed",
            Fault::Output => "an output is missing, although the program has succeeded",
            Fault::Source => "an output of another stage cannot be read",
            Fault::Room => "its outputs cannot be written or published",
            Fault::Framework => "the framework gave no answer",
        }
    }
}

/// What a task is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The task's id.
    pub id: String,
    /// Its number in its stage.
    pub index: u32,
    /// Which attempt this is.
    pub attempt: u32,
    /// The program.
    pub run: Run,
    /// Its part of input files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extents: Vec<Extent>,
    /// What it reads of other stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    /// Whether its part is its standard input.
    #[serde(default)]
    pub stdin: bool,
    /// Whether its part is lines: a file that does not end with a line end gets one before the next file.
    #[serde(default)]
    pub lines: bool,
    /// The outputs that it must leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// The number of partitions of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// The stage's directory for outputs, if there is one that all agents share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The output that has a number, to be reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The framework's API.
    pub api: String,
}

/// What a task reads of other stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// Directories that all agents share; empty where outputs are in sandboxes, which the framework knows.
    pub shared: Vec<SharedSource>,
    /// The partition that is read; without one all of each output.
    pub partition: Option<u32>,
}

/// Outputs of some tasks of a stage in a shared directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedSource {
    /// The stage.
    pub stage: String,
    /// Its directory.
    pub directory: String,
    /// The first task.
    pub first: u32,
    /// How many tasks.
    pub count: u32,
    /// Those of them that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<u32>,
}

/// The outputs of one task, in its sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSource {
    /// The stage.
    pub stage: String,
    /// The task's number.
    pub index: u32,
    /// The attempt that has left them.
    pub attempt: u32,
    /// The agent's API as `host:port`.
    pub agent: String,
    /// The path of the sandbox in the agent's `/files`.
    pub path: String,
}

/// What the runner reports to the framework.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// Outputs of other tasks that cannot be read.
    pub missing: Vec<Missing>,
    /// The task's value.
    pub value: Option<f64>,
    /// What happened, in words.
    pub message: String,
}

/// Outputs that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The stage.
    pub stage: String,
    /// The task's number.
    pub index: u32,
    /// The attempt that left them, if it is known.
    #[serde(default)]
    pub attempt: Option<u32>,
}

/// A published output, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The file's name, relative to the output directory.
    pub name: String,
    /// The name of the output in the job file.
    pub output: String,
    /// The number of the partition.
    #[serde(default)]
    pub partition: Option<u32>,
    /// Its length in bytes.
    pub length: u64,
    /// Its CRC-32C.
    pub checksum: u32,
}

/// The directory of a stage's outputs, below that of its job.
pub fn stage_directory(shared: &str, job: &str, stage: &str) -> String {
    format!("{shared}/{job}/{stage}")
}

/// The directory that an attempt writes into until its outputs are published.
pub fn attempt_directory(directory: &str, index: u32, attempt: u32) -> String {
    format!("{directory}/.tepui-{index}.{attempt}")
}

/// Which task an entry of a stage's directory is of, by its name; none for names that no runner gives.
pub fn entry_of(name: &str) -> Option<Entry> {
    // As it is written: no signs, no zeros before it.
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
    match name.strip_prefix(".tepui-") {
        None => number(name).map(Entry::Published),
        Some(attempt) => {
            let (index, rest) = attempt.split_once('.')?;
            (rest == DAMAGED || number(rest).is_some()).then_some(Entry::Attempt(number(index)?))
        }
    }
}

/// The end of the name of outputs that were damaged, until they are removed.
const DAMAGED: &str = "damaged";

/// An entry of a stage's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The outputs of the task with this number.
    Published(u32),
    /// What an attempt of the task with this number has left and not published.
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
