//! RECONCILE: a framework asks for the states of tasks (docs/mesos/libprocess.md).

use protos::mesos::TaskState;
use protos::mesos::scheduler::call::{Reconcile, reconcile};
use protos::mesos::task_status::Reason;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::{FrameworkKey, TaskKey};
use crate::tasks::{MasterStatus, state_or_lost};

impl Master {
    /// Sends the framework the states of the listed tasks, or of all its active tasks if none is listed.
    pub(crate) fn reconcile(&mut self, key: FrameworkKey, call: Reconcile, out: &mut Outbox) {
        self.count(Counter::MessagesReconcileTasks);
        if call.tasks.is_empty() {
            let Some(framework) = self.framework(key) else { return };
            let tasks: Vec<TaskKey> = framework.tasks.iter().map(|(task, _)| TaskKey(task)).collect();
            for task in tasks {
                self.send_known_task(key, task, out);
            }
            return;
        }
        for task in call.tasks {
            match self.task_by_id(key, &task.task_id.value) {
                Some(known) => self.send_known_task(key, known, out),
                None => self.send_unknown_task(key, task, out),
            }
        }
    }

    fn send_known_task(&mut self, key: FrameworkKey, task: TaskKey, out: &mut Outbox) {
        self.send_task_state(key, task, Reason::Reconciliation, "Reconciliation: Latest task state", out);
    }

    /// Sends a framework the state of a task, as far as the framework may know it by now.
    pub(crate) fn send_task_state(
        &mut self,
        key: FrameworkKey,
        task: TaskKey,
        reason: Reason,
        words: &str,
        out: &mut Outbox,
    ) {
        let (Some(row), Some(framework)) = (self.task(key, task), self.framework(key)) else { return };
        let status = MasterStatus::of(row, row.forwarded_state(), reason, words);
        let last = row.proto.statuses.last().cloned().unwrap_or_default();
        let mut update = status.into_update(framework.proto_id(), self.now);
        update.status.healthy = last.healthy;
        update.status.check_status = last.check_status;
        update.status.container_status = last.container_status;
        self.frameworks.send_update(key, update, None, out);
    }

    fn send_unknown_task(&mut self, key: FrameworkKey, task: reconcile::Task, out: &mut Outbox) {
        let Some(capabilities) = self.framework(key).map(|framework| framework.capabilities) else { return };
        let Some((state, message, unreachable_time)) = self.state_of_unknown(&task) else { return };
        let status = MasterStatus {
            task_id: task.task_id,
            state: state_or_lost(state, capabilities),
            reason: Some(Reason::Reconciliation),
            message: format!("Reconciliation: {message}"),
            agent_id: task.slave_id,
            executor_id: None,
            unreachable_time,
        };
        self.send_status(key, status, out);
    }

    /// Returns the state of a task that this master does not know, or `None` while the task's agent may still
    /// reregister.
    fn state_of_unknown(
        &self,
        task: &reconcile::Task,
    ) -> Option<(TaskState, &'static str, Option<protos::mesos::TimeInfo>)> {
        let Some(agent) = task.slave_id.as_ref().map(|id| id.value.as_str()) else {
            let unknown = (TaskState::TaskUnknown, "Task is unknown", None);
            return self.absent.recovered().is_empty().then_some(unknown);
        };
        if self.absent.is_recovered(agent) {
            return None;
        }
        Some(if self.agent_by_id(agent).is_some() {
            (TaskState::TaskGone, "Task is unknown to the agent", None)
        } else if let Some(since) = self.absent.unreachable_since(agent) {
            (TaskState::TaskUnreachable, "Task is unreachable", Some(since))
        } else if self.absent.is_gone(agent) {
            (TaskState::TaskGoneByOperator, "Task is gone", None)
        } else {
            (TaskState::TaskUnknown, "Task is unknown", None)
        })
    }
}
