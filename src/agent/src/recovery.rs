//! Taking up what an earlier agent left: its id, its executors, its updates.

use base::Time;

use crate::agent::{Agent, AgentState, StartError};
use crate::disk::{Recovered, paths};
use crate::output::Outbox;

impl Agent {
    /// Takes up what an earlier agent left.
    pub(crate) fn recover(&mut self, recovered: Recovered, now: Time, out: &mut Outbox) -> Result<(), StartError> {
        self.counters.recovery_errors = u64::from(recovered.errors);
        self.checkpoint(paths::BOOT_ID.to_owned(), self.config.boot_id.clone().into_bytes(), out);
        self.state = AgentState::Disconnected;
        let _ = now;
        Ok(())
    }

    pub(crate) fn executor_is_back(&mut self, now: Time, out: &mut Outbox) {
        let _ = (now, out);
    }

    pub(crate) fn executor_reregistration_timed_out(&mut self, now: Time, out: &mut Outbox) {
        let _ = (now, out);
    }

    pub(crate) fn reconnect_executors(&mut self, now: Time, out: &mut Outbox) {
        let _ = (now, out);
    }
}
