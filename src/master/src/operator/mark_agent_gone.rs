//! MARK_AGENT_GONE: an agent will not reregister.

use base::AgentId;
use cores::{CallError, ErrorKind};

use crate::io::Outbox;
use crate::master::Master;

impl Master {
    /// Marks an agent as gone. It is no error if the agent is gone already.
    pub(crate) fn mark_agent_gone(&mut self, id: &str, out: &mut Outbox) -> Result<(), CallError> {
        if self.absent.is_gone(id) {
            return Ok(());
        }
        let unknown = || CallError::new(ErrorKind::NotFound, format!("Agent '{id}' not found"));
        if !self.is_known_agent(id) {
            return Err(unknown());
        }
        let id = AgentId::new(id).map_err(|_| unknown())?;
        self.mark_gone(&id, out);
        Ok(())
    }

    /// Returns whether an agent is registered, recovered or unreachable.
    pub(crate) fn is_known_agent(&self, id: &str) -> bool {
        self.agent_by_id(id).is_some() || self.absent.admin_state(id).is_some()
    }
}
