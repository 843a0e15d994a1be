//! Draining: an agent that is to be emptied.

use protos::mesos::{
    self as pb, TaskState, framework_info::capability::Type, internal::StatusUpdate, task_status::Reason,
};

use crate::agent::Agent;
use crate::status::is_capable;

impl Agent {
    /// While draining, kills are explained by it; with `mark_gone` they become TASK_GONE_BY_OPERATOR for frameworks
    /// that know the state.
    pub(crate) fn explain_by_draining(&self, framework: &pb::FrameworkInfo, update: &mut StatusUpdate) {
        let Some(drain) = &self.drain else { return };
        let state = update.status.state;
        if state != TaskState::TaskKilling as i32 && state != TaskState::TaskKilled as i32 {
            return;
        }
        update.status.reason = Some(Reason::SlaveDraining as i32);
        if drain.mark_gone() && is_capable(framework, Type::PartitionAware) {
            update.status.state = TaskState::TaskGoneByOperator as i32;
        }
    }
}
