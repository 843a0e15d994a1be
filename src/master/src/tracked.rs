//! A value that records whether it may have changed, so that a snapshot is made only if something is new.
//!
//! It does not compare values: each access for writing counts as a change.

use std::ops::{Deref, DerefMut};

/// A value that records accesses for writing.
#[derive(Debug, Default)]
pub(crate) struct Tracked<T> {
    value: T,
    changed: bool,
}

impl<T> Tracked<T> {
    /// Returns whether the value has been accessed for writing since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}

impl<T> Deref for Tracked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Tracked<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.changed = true;
        &mut self.value
    }
}
