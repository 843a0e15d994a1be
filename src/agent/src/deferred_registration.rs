//! Executors that register or subscribe before the start of their process has been reported.
//!
//! Their message waits for the report, with which the pid is checkpointed. An agent that was killed before that would
//! not find the process again, and would give up tasks that run.

use base::Time;
use cores::ErrorKind;

use crate::agent::Agent;
use crate::output::Outbox;
use crate::state::DeferredRegistration;

impl Agent {
    /// Stores the first message of an executor until its start is reported. Of two subscriptions the later one counts.
    pub(crate) fn defer_until_started(
        &mut self,
        framework: &str,
        executor: &str,
        deferred: DeferredRegistration,
        out: &mut Outbox,
    ) {
        let Some(target) = self.executor_mut(framework, executor) else { return };
        if let Some(DeferredRegistration::Subscribe(_, request, ..)) = target.deferred.replace(deferred) {
            self.reject(request, ErrorKind::Unavailable, "The executor has subscribed once more", out);
        }
    }

    /// Handles the message that an executor sent before its start was reported.
    pub(crate) fn handle_deferred(&mut self, deferred: Option<DeferredRegistration>, now: Time, out: &mut Outbox) {
        match deferred {
            Some(DeferredRegistration::Subscribe(stream, request, call, proof)) => {
                self.subscribe_executor(stream, request, *call, proof, now, out);
            }
            Some(DeferredRegistration::Register(from, message)) => self.register_executor(&from, &message, now, out),
            None => {}
        }
    }
}
