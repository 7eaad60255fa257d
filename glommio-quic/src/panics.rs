//! Panics of user code that must not take the tasks of an endpoint down.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `act` returns, or `None` if it panics. What it has changed by then stays.
pub(crate) fn caught<R>(act: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => Some(result),
        Err(payload) => {
            // What it carries may panic when it is dropped.
            mem::forget(payload);
            None
        }
    }
}

/// Logs an error. A subscriber that panics is as one that does not listen.
pub(crate) fn log_error(text: &str) {
    caught(|| tracing::error!("{text}"));
}
