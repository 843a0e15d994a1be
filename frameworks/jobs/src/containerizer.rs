//! Which containerizer of an agent runs a task: its field in job files, and how commands are written for it.

use sdk::v1::CommandInfo;
use serde::{Deserialize, Serialize};

use crate::file::Fields;

/// Which containerizer of the agent runs a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Containerizer {
    /// The agent's own, which runs images without a daemon.
    #[default]
    Mesos,
    /// Docker's daemon.
    Docker,
}

impl Containerizer {
    /// The field `containerizer` of something that has an image, or has none.
    pub fn read(fields: &mut Fields<'_, '_>, has_image: bool) -> Containerizer {
        match fields.text("containerizer") {
            None | Some(("mesos", _)) => Containerizer::Mesos,
            Some(("docker", at)) => {
                if !has_image {
                    fields.faults.add(at, "containerizer = \"docker\" needs an image");
                }
                Containerizer::Docker
            }
            Some((text, at)) => {
                fields.faults.add(at, format!("containerizer must be \"mesos\" or \"docker\", and this is \"{text}\""));
                Containerizer::Mesos
            }
        }
    }

    /// The command as the containerizer wants it. Docker's takes `value` and all of `arguments` as the words after the
    /// image, where that of Mesos takes `value` as the program and `arguments` as its `argv`.
    pub fn command(self, mut command: CommandInfo) -> CommandInfo {
        if self == Containerizer::Docker && command.value.is_some() && !command.arguments.is_empty() {
            command.arguments.remove(0);
        }
        command
    }
}
