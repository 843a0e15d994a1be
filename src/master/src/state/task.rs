//! A task as the master knows it.
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
    /// Its id, as in `proto`.
    pub id: TaskId,
    /// Its framework.
    pub framework: FrameworkKey,
    /// Where it runs or ran.
    pub agent: AgentKey,
    /// Most of its message: [`Task::to_proto`] is the whole. `state` is the newest known state, `status_update_state`
    /// the one last forwarded. It lacks the resources, and in its statuses their data and the task's own ids.
    pub proto: mesos::Task,
    /// What it takes, without its executor's; allocated. Tasks of a kind share it.
    pub resources: Arc<Resources>,
    /// Whether its resources were given back, because its state is terminal.
    pub released: bool,
}

impl Task {
    /// The newest known state.
    pub fn state(&self) -> TaskState {
        self.proto.state()
    }

    /// The state last forwarded, or the newest if none was: the answer to reconciliation. The newest one may be its
    /// end, and updates that its agent withholds until then come before it.
    pub fn forwarded_state(&self) -> TaskState {
        let forwarded = self.proto.status_update_state.and_then(|state| TaskState::try_from(state).ok());
        forwarded.unwrap_or(self.state())
    }

    /// The whole message.
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

/// Takes out of a message about a task what its row does not keep there.
pub(crate) fn drop_repetition(task: &mut mesos::Task) {
    task.resources = Vec::new();
    let mut statuses = std::mem::take(&mut task.statuses);
    statuses.iter_mut().for_each(|status| shorten(task, status));
    // A list that was read has room for several.
    statuses.shrink_to_fit();
    task.statuses = statuses;
}

/// A status as its task's row keeps it.
pub(crate) fn kept_status(task: &mesos::Task, status: &mesos::TaskStatus) -> mesos::TaskStatus {
    // Field by field, since the data may be large, and every update passes here.
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

/// Takes out of a status its data, and the ids that its task has as well.
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

/// The executor of a task; a command task's has the task's id.
fn executor_of(task: &mesos::Task) -> &Text {
    task.executor_id.as_ref().map_or(&task.task_id.value, |id| &id.value)
}

/// Whether a task in that state does nothing any more (TSK-02).
pub(crate) fn is_terminal(state: TaskState) -> bool {
    use TaskState as S;
    match state {
        S::TaskFinished | S::TaskFailed | S::TaskKilled | S::TaskLost => true,
        S::TaskError | S::TaskDropped | S::TaskGone | S::TaskGoneByOperator => true,
        S::TaskStaging | S::TaskStarting | S::TaskRunning | S::TaskKilling => false,
        S::TaskUnreachable | S::TaskUnknown => false,
    }
}
