//! Changes of a task's state by a status update (TSK-05 to TSK-07, TSK-36).

use protos::mesos::TaskState;
use protos::mesos::internal::StatusUpdate;
use protos::mesos::task_status::{Reason, Source};

use crate::frameworks::TaskChange;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::{FrameworkKey, TaskKey, is_terminal};

impl Master {
    /// Records a status: the newest state, the state last forwarded, the history. The first terminal state releases the
    /// task's resources.
    pub(crate) fn update_task(
        &mut self,
        framework: FrameworkKey,
        task: TaskKey,
        update: &StatusUpdate,
        out: &mut Outbox,
    ) {
        let Some(TaskChange { before, after, forwarded }) = self.frameworks.update_task(framework, task, update) else {
            return;
        };
        // An update may have an earlier state than the newest known one. Each state is forwarded once.
        let status = &update.status;
        let (state, source, reason) = (status.state, status.source(), status.reason);
        if before != after || forwarded != Some(state) || is_check(reason) {
            self.announce_task_updated(framework, task, status, after, out);
        }
        if is_terminal(after) && !is_terminal(before) {
            self.count_terminal(framework, after, source, reason);
            self.release_task(framework, task);
        }
    }

    fn count_terminal(&mut self, framework: FrameworkKey, state: TaskState, source: Source, reason: Option<i32>) {
        self.counters.terminal(state, source as i32, reason);
        if let Some(counts) = self.frameworks.counts(framework) {
            *counts.terminal.entry(state as i32).or_default() += 1;
        }
    }
}

fn is_check(reason: Option<i32>) -> bool {
    let checks = [Reason::TaskCheckStatusUpdated, Reason::TaskHealthCheckStatusUpdated];
    checks.iter().any(|check| reason == Some(*check as i32))
}
