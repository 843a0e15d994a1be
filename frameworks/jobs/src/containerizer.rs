//! The field `containerizer` of job files, and the form of commands for each containerizer.

use sdk::v1::CommandInfo;
use serde::{Deserialize, Serialize};

use crate::file::Fields;

/// The containerizer of the agent that runs a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Containerizer {
    /// The Mesos containerizer, which runs images without a daemon.
    #[default]
    Mesos,
    /// The Docker containerizer.
    Docker,
}

impl Containerizer {
    /// Parses the field `containerizer` of an item that has an image, or has none.
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

    /// Converts a command to the form of the containerizer. Docker takes `value` and all of `arguments` as the words
    /// after the image, where Mesos takes `value` as the program and `arguments` as its `argv`.
    pub fn command(self, mut command: CommandInfo) -> CommandInfo {
        if self == Containerizer::Docker && command.value.is_some() && !command.arguments.is_empty() {
            command.arguments.remove(0);
        }
        command
    }
}
