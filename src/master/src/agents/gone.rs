//! Marks agents as gone for an operator: they will not reregister (TSK-74).

use base::AgentId;
use protos::mesos::internal::ShutdownMessage;
use protos::mesos::task_status::Reason;
use protos::mesos::{self, TaskState};

use super::Removal;
use crate::counters::Counter;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::registry::RegistryOp;

impl Master {
    /// Marks a registered, recovered or unreachable agent as gone. A registered one is shut down.
    pub(crate) fn mark_gone(&mut self, id: &AgentId, out: &mut Outbox) {
        out.info(format!("Marking agent {id} gone"));
        let time = mesos::TimeInfo { nanoseconds: self.now.as_nanos() };
        let proto_id = mesos::SlaveId { value: id.into() };
        out.persist.push(RegistryOp::MarkAgentGone { id: proto_id, time });
        self.absent.add_gone(id, time);
        let Some(key) = self.agent_by_id(id.as_str()) else { return };
        if let Some(agent) = self.agent(key) {
            let message = Some("Agent has been marked gone".to_owned());
            out.push(Output::send(&agent.pid.clone(), ShutdownMessage { message }));
        }
        self.count(Counter::SlaveRemovals);
        let removal = Removal {
            state: TaskState::TaskGoneByOperator,
            reason: Reason::SlaveRemovedByOperator,
            message: "Agent has been marked gone".to_owned(),
            unreachable_time: None,
        };
        self.remove_agent_with_tasks(key, removal, out);
    }
}
