//! A lock that remains usable after a panic of its holder: every guarded value here is consistent between two
//! statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, whether or not a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
