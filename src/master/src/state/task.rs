//! State of a task in the master.
//!
//! It does not decide what an update means; see `tasks/`.

use std::sync::Arc;

use base::{TaskId, Text};
use protos::mesos::{self, TaskState};
use resources::{Format, Resources};

use super::{AgentKey, FrameworkKey};

/// A task: its message, and its resources. A master has very many of them, so nothing is stored twice.
#[derive(Clone, Debug)]
pub struct Task {
    /// Id of the task, as in `proto`.
    pub id: TaskId,
    /// Framework of the task.
    pub framework: FrameworkKey,
    /// Agent on which the task runs or ran.
    pub agent: AgentKey,
    /// Most of the task's message; [`Task::to_proto`] returns all of it. `state` is the newest known state,
    /// `status_update_state` the one last forwarded. It lacks the resources, and in its statuses their data and the
    /// task's own ids.
    pub proto: mesos::Task,
    /// Allocated resources of the task, without its executor's. Tasks with equal resources share them.
    pub resources: Arc<Resources>,
    /// Whether the resources were released, because the state is terminal.
    pub released: bool,
}

impl Task {
    /// Returns the newest known state.
    pub fn state(&self) -> TaskState {
        self.proto.state()
    }

    /// Returns the state that was last forwarded, or the newest if none was. It is the answer to reconciliation: the
    /// newest state may be terminal while the agent still has earlier updates to send.
    pub fn forwarded_state(&self) -> TaskState {
        let forwarded = self.proto.status_update_state.and_then(|state| TaskState::try_from(state).ok());
        forwarded.unwrap_or(self.state())
    }

    /// Returns the complete message.
    pub fn to_proto(&self) -> mesos::Task {
        let mut whole = self.proto.clone();
        whole.resources = self.resources.to_proto(Format::PostRefinement);
        let executor = executor_of(&self.proto);
        for status in &mut whole.statuses {
            if status.task_id.value.is_empty() {
                status.task_id.clone_from(&self.proto.task_id);
            }
            if let Some(id) = status.slave_id.as_mut().filter(|id| id.value.is_empty()) {
                id.clone_from(&self.proto.slave_id);
            }
            if let Some(id) = status.executor_id.as_mut().filter(|id| id.value.is_empty()) {
                id.value = executor.clone();
            }
        }
        whole
    }
}

/// Removes the parts of a task's message that its row does not keep there.
pub(crate) fn drop_repetition(task: &mut mesos::Task) {
    task.resources = Vec::new();
    let mut statuses = std::mem::take(&mut task.statuses);
    statuses.iter_mut().for_each(|status| shorten(task, status));
    // A decoded list has space for several.
    statuses.shrink_to_fit();
    task.statuses = statuses;
}

/// Returns a status as its task's row keeps it.
pub(crate) fn kept_status(task: &mesos::Task, status: &mesos::TaskStatus) -> mesos::TaskStatus {
    // Field by field, since the data may be large, and every update is copied here.
    let mut kept = mesos::TaskStatus {
        task_id: status.task_id.clone(),
        state: status.state,
        message: status.message.clone(),
        source: status.source,
        reason: status.reason,
        data: None,
        slave_id: status.slave_id.clone(),
        executor_id: status.executor_id.clone(),
        timestamp: status.timestamp,
        uuid: status.uuid.clone(),
        healthy: status.healthy,
        check_status: status.check_status,
        labels: status.labels.clone(),
        container_status: status.container_status.clone(),
        unreachable_time: status.unreachable_time,
        limitation: status.limitation.clone(),
    };
    shorten(task, &mut kept);
    kept
}

/// Removes the data from a status, and the ids that its task has as well.
fn shorten(task: &mesos::Task, status: &mut mesos::TaskStatus) {
    fn clear(id: Option<&mut Text>, own: &Text) {
        if let Some(id) = id.filter(|id| *id == own) {
            id.clear();
        }
    }
    status.data = None;
    clear(Some(&mut status.task_id.value), &task.task_id.value);
    clear(status.slave_id.as_mut().map(|id| &mut id.value), &task.slave_id.value);
    clear(status.executor_id.as_mut().map(|id| &mut id.value), executor_of(task));
}

/// Returns the id of a task's executor; that of a command task is the task's id.
fn executor_of(task: &mesos::Task) -> &Text {
    task.executor_id.as_ref().map_or(&task.task_id.value, |id| &id.value)
}

/// Returns whether a task in that state has ended (TSK-02).
pub(crate) fn is_terminal(state: TaskState) -> bool {
    use TaskState as S;
    match state {
        S::TaskFinished | S::TaskFailed | S::TaskKilled | S::TaskLost => true,
        S::TaskError | S::TaskDropped | S::TaskGone | S::TaskGoneByOperator => true,
        S::TaskStaging | S::TaskStarting | S::TaskRunning | S::TaskKilling => false,
        S::TaskUnreachable | S::TaskUnknown => false,
    }
}
