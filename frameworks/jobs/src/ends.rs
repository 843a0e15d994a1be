//! What the end of a task means for its job, and what is done about tasks that no job wants.

use std::time::Duration;

use base::Time;
use sdk::v1::{TaskState, TaskStatus};
use sdk::{Calls, is_terminal};

/// After how long on an agent that does not answer a task is given up and replaced.
pub const UNREACHABLE_MAX: Duration = Duration::from_secs(60);

/// How a task's life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It did its work.
    Finished,
    /// It did not, and may be tried again.
    Failed,
    /// It will fail in the same way again.
    Hopeless,
    /// Through no fault of its own.
    Lost,
}

impl End {
    /// By the last state of the task.
    pub fn of(state: TaskState) -> End {
        match state {
            TaskState::TaskFinished => End::Finished,
            TaskState::TaskError => End::Hopeless,
            TaskState::TaskFailed | TaskState::TaskKilled => End::Failed,
            _ => End::Lost,
        }
    }
}

/// Handles an update of a task that was replaced, or whose job is gone, and that has not ended.
///
/// A kill of a task on an unreachable agent is answered with the task's state. So only reachable tasks are killed; the
/// session repeats the kill, and the master does when the agent returns.
pub fn unwanted(status: &TaskStatus, now: Time, calls: &mut Calls) {
    let id = &status.task_id.value;
    match status.state() {
        // The master does not know the agent any more: no update will follow.
        TaskState::TaskUnknown => calls.forget_task(id),
        TaskState::TaskUnreachable | TaskState::TaskKilling => {}
        state if is_terminal(state) => {}
        _ => {
            let entry = calls.tasks().get(id);
            let is_back = entry.is_some_and(|entry| entry.changed == now);
            if is_back || entry.is_none_or(|entry| entry.kill.is_none()) {
                calls.kill(id, None);
            }
        }
    }
}

/// The state and the message of an update, in words.
pub fn said(status: &TaskStatus) -> String {
    match status.message.as_deref() {
        Some(message) if !message.is_empty() => format!("{}: {message}", status.state().as_str_name()),
        _ => status.state().as_str_name().to_owned(),
    }
}
