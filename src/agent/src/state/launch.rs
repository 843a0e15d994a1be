//! A launch that the master has accepted, and why one is dropped.

use protos::mesos::{ExecutorInfo, TaskState, task_status::Reason};

use super::executor::Queued;

/// A launch on its way to an executor.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The executor to launch.
    pub(crate) executor: ExecutorInfo,
    /// Whether the agent made it up for a command task.
    pub(crate) made_up: bool,
    /// The task or the group.
    pub(crate) queued: Queued,
    /// Whether the master believes that a new executor is needed; none if it does not say.
    pub(crate) expects_new: Option<bool>,
}

/// Why a launch is dropped.
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
