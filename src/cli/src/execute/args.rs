//! The flags of `tepui execute`: those of mesos-execute, with its names and defaults.

use clap::ArgAction;

use crate::connect::MasterArgs;

/// Flags of `tepui execute`. Values that are JSON may also be the path of a file that holds it.
#[derive(Debug, clap::Args)]
#[command(rename_all = "snake_case")]
pub struct Args {
    #[command(flatten)]
    pub(super) master: MasterArgs,

    /// The command to run
    #[arg(long, required_unless_present_any = ["task", "task_group", "docker_image"], conflicts_with_all = ["task", "task_group"])]
    pub(super) command: Option<String>,
    /// A whole TaskInfo as JSON, or the path of a file with it
    #[arg(long, conflicts_with = "task_group", value_name = "JSON")]
    pub(super) task: Option<String>,
    /// A whole TaskGroupInfo as JSON, or the path of a file with it: its tasks run together, all or none
    #[arg(long, value_name = "JSON")]
    pub(super) task_group: Option<String>,
    /// The name of the command
    #[arg(long, default_value = "tepui-execute")]
    pub(super) name: String,
    /// Whether the command is for /bin/sh; if not, its words are a program and its arguments
    #[arg(long, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) shell: bool,
    /// The same as --shell=false
    #[arg(long = "no-shell", hide = true)]
    pub(super) no_shell: bool,
    /// Environment variables as a JSON object, or the path of a file with it
    #[arg(long, value_name = "JSON")]
    pub(super) env: Option<String>,
    /// What the command needs
    #[arg(long, default_value = "cpus:1;mem:128")]
    pub(super) resources: String,
    /// Whether the command keeps running while its agent restarts
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) checkpoint: bool,
    /// The container image to run in
    #[arg(long, value_name = "IMAGE")]
    pub(super) docker_image: Option<String>,
    /// Containerizer: mesos or docker
    #[arg(long, default_value = "mesos", value_parser = ["mesos", "docker"])]
    pub(super) containerizer: String,
    /// Names of networks to join, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) networks: Vec<String>,
    /// Volumes as a JSON list of Volume, or the path of a file with it
    #[arg(long, value_name = "JSON")]
    pub(super) volumes: Option<String>,
    /// Resource limits as the JSON of RLimitInfo, or the path of a file with it
    #[arg(long, value_name = "JSON")]
    pub(super) rlimits: Option<String>,
    /// Linux capabilities of the command as the JSON of CapabilityInfo
    #[arg(long, value_name = "JSON")]
    pub(super) effective_capabilities: Option<String>,
    /// Linux capabilities that the command can ever have, as the JSON of CapabilityInfo
    #[arg(long, value_name = "JSON")]
    pub(super) bounding_capabilities: Option<String>,
    /// The role whose resources are used
    #[arg(long, default_value = "*")]
    pub(super) role: String,
    /// Capabilities of the framework, separated by commas, such as GPU_RESOURCES
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) framework_capabilities: Vec<String>,
    /// Wait for other agents if none of the current ones can run the work; without this, fail
    #[arg(long)]
    pub(super) wait: bool,
    /// Kill the task this long after it started, such as 30secs
    #[arg(long, value_name = "DURATION")]
    pub(super) kill_after: Option<String>,
    /// Whether a task on an unreachable agent may come back
    #[arg(long, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) partition_aware: bool,
    /// How calls and events are written: protobuf or json
    #[arg(long, default_value = "protobuf", value_parser = ["protobuf", "json"], value_name = "TYPE")]
    pub(super) content_type: String,
}

impl Args {
    /// Returns whether the command is for a shell.
    pub(super) fn is_shell(&self) -> bool {
        self.shell && !self.no_shell
    }
}
