//! DrainSlaveMessage: an agent that is to be emptied.

use std::sync::Arc;

use base::Time;
use protos::mesos::internal::{DrainSlaveMessage, KillTaskMessage, StatusUpdate};
use protos::mesos::{self as pb, TaskState, framework_info::capability::Type, task_status::Reason};

use crate::agent::Agent;
use crate::disk::{frame, paths};
use crate::output::{Outbox, Persist};
use crate::state::{Executor, Queued, is_capable};

impl Agent {
    /// Kills all tasks, and takes no new ones.
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

    /// While draining, an executor is ordered to kill all of its tasks; also one that reconnects, which may not have
    /// received it.
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

    /// A drained agent is one like any other; the master keeps it from getting tasks.
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

    /// While draining, kills are explained by it; with `mark_gone` they become TASK_GONE_BY_OPERATOR for frameworks
    /// that know the state.
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

/// The shorter of the task's own grace period and the maximum of the drain; `None` if neither is set.
fn limited(drain: &pb::DrainConfig, own: Option<pb::KillPolicy>) -> Option<pb::KillPolicy> {
    let own = own.and_then(|policy| policy.grace_period);
    let grace = match (drain.max_grace_period, own) {
        (Some(max), Some(own)) => pb::DurationInfo { nanoseconds: max.nanoseconds.min(own.nanoseconds) },
        (Some(grace), None) => grace,
        (None, _) => return None,
    };
    Some(pb::KillPolicy { grace_period: Some(grace) })
}
