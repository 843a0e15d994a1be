//! A task as the master knows it.
//!
//! It does not decide what an update means; see `tasks/`.

use base::TaskId;
use protos::mesos::{self, TaskState};
use resources::Resources;

use super::{AgentKey, FrameworkKey};

/// A task: what is told of it, and what it holds.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its id, as in `proto`.
    pub id: TaskId,
    /// Whose it is.
    pub framework: FrameworkKey,
    /// Where it runs or ran.
    pub agent: AgentKey,
    /// What is told of it. `state` is the newest known state, `status_update_state` the one last forwarded.
    pub proto: mesos::Task,
    /// What it takes, without its executor's; allocated.
    pub resources: Resources,
    /// Whether its resources were given back, because its state is terminal.
    pub released: bool,
}

impl Task {
    /// The newest known state.
    pub fn state(&self) -> TaskState {
        self.proto.state()
    }
}

/// Whether a task in that state does nothing any more (mesos-features.md TSK-02).
pub(crate) fn is_terminal(state: TaskState) -> bool {
    use TaskState as S;
    match state {
        S::TaskFinished | S::TaskFailed | S::TaskKilled | S::TaskLost => true,
        S::TaskError | S::TaskDropped | S::TaskGone | S::TaskGoneByOperator => true,
        S::TaskStaging | S::TaskStarting | S::TaskRunning | S::TaskKilling => false,
        S::TaskUnreachable | S::TaskUnknown => false,
    }
}
