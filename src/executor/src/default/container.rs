//! One task of a pod, and the container it runs in.
//!
//! It only records state; `life.rs` decides.

use std::time::Instant;

use containers::WaitStatus;

use crate::checks::Checks;
use crate::exchange::Answer;
use crate::kill::Escalation;
use crate::messages::{AgentResponse, ContainerId, Reason, Task, TaskState, TaskStatus, Waited};

/// Stage of a task's container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The launch call was not answered yet.
    Launching,
    /// The container runs, as far as is known.
    Running,
    /// The terminal update was made.
    Ended,
}

/// A task of a pod, and the container it runs in.
#[derive(Debug)]
pub(super) struct TaskContainer {
    pub(super) task: Task,
    /// Whole message of the task, encoded.
    pub(super) bytes: Vec<u8>,
    pub(super) id: ContainerId,
    /// Number of the LAUNCH_GROUP with the task.
    pub(super) group: usize,
    pub(super) stage: Stage,
    /// Time at which a launch or wait call without a result is repeated.
    pub(super) again_at: Option<Instant>,
    pub(super) escalation: Option<Escalation>,
    /// Signal that the agent must still be asked to send, and the time for that.
    pub(super) signal: Option<(i32, Instant)>,
    /// Time at which the task's `max_completion_time` is over.
    pub(super) complete_by: Option<Instant>,
    pub(super) overdue: bool,
    pub(super) checks: Checks,
    /// Last result of the health check.
    pub(super) healthy: Option<bool>,
}

impl TaskContainer {
    /// Creates the state of a task that is about to be launched.
    pub(super) fn new(task: Task, bytes: Vec<u8>, id: ContainerId, group: usize, checks: Checks) -> TaskContainer {
        TaskContainer {
            task,
            bytes,
            id,
            group,
            stage: Stage::Launching,
            again_at: None,
            escalation: None,
            signal: None,
            complete_by: None,
            overdue: false,
            checks,
            healthy: None,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.stage != Stage::Ended
    }

    /// Fills in the terminal status from the response to WAIT.
    pub(super) fn terminal(&self, answer: &Answer, status: &mut TaskStatus) {
        let killed = self.escalation.is_some() && !self.overdue;
        let waited = if answer.status == 200 { read(answer) } else { Waited::default() };
        let ended = waited.exit_status.map(WaitStatus::from_raw);
        let state = match ended {
            _ if killed => TaskState::TaskKilled,
            Some(ended) if ended.success() && !self.overdue => TaskState::TaskFinished,
            _ => TaskState::TaskFailed,
        };
        let words =
            ended.map_or("Unable to retrieve exit status of child container".to_owned(), |e| format!("Command {e}"));
        status.state = waited.state.unwrap_or(state as i32);
        status.reason = waited.reason.or(self.overdue.then_some(Reason::MaxCompletionTimeReached as i32));
        status.limitation = waited.limitation;
        status.message = Some(match waited.message {
            Some(more) => format!("{words}: {more}"),
            None => words,
        });
    }
}

/// Parses the response to WAIT. An unreadable one counts as one without a status.
fn read(answer: &Answer) -> Waited {
    let response = <AgentResponse as prost::Message>::decode(answer.body.as_slice()).unwrap_or_default();
    response.wait_nested_container.unwrap_or_default()
}
