//! Events that a bundled framework reports to a run: progress of its jobs and its quality measures.
//!
//! They are written during a run and read by the next sample.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;

use base::Time;
use resources::Quantities;

/// An event of a framework.
#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    /// The job whose first task has this number is worked on.
    Begun(u64),
    /// It is over, well or not.
    Over(u64, bool),
    /// So much more the framework could use, beside what it has, from now on.
    Wants(Quantities),
    /// The measure at this place has this value from now on; none: there is no such thing for a while.
    Level(usize, Option<f64>),
    /// The measure at this place was found to be this, once.
    Found(usize, f64),
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The time.
    pub at: Time,
    /// The word.
    pub word: Word,
}

/// Events of one framework, in the order of time. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Diary(Rc<RefCell<Vec<Entry>>>);

impl Diary {
    /// Writes a word down.
    pub fn write(&self, at: Time, word: Word) {
        self.0.borrow_mut().push(Entry { at, word });
    }

    /// What was written since the last time.
    pub fn take(&self) -> Vec<Entry> {
        mem::take(&mut *self.0.borrow_mut())
    }
}
