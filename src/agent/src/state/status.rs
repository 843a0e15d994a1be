//! Properties of task states, and status updates that the agent itself makes.

use base::{AgentId, ExecutorId, FrameworkId, Time};
use protos::mesos::{self as pb, TaskState, framework_info::capability::Type, internal::StatusUpdate};

/// Returns whether a task in this state has ended (TSK-02).
pub fn is_terminal(state: i32) -> bool {
    use TaskState::*;
    matches!(
        TaskState::try_from(state),
        Ok(TaskFinished | TaskFailed | TaskKilled | TaskLost | TaskError | TaskDropped | TaskGone | TaskGoneByOperator)
    )
}

/// Returns whether a framework has this capability.
pub(crate) fn is_capable(info: &pb::FrameworkInfo, capability: Type) -> bool {
    info.capabilities.iter().any(|c| c.r#type == Some(capability as i32))
}

/// Returns the state that reports a loss to a framework: `exact` if it is PARTITION_AWARE, else TASK_LOST.
pub(crate) fn loss_state(info: &pb::FrameworkInfo, exact: TaskState) -> TaskState {
    if is_capable(info, Type::PartitionAware) { exact } else { TaskState::TaskLost }
}

/// State, reason and message of an update that the agent itself makes.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedStatus {
    pub(crate) state: TaskState,
    pub(crate) reason: pb::task_status::Reason,
    pub(crate) message: String,
}

/// Returns a status update that the agent itself makes.
pub(crate) fn update_of(
    generated: &GeneratedStatus,
    framework: &FrameworkId,
    executor: Option<&ExecutorId>,
    agent: Option<&AgentId>,
    task: &str,
    uuid: [u8; 16],
    now: Time,
) -> StatusUpdate {
    let executor_id = executor.map(|id| pb::ExecutorId { value: id.into() });
    let slave_id = agent.map(|id| pb::SlaveId { value: id.into() });
    let timestamp = now.as_secs_f64();
    StatusUpdate {
        framework_id: pb::FrameworkId { value: framework.into() },
        executor_id: executor_id.clone(),
        slave_id: slave_id.clone(),
        status: pb::TaskStatus {
            task_id: pb::TaskId { value: task.into() },
            state: generated.state as i32,
            message: Some(generated.message.clone()),
            source: Some(pb::task_status::Source::Slave as i32),
            reason: Some(generated.reason as i32),
            slave_id,
            executor_id,
            timestamp: Some(timestamp),
            uuid: Some(uuid.to_vec()),
            ..pb::TaskStatus::default()
        },
        timestamp,
        uuid: Some(uuid.to_vec()),
        latest_state: None,
    }
}
