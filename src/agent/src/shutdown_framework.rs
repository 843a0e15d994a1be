//! Handles ShutdownFrameworkMessage: a framework was removed.

use base::{FrameworkId, Time};
use protos::mesos::internal::ShutdownFrameworkMessage;

use crate::agent::Agent;
use crate::output::Outbox;
use crate::state::FrameworkState;

impl Agent {
    /// Handles ShutdownFrameworkMessage: the master shuts a framework down.
    pub(crate) fn shutdown_framework_message(
        &mut self,
        message: &ShutdownFrameworkMessage,
        now: Time,
        out: &mut Outbox,
    ) {
        let Ok(framework) = FrameworkId::new(&message.framework_id.value) else { return };
        if self.has_unanswered_registration() {
            // If the framework has really ended, the master repeats the message when it receives the list.
            out.warn(format!("Framework {framework} is not shut down: the agent has just reported it to a master"));
            return;
        }
        self.shut_down_framework(&framework, now, out);
    }

    /// Shuts down all executors of a framework, and discards its updates, which are not needed any more.
    pub(crate) fn shut_down_framework(&mut self, framework: &FrameworkId, now: Time, out: &mut Outbox) {
        self.streams.remove_framework(framework);
        let Some(known) = self.framework_mut(framework.as_str()) else { return };
        known.state = FrameworkState::Terminating;
        known.waiting.clear();
        let executors: Vec<_> = known.executors.values().cloned().collect();
        for executor in executors {
            if executor.state == crate::state::ExecutorState::Terminated {
                self.remove_executor(framework, &executor.id, now, out);
            } else {
                self.shut_down_executor(framework, executor.id.as_str(), now, out);
            }
        }
        self.remove_framework_if_idle(framework, now, out);
    }
}
