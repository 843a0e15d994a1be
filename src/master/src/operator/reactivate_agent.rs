//! REACTIVATE_AGENT: resources of an agent that was deactivated or drained are offered again.

use cores::CallError;
use protos::mesos::{DrainState, SlaveId};

use crate::agents::AdminState;
use crate::io::Outbox;
use crate::master::Master;
use crate::registry::RegistryOp;

impl Master {
    pub(crate) fn reactivate_agent(&mut self, id: &str, out: &mut Outbox) -> Result<(), CallError> {
        if !self.is_known_agent(id) {
            return Err(CallError::invalid(format!("Unknown agent '{id}'")));
        }
        let key = self.agent_by_id(id);
        let agent = key.and_then(|key| self.agent(key));
        let AdminState { drain, deactivated } = match agent {
            Some(agent) => AdminState { drain: agent.drain, deactivated: agent.deactivated },
            None => self.absent.admin_state(id).unwrap_or_default(),
        };
        if !deactivated {
            return Err(CallError::invalid("Agent is not deactivated"));
        }
        if drain.is_some_and(|drain| drain.state() == DrainState::Draining) {
            return Err(CallError::invalid("Agent is still in the DRAINING state"));
        }
        out.persist.push(RegistryOp::ReactivateAgent(SlaveId { value: id.into() }));
        self.absent.change_admin_state(id, |admin_state| admin_state.drain = None);
        key.into_iter().for_each(|key| self.agents.set_drain(key, None, self.now));
        self.set_deactivated(id, false, out);
        Ok(())
    }
}
