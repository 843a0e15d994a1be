//! Statuses that the master generates: without a UUID, so that they are not acknowledged.

use base::Time;
use protos::mesos::internal::StatusUpdate;
use protos::mesos::task_status::{Reason, Source};
use protos::mesos::{self, TaskState};

use crate::state::{FrameworkCapabilities, Task};

/// Returns the state for a PARTITION_AWARE framework, or TASK_LOST for another one (TSK-04).
pub(crate) fn state_or_lost(state: TaskState, capabilities: FrameworkCapabilities) -> TaskState {
    match capabilities.partition_aware {
        true => state,
        false => TaskState::TaskLost,
    }
}

/// A task status that the master generates.
pub(crate) struct MasterStatus {
    pub task_id: mesos::TaskId,
    pub state: TaskState,
    pub reason: Option<Reason>,
    pub message: String,
    pub agent_id: Option<mesos::SlaveId>,
    pub executor_id: Option<mesos::ExecutorId>,
    pub unreachable_time: Option<mesos::TimeInfo>,
}

impl MasterStatus {
    /// Returns a status of a task that the master knows.
    pub(crate) fn of(task: &Task, state: TaskState, reason: Reason, message: impl Into<String>) -> MasterStatus {
        MasterStatus {
            task_id: task.proto.task_id.clone(),
            state,
            reason: Some(reason),
            message: message.into(),
            agent_id: Some(task.proto.slave_id.clone()),
            executor_id: task.proto.executor_id.clone(),
            unreachable_time: None,
        }
    }

    /// Returns the status as an update of a framework's task.
    pub(crate) fn into_update(self, framework_id: mesos::FrameworkId, now: Time) -> StatusUpdate {
        let timestamp = now.as_secs_f64();
        StatusUpdate {
            framework_id,
            executor_id: self.executor_id.clone(),
            slave_id: self.agent_id.clone(),
            timestamp,
            uuid: None,
            latest_state: None,
            status: mesos::TaskStatus {
                task_id: self.task_id,
                state: self.state as i32,
                message: Some(self.message),
                source: Some(Source::Master as i32),
                reason: self.reason.map(|reason| reason as i32),
                slave_id: self.agent_id,
                executor_id: self.executor_id,
                timestamp: Some(timestamp),
                unreachable_time: self.unreachable_time,
                ..Default::default()
            },
        }
    }
}
