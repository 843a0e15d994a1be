//! Adapts a modelled scheduler to a real driver: it runs in the scenario's time, is recorded, and disconnects on
//! request.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use base::Time;
use sdk::{Calls, Event, Scheduler};

use super::translate::Translator;
use crate::measure::Recorder;
use crate::world::Observer;

/// Returns the scenario's current time.
pub(super) type Clock = Rc<dyn Fn() -> Time>;

/// State that a framework shares with its driver.
#[derive(Debug, Default)]
pub struct Control {
    leaves: Cell<bool>,
    subscribed: Cell<bool>,
    refused: Cell<u64>,
    last_refusal: RefCell<String>,
}

impl Control {
    /// Requests that the framework tears itself down at its next event, which kills its tasks.
    pub fn leave(&self) {
        self.leaves.set(true);
    }

    /// Returns whether the framework is subscribed.
    pub fn subscribed(&self) -> bool {
        self.subscribed.get()
    }

    /// Returns the number of the framework's calls that were refused, and the reason of the last refusal.
    pub fn refused(&self) -> (u64, String) {
        (self.refused.get(), self.last_refusal.borrow().clone())
    }
}

/// A modelled scheduler for a real driver: it runs in the scenario's time, its calls are recorded, and it tears itself
/// down on request.
pub struct RecordedScheduler {
    pub(super) framework: usize,
    pub(super) inner: Box<dyn Scheduler>,
    pub(super) recorder: Rc<RefCell<Recorder>>,
    pub(super) clock: Clock,
    pub(super) translator: Translator,
    pub(super) control: Rc<Control>,
}

impl fmt::Debug for RecordedScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedScheduler")
            .field("framework", &self.framework)
            .field("control", &self.control)
            .finish_non_exhaustive()
    }
}

impl RecordedScheduler {
    fn record(&self, event: &Event, now: Time) {
        let mut recorder = self.recorder.borrow_mut();
        match event {
            Event::Subscribed { .. } | Event::Disconnected { .. } => {
                self.control.subscribed.set(matches!(event, Event::Subscribed { .. }));
                recorder.void_offers(self.framework, now);
            }
            Event::Offers(offers) => {
                offers
                    .iter()
                    .for_each(|offer| recorder.offered(self.framework, &offer.id.value, &offer.resources, now));
            }
            Event::Rescinded(id) => recorder.rescinded(self.framework, &id.value, now),
            Event::Update(status) => recorder.record_status(self.framework, status, now),
            Event::Refused { why, .. } => {
                self.control.refused.set(self.control.refused.get() + 1);
                self.control.last_refusal.replace(why.clone());
            }
            _ => {}
        }
    }
}

impl Scheduler for RecordedScheduler {
    fn on_event(&mut self, event: Event, real: Time, calls: &mut Calls) {
        let now = (self.clock)();
        if self.control.leaves.get() {
            match event {
                Event::Subscribed { .. } => self.control.subscribed.set(true),
                Event::Disconnected { .. } => self.control.subscribed.set(false),
                _ => {}
            }
            // Without a connection the call would be lost.
            if self.control.subscribed() {
                calls.teardown();
            }
            return;
        }
        self.record(&event, now);
        let (before, wake) = (calls.queued().len(), calls.wake().take());
        self.inner.on_event(event, now, calls);
        let speed = self.translator.pace.speed;
        let until =
            |then: Time| real + Duration::try_from_secs_f64(then.since(now).as_secs_f64() / speed).unwrap_or(NEVER);
        let own = calls.wake().take().map(until);
        *calls.wake() = wake.into_iter().chain(own).min();
        let mut recorder = self.recorder.borrow_mut();
        for call in &mut calls.queued()[before..] {
            recorder.called(self.framework, call, now);
            self.translator.call(call);
        }
    }
}

/// A delay that no run reaches, in place of delays that overflow.
const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);
