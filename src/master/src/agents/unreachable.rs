//! Marks agents as unreachable (TSK-71).

use base::AgentId;
use protos::mesos::task_status::Reason;
use protos::mesos::{self, TaskState};

use super::{AdminState, Removal};
use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::registry::RegistryOp;
use crate::state::AgentKey;

impl Master {
    /// Marks a registered agent that does not answer as unreachable, in the registry too. Its tasks become unreachable
    /// or lost.
    pub(crate) fn mark_unreachable(&mut self, key: AgentKey, why: &str, out: &mut Outbox) {
        let Some(agent) = self.agent(key).cloned() else { return };
        out.info(format!("Agent {} ({}) is unreachable: {why}", agent.id, agent.info.hostname));
        let time = mesos::TimeInfo { nanoseconds: self.now.as_nanos() };
        out.persist.push(RegistryOp::MarkAgentUnreachable { id: agent.proto_id(), time });
        let admin_state = AdminState { drain: agent.drain, deactivated: agent.deactivated };
        self.absent.add_unreachable(agent.id.clone(), time, admin_state);
        self.count(Counter::SlaveRemovals);
        self.count(Counter::SlaveRemovalsUnhealthy);
        let removal = Removal {
            state: TaskState::TaskUnreachable,
            reason: Reason::SlaveRemoved,
            message: format!("Agent {} is unreachable: {why}", agent.info.hostname),
            unreachable_time: Some(time),
        };
        self.remove_agent_with_tasks(key, removal, out);
    }

    /// Marks a recovered agent that has not reregistered as unreachable. The master does not know its tasks.
    pub(crate) fn mark_recovered_unreachable(&mut self, id: &AgentId, out: &mut Outbox) {
        let time = mesos::TimeInfo { nanoseconds: self.now.as_nanos() };
        let Some(info) = self.absent.mark_recovered_unreachable(id, time) else { return };
        out.info(format!("Agent {id} ({}) has not come back", info.hostname));
        let proto_id = mesos::SlaveId { value: id.into() };
        out.persist.push(RegistryOp::MarkAgentUnreachable { id: proto_id.clone(), time });
        self.count(Counter::SlaveUnreachableCompleted);
        self.count(Counter::SlaveRemovals);
        self.count(Counter::SlaveRemovalsUnhealthy);
        self.count(Counter::RecoverySlaveRemovals);
        self.send_lost_agent_to_all(&proto_id, out);
    }
}
