//! A scheduler that answers requests from other threads when it is woken.
//!
//! It passes requests and events on; HTTP is elsewhere.

use base::Time;
use sdk::{Calls, Event, Scheduler};
use sdk::{Requester, Requests, requests};

use super::{Core, Happening, Reply, Request, Unwanted};

/// What a request is answered with.
pub type Answer = Result<Reply, Unwanted>;

/// A [`Core`] that answers requests, and reports events.
pub struct Served<F> {
    core: Core,
    requests: Requests<Request, Answer>,
    tell: F,
}

impl<F: FnMut(Happening)> Served<F> {
    /// Creates it with its requester. `tell` is called with the events that have occurred, after each event of the
    /// scheduler.
    pub fn new(core: Core, tell: F) -> (Served<F>, Requester<Request, Answer>) {
        let (requester, requests) = requests();
        (Served { core, requests, tell }, requester)
    }

    /// The scheduler itself.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The queue of requests, to add one by hand; the scheduler must be woken then.
    pub fn requests(&self) -> &Requests<Request, Answer> {
        &self.requests
    }
}

impl<F: FnMut(Happening)> Scheduler for Served<F> {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        let woken = matches!(event, Event::Wake);
        self.core.on_event(event, now, calls);
        if woken {
            for mut request in self.requests.by_ref() {
                let question = std::mem::replace(&mut request.question, Request::Status);
                let answer = self.core.request(question, now, calls);
                // A confirmed job is durable.
                calls.answer(request, answer);
            }
        }
        for happening in self.core.take_happenings() {
            (self.tell)(happening);
        }
    }
}

impl<F> std::fmt::Debug for Served<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("core", &self.core).finish_non_exhaustive()
    }
}
