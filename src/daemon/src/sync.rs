//! Locking without the question of poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; a thread that panicked while it held the lock left data that is still whole, because our critical sections are
/// single operations on collections.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
