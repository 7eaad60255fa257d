//! Panics of user code that must not take the tasks of an endpoint down.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `act` returns, or `None` if it panics. What it has changed by then stays.
pub(crate) fn caught<R>(act: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => Some(result),
        Err(payload) => {
            if let Err(next) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                mem::forget(next);
            }
            None
        }
    }
}

/// Logs an error. A subscriber that panics is as one that does not listen.
pub(crate) fn log_error(text: &str) {
    caught(|| tracing::error!("{text}"));
}

#[cfg(test)]
mod tests {
    use super::caught;
    use std::panic::panic_any;
    use std::sync::Arc;

    #[test]
    fn what_a_panic_carried_is_dropped() {
        let kept = Arc::new(());
        let carried = Arc::clone(&kept);
        assert!(caught(|| panic_any(carried)).is_none());
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
