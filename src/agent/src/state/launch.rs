//! A launch that the master has accepted, and the reason why one is dropped.

use protos::mesos::{ExecutorInfo, TaskState, task_status::Reason};

use super::executor::Queued;

/// A launch that is on its way to an executor.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// Executor of the tasks.
    pub(crate) executor: ExecutorInfo,
    /// Whether the agent created the executor for a command task.
    pub(crate) generated_for_command_task: bool,
    /// Task or task group to launch.
    pub(crate) queued: Queued,
    /// Whether the master expects that a new executor is needed; `None` if the message does not say.
    pub(crate) expects_new: Option<bool>,
}

/// State, reason and message of the tasks of a launch that is dropped.
pub(crate) struct LaunchError {
    pub(crate) state: TaskState,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl LaunchError {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> LaunchError {
        LaunchError { state: TaskState::TaskDropped, reason, message: message.into() }
    }
}
