//! Task states that the master itself generates: lost, gone, unreachable, killed.

use protos::mesos::TaskState;
use protos::mesos::task_status::Reason;

use super::MasterStatus;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::{FrameworkKey, TaskKey};

impl Master {
    /// Sets a task's state to one that the master has generated, and notifies only operators.
    pub(crate) fn end_task(
        &mut self,
        framework: FrameworkKey,
        task: TaskKey,
        state: TaskState,
        reason: Reason,
        out: &mut Outbox,
    ) {
        let (Some(row), Some(entry)) = (self.task(framework, task), self.framework(framework)) else { return };
        let status = MasterStatus::of(row, state, reason, "Framework has been removed");
        let update = status.into_update(entry.proto_id(), self.now);
        self.update_task(framework, task, &update, out);
    }

    /// Sets a task's state to one that the master has generated, and notifies its framework.
    pub(crate) fn set_generated_state(
        &mut self,
        framework: FrameworkKey,
        task: TaskKey,
        status: MasterStatus,
        out: &mut Outbox,
    ) {
        let Some(entry) = self.framework(framework) else { return };
        let update = status.into_update(entry.proto_id(), self.now);
        self.update_task(framework, task, &update, out);
        self.frameworks.send_update(framework, update, None, out);
    }

    /// Sends a framework the status of a task that the master does not store.
    pub(crate) fn send_status(&mut self, framework: FrameworkKey, status: MasterStatus, out: &mut Outbox) {
        let Some(entry) = self.framework(framework) else { return };
        let update = status.into_update(entry.proto_id(), self.now);
        self.frameworks.send_update(framework, update, None, out);
    }
}
