//! State of a framework on an agent: its info, its scheduler's pid, and its executors.
//!
//! The agent keeps a framework only while it has executors; afterwards the framework is completed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::{ExecutorId, FrameworkId, Pid, TaskId};
use protos::mesos as pb;

use super::executor::Executor;
use super::launch::Launch;

/// Whether a framework may still launch tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameworkState {
    /// The framework may launch tasks.
    Running,
    /// The framework's executors are being shut down.
    Terminating,
}

/// A framework on an agent.
#[derive(Clone, Debug)]
pub struct Framework {
    /// Id of the framework.
    pub id: FrameworkId,
    /// `FrameworkInfo` of the scheduler.
    pub info: Arc<pb::FrameworkInfo>,
    /// Pid of the scheduler driver; `None` for an HTTP framework.
    pub pid: Option<Pid>,
    /// Whether the framework may still launch tasks.
    pub state: FrameworkState,
    /// Executors of the framework, until their last update is acknowledged.
    pub executors: BTreeMap<ExecutorId, Arc<Executor>>,
    /// Completed executors, oldest first. Shared, because a framework is copied while a snapshot exists.
    pub completed_executors: Arc<VecDeque<Arc<Executor>>>,
    /// Command tasks that wait for the end of an earlier task's executor with the same id.
    pub(crate) waiting: Vec<Launch>,
}

impl Framework {
    pub(crate) fn new(id: FrameworkId, info: Arc<pb::FrameworkInfo>, pid: Option<Pid>) -> Framework {
        Framework {
            id,
            info,
            pid,
            state: FrameworkState::Running,
            executors: BTreeMap::new(),
            completed_executors: Arc::default(),
            waiting: Vec::new(),
        }
    }

    /// Returns whether the framework's executors and tasks survive a restart of the agent.
    pub fn checkpoints(&self) -> bool {
        self.info.checkpoint()
    }

    /// Returns the executor that has this task, in any state but completed.
    pub fn executor_of(&self, task: &TaskId) -> Option<&Arc<Executor>> {
        self.executors.values().find(|executor| executor.has_task(task))
    }
}
