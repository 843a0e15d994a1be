//! Events that a bundled framework reports to a run: progress of its jobs and its quality measures.
//!
//! The framework writes them during a run, and the next sample reads them.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use base::Time;
use resources::Quantities;

/// An event that a bundled framework reports.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameworkEvent {
    /// The framework has started the job whose first task has this number.
    JobStarted(u64),
    /// The job whose first task has this number has ended; `true` if it succeeded.
    JobEnded(u64, bool),
    /// From now on the framework could use this much more than it has.
    Demand(Quantities),
    /// The measure with this index has this value from now on; with `None` it has no value for a while.
    MeasureChanged(usize, Option<f64>),
    /// One value was found for the measure with this index.
    MeasureSample(usize, f64),
}

/// An event of a framework with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedEvent {
    /// Time of the event.
    pub at: Time,
    /// What has happened.
    pub event: FrameworkEvent,
}

/// Events of one framework in the order of time. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct EventLog(Rc<RefCell<Vec<TimedEvent>>>);

impl EventLog {
    /// Adds an event to the log.
    pub fn write(&self, at: Time, event: FrameworkEvent) {
        self.0.borrow_mut().push(TimedEvent { at, event });
    }

    /// Removes and returns the events that were written since the last call.
    pub fn take(&self) -> Vec<TimedEvent> {
        mem::take(&mut *self.0.borrow_mut())
    }
}
