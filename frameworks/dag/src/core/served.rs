//! A scheduler that answers requests from other threads when it is woken.
//!
//! It passes requests, events and wishes on; HTTP and files are elsewhere.

use base::Time;
use sdk::{Calls, Event, Scheduler};
use sdk::{Requester, Requests, requests};

use super::{Core, Happening, Reply, Request, Unwanted, Wish};

/// What a request is answered with.
pub type Answer = Result<Reply, Unwanted>;

/// A [`Core`] that answers requests, and reports events and wishes.
pub struct Served<T, W> {
    core: Core,
    requests: Requests<Request, Answer>,
    tell: T,
    wish: W,
}

impl<T: FnMut(Happening), W: FnMut(Wish)> Served<T, W> {
    /// Creates it with its requester. `tell` is called with the events that have occurred and `wish` with what is to be
    /// done, after each event of the scheduler.
    pub fn new(core: Core, tell: T, wish: W) -> (Served<T, W>, Requester<Request, Answer>) {
        let (requester, requests) = requests();
        (Served { core, requests, tell, wish }, requester)
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

impl<T: FnMut(Happening), W: FnMut(Wish)> Scheduler for Served<T, W> {
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
        for wish in self.core.take_wishes() {
            (self.wish)(wish);
        }
    }
}

impl<T, W> std::fmt::Debug for Served<T, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("core", &self.core).finish_non_exhaustive()
    }
}
