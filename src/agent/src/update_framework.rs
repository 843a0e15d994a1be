//! Handles UpdateFrameworkMessage: a framework has changed its info or its pid.

use std::sync::Arc;

use base::{Pid, Time};
use protos::mesos::internal::UpdateFrameworkMessage;

use crate::agent::{Agent, AgentState};
use crate::output::Outbox;
use crate::state::FrameworkState;

impl Agent {
    /// Handles UpdateFrameworkMessage: stores the new info and pid, and sends the framework's unacknowledged updates
    /// again.
    pub(crate) fn update_framework(&mut self, message: UpdateFrameworkMessage, now: Time, out: &mut Outbox) {
        if self.state == AgentState::Recovering {
            return;
        }
        let Some(known) = self.framework_mut(&message.framework_id.value) else { return };
        if known.state == FrameworkState::Terminating {
            return;
        }
        if let Some(info) = message.framework_info {
            known.info = Arc::new(info);
        }
        known.pid = message.pid.as_deref().map(Pid::parse_lenient).filter(|pid| !pid.is_empty());
        let known = known.clone();
        self.checkpoint_framework(&known, out);
        self.streams.resend(Some(&known.id), now);
    }
}
