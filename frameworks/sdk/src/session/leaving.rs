//! The end of a session at its scheduler's request: teardown, which needs a master, or failure, which does not.

use std::time::Duration;

use base::Time;

use super::{Ending, Output, REMOVED, Session, State};
use crate::v1::scheduler::call;
use crate::{Event, Scheduler, calls, saved};

/// Maximum wait for a connection to tear a framework down.
const LEAVING_MAX: Duration = Duration::from_secs(10);

impl<S: Scheduler> Session<S> {
    /// Starts a teardown without a connection: the framework must subscribe once more to send it.
    pub(super) fn leave(&mut self, now: Time, outputs: &mut Vec<Output>) {
        if self.framework_id.is_none() {
            return self.end(Ending::Stopped, outputs);
        }
        self.teardown_deadline = Some(now + LEAVING_MAX);
        self.backoff.reset();
        if let State::Waiting(_) = self.state {
            self.state = State::Waiting(now);
        }
    }

    /// Handles an event during a teardown without a connection. Only a subscription, and an error that refuses one,
    /// matter.
    pub(super) fn event_while_leaving(&mut self, event: &Event, now: Time, outputs: &mut Vec<Output>) {
        match event {
            Event::Subscribed { .. } => {
                self.state = State::Subscribed(now);
                self.calls.queue.push(calls::of(call::Type::Teardown));
                self.send(outputs);
            }
            Event::Error { message } if !message.contains(REMOVED) => {
                return self.end(Ending::Error(message.clone()), outputs);
            }
            Event::Error { .. } => {}
            _ => return,
        }
        self.forget_framework(outputs);
        self.end(Ending::Stopped, outputs);
    }

    /// Ends the session after the time limit of the teardown; the framework stays registered.
    pub(super) fn end_without_master(&mut self, outputs: &mut Vec<Output>) {
        let why = "the teardown did not reach a master; tasks continue until the failover timeout";
        self.end(Ending::Unreachable(why.to_owned()), outputs);
    }

    /// Removes the framework from the store after its teardown, so that the next session with this store is a new
    /// framework.
    pub(super) fn forget_framework(&mut self, outputs: &mut Vec<Output>) {
        let ids: Vec<String> = self.calls.ledger.iter().map(|(id, _)| id.to_owned()).collect();
        for id in ids {
            self.calls.ledger.forget(&id);
        }
        if self.has_store {
            self.calls.saves.push(saved::framework(None));
        }
        self.save(outputs);
    }

    /// Ends the session because the persisted state is unusable: nothing more is sent, written or answered.
    pub(super) fn fail(&mut self, ending: Ending, outputs: &mut Vec<Output>) {
        self.calls.queue.clear();
        self.calls.saves.clear();
        self.calls.answers.clear();
        self.calls.ledger.mark_saved();
        self.end(ending, outputs);
    }
}
