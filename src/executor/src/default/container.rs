//! One task of a pod and the container it runs in.
//!
//! Only what is known of it; what happens to it is decided in `life.rs`.

use std::time::Instant;

use containers::WaitStatus;

use crate::checks::Checks;
use crate::exchange::Answer;
use crate::kill::Escalation;
use crate::messages::{AgentResponse, ContainerId, Reason, Task, TaskState, TaskStatus, Waited};

/// State of the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The launch call has not been answered.
    Launching,
    /// It runs, as far as is known.
    Running,
    /// Its terminal update has been made.
    Ended,
}

/// See the top of the file.
#[derive(Debug)]
pub(super) struct TaskContainer {
    pub(super) task: Task,
    /// The task's whole message.
    pub(super) bytes: Vec<u8>,
    pub(super) id: ContainerId,
    /// Which LAUNCH_GROUP it came with.
    pub(super) group: usize,
    pub(super) stage: Stage,
    /// When to repeat a launch or wait call that had no result.
    pub(super) again_at: Option<Instant>,
    pub(super) escalation: Option<Escalation>,
    /// The signal that the agent still has to be asked for, and when.
    pub(super) signal: Option<(i32, Instant)>,
    /// When its `max_completion_time` is over.
    pub(super) complete_by: Option<Instant>,
    pub(super) overdue: bool,
    pub(super) checks: Checks,
    /// Last result of the health check.
    pub(super) healthy: Option<bool>,
}

impl TaskContainer {
    /// A task that is about to be launched.
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

/// An unreadable response counts as one without a status.
fn read(answer: &Answer) -> Waited {
    let response = <AgentResponse as prost::Message>::decode(answer.body.as_slice()).unwrap_or_default();
    response.wait_nested_container.unwrap_or_default()
}
