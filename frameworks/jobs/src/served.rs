//! A scheduler that answers requests from other threads when it is woken.
//!
//! It passes requests and events on; HTTP and files are elsewhere.

use base::Time;
use sdk::{Calls, Event, Requester, Requests, Scheduler, requests};

/// A scheduler that answers requests.
pub trait Asked: Scheduler {
    /// A request.
    type Request: Send + 'static;
    /// What a request is answered with.
    type Answer: Send + 'static;

    /// A request without content.
    const EMPTY: Self::Request;

    /// Answers a request.
    fn ask(&mut self, request: Self::Request, now: Time, calls: &mut Calls) -> Self::Answer;
}

/// A scheduler with its queue of requests. `after` is called after each event with the scheduler, whose reports it
/// takes.
pub struct Served<C: Asked, F> {
    core: C,
    requests: Requests<C::Request, C::Answer>,
    after: F,
}

impl<C: Asked, F: FnMut(&mut C)> Served<C, F> {
    /// Creates it with its requester.
    pub fn new(core: C, after: F) -> (Served<C, F>, Requester<C::Request, C::Answer>) {
        let (requester, requests) = requests();
        (Served { core, requests, after }, requester)
    }

    /// The scheduler itself.
    pub fn core(&self) -> &C {
        &self.core
    }

    /// The queue of requests, to add one by hand; the scheduler must be woken then.
    pub fn requests(&self) -> &Requests<C::Request, C::Answer> {
        &self.requests
    }
}

impl<C: Asked, F: FnMut(&mut C)> Scheduler for Served<C, F> {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        let woken = matches!(event, Event::Wake);
        self.core.on_event(event, now, calls);
        if woken {
            for mut request in self.requests.by_ref() {
                let question = std::mem::replace(&mut request.question, C::EMPTY);
                let answer = self.core.ask(question, now, calls);
                // A confirmed job is durable.
                calls.answer(request, answer);
            }
        }
        (self.after)(&mut self.core);
    }
}

impl<C: Asked + std::fmt::Debug, F> std::fmt::Debug for Served<C, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("core", &self.core).finish_non_exhaustive()
    }
}
