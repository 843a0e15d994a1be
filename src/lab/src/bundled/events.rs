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
pub enum Word {
    /// The framework has started the job whose first task has this number.
    Begun(u64),
    /// The job whose first task has this number has ended; `true` if it succeeded.
    Over(u64, bool),
    /// From now on the framework could use this much more than it has.
    Wants(Quantities),
    /// The measure with this index has this value from now on; with `None` it has no value for a while.
    Level(usize, Option<f64>),
    /// One value was found for the measure with this index.
    Found(usize, f64),
}

/// An event of a framework with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Time of the event.
    pub at: Time,
    /// What has happened.
    pub word: Word,
}

/// Events of one framework in the order of time. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Diary(Rc<RefCell<Vec<Entry>>>);

impl Diary {
    /// Adds an event to the diary.
    pub fn write(&self, at: Time, word: Word) {
        self.0.borrow_mut().push(Entry { at, word });
    }

    /// Removes and returns the events that were written since the last call.
    pub fn take(&self) -> Vec<Entry> {
        mem::take(&mut *self.0.borrow_mut())
    }
}
