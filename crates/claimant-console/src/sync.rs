//! Locks of plain data.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks plain data that is whole after every statement, so that a panic elsewhere does not spoil it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
