//! A status changes what the master knows of a task (mesos-features.md TSK-05 to TSK-07, TSK-36).

use protos::mesos::internal::StatusUpdate;
use protos::mesos::task_status::{Reason, Source};
use protos::mesos::{self, TaskState};

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{FrameworkKey, TaskKey, is_terminal, kept_status};

/// How many statuses of a task are remembered: an executor may go to and fro between states for ever.
const MAX_STATUSES: usize = 64;

impl Master {
    /// Takes a status in: the newest state, the state last forwarded, the history. Resources go back with the first
    /// terminal state.
    pub(crate) fn update_task(
        &mut self,
        framework: FrameworkKey,
        task: TaskKey,
        update: &StatusUpdate,
        out: &mut Outbox,
    ) {
        let Some(row) = self.task_mut(framework, task) else { return };
        let before = row.state();
        let latest = update.latest_state.unwrap_or(update.status.state);
        if !is_terminal(before) {
            row.proto.state = latest;
        }
        let after = row.state();
        // A quick task may be known to have ended when its first update comes: each state is still told once.
        let told = row.proto.status_update_state;
        row.proto.status_update_state = Some(update.status.state);
        row.proto.status_update_uuid.clone_from(&update.uuid);
        let status = &update.status;
        remember(&mut row.proto, status);
        let (state, source, reason) = (status.state, status.source(), status.reason);
        if before != after || told != Some(state) || is_check(reason) {
            self.announce_task_updated(framework, task, status, after, out);
        }
        if is_terminal(after) && !is_terminal(before) {
            self.count_terminal(framework, after, source, reason);
            self.release_task(framework, task);
        }
    }

    fn count_terminal(&mut self, framework: FrameworkKey, state: TaskState, source: Source, reason: Option<i32>) {
        self.snapshot = None;
        self.counters.terminal(state, source as i32, reason);
        if let Some(framework) = self.framework_mut(framework) {
            *framework.counts.terminal.entry(state as i32).or_default() += 1;
        }
    }
}

fn is_check(reason: Option<i32>) -> bool {
    let checks = [Reason::TaskCheckStatusUpdated, Reason::TaskHealthCheckStatusUpdated];
    checks.iter().any(|check| reason == Some(*check as i32))
}

/// Adds a status to a task's history; one of the same state as the last replaces it.
fn remember(task: &mut mesos::Task, status: &mesos::TaskStatus) {
    if task.statuses.last().is_some_and(|last| last.state == status.state) {
        task.statuses.pop();
    }
    if task.statuses.len() >= MAX_STATUSES {
        task.statuses.remove(0);
    }
    // Statuses are large, and most tasks have one or two: room for four, as a vector takes it, would be most of a task.
    task.statuses.reserve_exact(1);
    let kept = kept_status(task, status);
    task.statuses.push(kept);
}
