//! A framework as an agent knows it: its info, where its scheduler is, and its executors here.
//!
//! The agent keeps a framework only while it has executors; afterwards it is history.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::{ExecutorId, FrameworkId, Pid, TaskId};
use protos::mesos as pb;

use super::executor::Executor;
use super::launch::Launch;

/// Whether a framework may still launch tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameworkState {
    /// It may.
    Running,
    /// Its executors are being shut down.
    Terminating,
}

/// A framework as an agent knows it.
#[derive(Clone, Debug)]
pub struct Framework {
    /// Its id.
    pub id: FrameworkId,
    /// Its scheduler's `FrameworkInfo`.
    pub info: Arc<pb::FrameworkInfo>,
    /// Its driver; none for an HTTP framework.
    pub pid: Option<Pid>,
    /// Whether it may still launch tasks.
    pub state: FrameworkState,
    /// Its executors, until their last update is acknowledged.
    pub executors: BTreeMap<ExecutorId, Arc<Executor>>,
    /// Completed executors, oldest first. Shared, because a framework is copied while a snapshot exists.
    pub completed_executors: Arc<VecDeque<Arc<Executor>>>,
    /// Command tasks that wait until the executor of an earlier task with their id is gone.
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

    /// Whether its executors and tasks are to survive the agent.
    pub fn checkpoints(&self) -> bool {
        self.info.checkpoint()
    }

    /// The executor that has this task, in any state but completed.
    pub fn executor_of(&self, task: &TaskId) -> Option<&Arc<Executor>> {
        self.executors.values().find(|executor| executor.has_task(task))
    }
}
