//! Classifies the end of a task for its job, and kills tasks that no job needs.

use std::time::Duration;

use base::Time;
use sdk::v1::{TaskState, TaskStatus};
use sdk::{Calls, is_terminal};

/// Time for which the agent of a task may be unreachable before the task is replaced.
pub const UNREACHABLE_MAX: Duration = Duration::from_secs(60);

/// Outcome of a task that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The task finished its work.
    Finished,
    /// The task failed and may be tried again.
    Failed,
    /// The task failed and would fail in the same way again.
    FailedPermanently,
    /// The task ended for a reason outside of it, such as a lost agent.
    Lost,
}

impl End {
    /// Returns the outcome for the last state of a task.
    pub fn of(state: TaskState) -> End {
        match state {
            TaskState::TaskFinished => End::Finished,
            TaskState::TaskError => End::FailedPermanently,
            TaskState::TaskFailed | TaskState::TaskKilled => End::Failed,
            _ => End::Lost,
        }
    }
}

/// Handles a status update of a task that has not ended although it was replaced, or its job was removed.
///
/// A kill of a task on an unreachable agent is answered with the task's state. So only reachable tasks are killed; the
/// session repeats the kill, and the master does when the agent returns.
pub fn kill_unneeded(status: &TaskStatus, now: Time, calls: &mut Calls) {
    let id = &status.task_id.value;
    match status.state() {
        // The master does not know the agent any more: no further update will arrive.
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

/// Returns the state and the message of an update as text.
pub fn state_and_message(status: &TaskStatus) -> String {
    match status.message.as_deref() {
        Some(message) if !message.is_empty() => format!("{}: {message}", status.state().as_str_name()),
        _ => status.state().as_str_name().to_owned(),
    }
}
