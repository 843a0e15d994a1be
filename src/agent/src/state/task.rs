//! Records of tasks: their creation, and the statuses in them.

use base::FrameworkId;
use protos::mesos as pb;

use super::executor::Executor;

/// Returns the record of a task that has just been launched.
pub(crate) fn task_of(info: &pb::TaskInfo, executor: &Executor) -> pb::Task {
    task_for(info, &executor.framework_id)
}

pub(crate) fn task_for(info: &pb::TaskInfo, framework: &FrameworkId) -> pb::Task {
    let framework = pb::FrameworkId { value: framework.into() };
    let executor = info.executor.as_ref().map(|executor| executor.executor_id.clone());
    pb::Task { resources: info.resources.clone(), ..pb::Task::staged(info, framework, executor) }
}

/// Adds a status to a task's record, without its data. Of consecutive statuses with the same state only the last one is
/// kept.
pub(crate) fn note_status(record: &mut pb::Task, status: &pb::TaskStatus) {
    record.state = status.state;
    if record.statuses.last().is_some_and(|last| last.state == status.state) {
        record.statuses.pop();
    }
    record.statuses.push(pb::TaskStatus { data: None, ..status.clone() });
}
