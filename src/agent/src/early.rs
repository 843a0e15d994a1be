//! Executors that register or subscribe before the start of their process has been reported.
//!
//! Their message waits for the report, with which the pid is checkpointed. An agent that was killed before that would
//! not find the process again, and would give up tasks that run.

use base::Time;
use cores::ErrorKind;

use crate::agent::Agent;
use crate::output::Outbox;
use crate::state::Early;

impl Agent {
    /// Stores the first message of an executor until its start is reported. Of two subscriptions the later one counts.
    pub(crate) fn hear_later(&mut self, framework: &str, executor: &str, early: Early, out: &mut Outbox) {
        let Some(target) = self.executor_mut(framework, executor) else { return };
        if let Some(Early::Subscribe(_, request, ..)) = target.early.replace(early) {
            self.reject(request, ErrorKind::Unavailable, "The executor has subscribed once more", out);
        }
    }

    /// Handles the message that an executor sent before its start was reported.
    pub(crate) fn hear_now(&mut self, early: Option<Early>, now: Time, out: &mut Outbox) {
        match early {
            Some(Early::Subscribe(stream, request, call, proof)) => {
                self.subscribe_executor(stream, request, *call, proof, now, out);
            }
            Some(Early::Register(from, message)) => self.register_executor(&from, &message, now, out),
            None => {}
        }
    }
}
