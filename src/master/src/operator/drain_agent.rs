//! DRAIN_AGENT: an agent's tasks are killed and it receives no new ones (MNT-06).

use cores::CallError;
use protos::mesos::internal::DrainSlaveMessage;
use protos::mesos::master::call::DrainAgent;
use protos::mesos::{DrainConfig, DrainInfo, DrainState, SlaveId};

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::registry::RegistryOp;

impl Master {
    /// Starts to drain an agent. For an agent that drains already, it replaces the settings.
    pub(crate) fn drain_agent(&mut self, call: DrainAgent, out: &mut Outbox) -> Result<(), CallError> {
        let id = call.slave_id.value.clone();
        if !self.is_known_agent(&id) {
            return Err(CallError::invalid(format!("Unknown agent '{id}'")));
        }
        let key = self.agent_by_id(&id);
        let agent = key.and_then(|key| self.agent(key)).cloned();
        if let Some(machine) = agent.as_ref().and_then(|agent| self.scheduled_machine(agent)) {
            let why = format!("Agent {id} is part of a maintenance schedule under Machine {machine}");
            return Err(CallError::invalid(why));
        }
        if agent.as_ref().is_some_and(|agent| !agent.capabilities.agent_draining) {
            return Err(CallError::invalid(format!("Agent {id} is not capable of draining")));
        }
        let config = DrainConfig { max_grace_period: call.max_grace_period, mark_gone: Some(call.mark_gone()) };
        out.persist.push(RegistryOp::DrainAgent { id: SlaveId { value: id.clone() }, config });
        let drain = DrainInfo { state: DrainState::Draining as i32, config };
        self.absent.change_admin_state(&id, |admin_state| admin_state.drain = Some(drain));
        key.into_iter().for_each(|key| self.agents.set_drain(key, Some(drain), self.now));
        self.set_deactivated(&id, true, out);
        if let (Some(key), Some(agent)) = (key, agent) {
            out.push(Output::send(&agent.pid, DrainSlaveMessage { config }));
            self.agents.check_drained(key, &self.operations);
        }
        Ok(())
    }

    /// Marks draining agents that have become empty as drained, or as gone if the call asked for that.
    pub(crate) fn settle_drained(&mut self, out: &mut Outbox) {
        for agent in self.agents.take_drained(&self.operations) {
            out.info(format!("Agent {} is drained", agent.id));
            match agent.drain.is_some_and(|drain| drain.config.mark_gone()) {
                true => self.mark_gone(&agent.id, out),
                false => out.persist.push(RegistryOp::MarkAgentDrained(agent.proto_id())),
            }
        }
    }
}
