//! DRAIN_AGENT: an agent's tasks are killed and no new ones come (mesos-features.md MNT-06).

use protos::mesos::internal::DrainSlaveMessage;
use protos::mesos::master::call::DrainAgent;
use protos::mesos::{DrainConfig, DrainInfo, DrainState, SlaveId};

use crate::io::{Answer, Outbox};
use crate::master::Master;
use crate::registry::RegistryOp;
use crate::state::AgentKey;

impl Master {
    /// Draining again replaces the settings.
    pub(crate) fn drain_agent(&mut self, call: DrainAgent, out: &mut Outbox) -> Result<(), Answer> {
        let id = call.slave_id.value.clone();
        if !self.is_known_agent(&id) {
            return Err(Answer::bad_request("Unknown agent"));
        }
        let key = self.agent_by_id(&id);
        let agent = key.and_then(|key| self.agent(key)).cloned();
        if let Some(machine) = agent.as_ref().and_then(|agent| self.scheduled_machine(agent)) {
            let why = format!("Agent {id} is part of a maintenance schedule under Machine {machine}");
            return Err(Answer::bad_request(why));
        }
        if agent.as_ref().is_some_and(|agent| !agent.capabilities.agent_draining) {
            return Err(Answer::bad_request(format!("Agent {id} is not capable of draining")));
        }
        let config = DrainConfig { max_grace_period: call.max_grace_period, mark_gone: Some(call.mark_gone()) };
        out.persist.push(RegistryOp::DrainAgent { id: SlaveId { value: id.clone() }, config });
        let drain = DrainInfo { state: DrainState::Draining as i32, config };
        let now = self.now;
        self.absent.change_standing(&id, |standing| standing.drain = Some(drain));
        if let Some(agent) = key.and_then(|key| self.agent_mut(key)) {
            agent.drain = Some(drain);
            agent.drain_start = Some(now);
        }
        self.set_deactivated(&id, true, out);
        if let (Some(key), Some(agent)) = (key, agent) {
            out.send(&agent.pid, DrainSlaveMessage { config });
            self.check_drained(key);
        }
        Ok(())
    }

    /// Agents that have become empty: they are drained, or gone if that was asked for.
    pub(crate) fn settle_drained(&mut self, out: &mut Outbox) {
        for key in std::mem::take(&mut self.drained) {
            if self.is_empty_agent(key) {
                self.mark_drained(key, out);
            }
        }
    }

    fn mark_drained(&mut self, key: AgentKey, out: &mut Outbox) {
        let Some(agent) = self.agent_mut(key) else { return };
        let Some(drain) = agent.drain.as_mut().filter(|drain| drain.state() == DrainState::Draining) else { return };
        drain.state = DrainState::Drained as i32;
        let (gone, id, proto_id) = (drain.config.mark_gone(), agent.id.clone(), agent.proto_id());
        out.info(format!("Agent {id} is drained"));
        match gone {
            true => self.mark_gone(&id, out),
            false => out.persist.push(RegistryOp::MarkAgentDrained(proto_id)),
        }
    }
}
