//! Handles DrainSlaveMessage: the tasks of the agent are killed with a grace period.

use std::sync::Arc;

use base::Time;
use protos::mesos::internal::{DrainSlaveMessage, KillTaskMessage, StatusUpdate};
use protos::mesos::{self as pb, TaskState, framework_info::capability::Type, task_status::Reason};

use crate::agent::Agent;
use crate::disk::{frame, paths};
use crate::output::{Outbox, Persist};
use crate::state::{Executor, Queued, is_capable};

impl Agent {
    /// Handles DrainSlaveMessage: kills all tasks. New ones are not accepted.
    pub(crate) fn drain_slave(&mut self, message: DrainSlaveMessage, now: Time, out: &mut Outbox) {
        let Some(id) = &self.id else { return };
        self.checkpoint(format!("{}/drain.config", paths::agent(id)), frame(&message.config), out);
        self.drain = Some(message.config);
        self.drain_start.get_or_insert(now);
        self.kill_all_waiting(now, out);
        let executors: Vec<_> = self.frameworks.executors().map(Arc::clone).collect();
        for executor in executors {
            for task in executor.queued.iter().flat_map(Queued::tasks) {
                if let Ok(task) = base::TaskId::new(&task.task_id.value) {
                    self.kill_queued(&executor.framework_id, &executor, &task, now, out);
                }
            }
            self.drain_executor(&executor, out);
        }
        self.finish_draining_if_empty(out);
    }

    /// Sends an executor a kill for each of its tasks, while the agent is draining.
    ///
    /// An executor that reregisters gets the kills again, as it may not have received the first ones.
    pub(crate) fn drain_executor(&self, executor: &Executor, out: &mut Outbox) {
        let Some(config) = &self.drain else { return };
        for task in executor.launched.values() {
            let kill = KillTaskMessage {
                framework_id: task.framework_id.clone(),
                task_id: task.task_id.clone(),
                kill_policy: limited(config, task.kill_policy),
            };
            self.kill_launched(executor, kill, out);
        }
    }

    /// Ends the drain if the agent has no frameworks and no operations left. From then on it is an agent like any
    /// other; the master keeps it from getting tasks.
    pub(crate) fn finish_draining_if_empty(&mut self, out: &mut Outbox) {
        if self.drain.is_none() || !self.frameworks.is_empty() || !self.operations.is_empty() {
            return;
        }
        self.drain = None;
        self.drain_start = None;
        if let Some(id) = &self.id {
            out.persist.push(Persist::Remove { path: format!("{}/drain.config", paths::agent(id)) });
        }
    }

    /// Sets the reason of a kill to the drain, while the agent is draining. With `mark_gone` the state becomes
    /// TASK_GONE_BY_OPERATOR for frameworks that support it.
    pub(crate) fn explain_by_draining(&self, framework: &pb::FrameworkInfo, update: &mut StatusUpdate) {
        let Some(drain) = &self.drain else { return };
        let state = update.status.state;
        if state != TaskState::TaskKilling as i32 && state != TaskState::TaskKilled as i32 {
            return;
        }
        update.status.reason = Some(Reason::SlaveDraining as i32);
        let is_end = state == TaskState::TaskKilled as i32;
        if is_end && drain.mark_gone() && is_capable(framework, Type::PartitionAware) {
            update.status.state = TaskState::TaskGoneByOperator as i32;
        }
    }
}

/// Returns the shorter of the task's own grace period and the maximum of the drain; `None` if the drain has no maximum.
fn limited(drain: &pb::DrainConfig, own: Option<pb::KillPolicy>) -> Option<pb::KillPolicy> {
    let own = own.and_then(|policy| policy.grace_period);
    let grace = match (drain.max_grace_period, own) {
        (Some(max), Some(own)) => pb::DurationInfo { nanoseconds: max.nanoseconds.min(own.nanoseconds) },
        (Some(grace), None) => grace,
        (None, _) => return None,
    };
    Some(pb::KillPolicy { grace_period: Some(grace) })
}
