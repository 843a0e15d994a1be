//! DEACTIVATE_AGENT: the agent's resources are not offered; its tasks keep running.

use cores::CallError;
use protos::mesos::SlaveId;

use crate::io::Outbox;
use crate::master::Master;
use crate::registry::RegistryOp;

impl Master {
    pub(crate) fn deactivate_agent(&mut self, id: &str, out: &mut Outbox) -> Result<(), CallError> {
        if !self.is_known_agent(id) {
            return Err(CallError::invalid(format!("Unknown agent '{id}'")));
        }
        out.persist.push(RegistryOp::DeactivateAgent(SlaveId { value: id.into() }));
        self.set_deactivated(id, true, out);
        Ok(())
    }

    /// Sets whether a registered, recovered or unreachable agent is deactivated.
    pub(crate) fn set_deactivated(&mut self, id: &str, deactivated: bool, out: &mut Outbox) {
        self.absent.change_admin_state(id, |admin_state| admin_state.deactivated = deactivated);
        let Some(key) = self.agent_by_id(id) else { return };
        self.agents.set_deactivated(key, deactivated);
        self.update_activity(key);
        if deactivated {
            self.rescind_offers_on(key, out);
        }
    }
}
