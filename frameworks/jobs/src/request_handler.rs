//! A scheduler that answers requests from other threads when it is woken.
//!
//! It only forwards requests and events, and knows neither HTTP nor files.

use base::Time;
use sdk::{Calls, Event, Requester, Requests, Scheduler, requests};

/// A scheduler that answers requests.
pub trait RequestHandler: Scheduler {
    /// Type of a request.
    type Request: Send + 'static;
    /// Type of the answer to a request.
    type Answer: Send + 'static;

    /// A request without content, which replaces one that is taken.
    const EMPTY: Self::Request;

    /// Answers a request.
    fn ask(&mut self, request: Self::Request, now: Time, calls: &mut Calls) -> Self::Answer;
}

/// A scheduler with its queue of requests. After each event `after` is called with the scheduler, to take its reports.
pub struct RequestServer<C: RequestHandler, F> {
    core: C,
    requests: Requests<C::Request, C::Answer>,
    after: F,
}

impl<C: RequestHandler, F: FnMut(&mut C)> RequestServer<C, F> {
    /// Creates the scheduler with its requester.
    pub fn new(core: C, after: F) -> (RequestServer<C, F>, Requester<C::Request, C::Answer>) {
        let (requester, requests) = requests();
        (RequestServer { core, requests, after }, requester)
    }

    /// Returns the scheduler itself.
    pub fn core(&self) -> &C {
        &self.core
    }

    /// Returns the queue of requests, to add one directly; the caller must then wake the scheduler.
    pub fn requests(&self) -> &Requests<C::Request, C::Answer> {
        &self.requests
    }
}

impl<C: RequestHandler, F: FnMut(&mut C)> Scheduler for RequestServer<C, F> {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        let woken = matches!(event, Event::Wake);
        self.core.on_event(event, now, calls);
        if woken {
            for mut request in self.requests.by_ref() {
                let question = std::mem::replace(&mut request.question, C::EMPTY);
                let answer = self.core.ask(question, now, calls);
                // The answer is sent after the state is saved: a confirmed job is durable.
                calls.answer(request, answer);
            }
        }
        (self.after)(&mut self.core);
    }
}

impl<C: RequestHandler + std::fmt::Debug, F> std::fmt::Debug for RequestServer<C, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestServer").field("core", &self.core).finish_non_exhaustive()
    }
}
