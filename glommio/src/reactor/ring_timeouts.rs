//! What the reactor itself has in the ring, beside operations.

use std::cell::Cell;
use std::time::Instant;

use super::sleep_timeout::SleepTimeout;
use super::user_data::{IGNORED, PREEMPTION, SLEEP_TIMEOUT, WAKE_UP};
use crate::ring::Completion;

/// Two timeouts and the watch of the wake-up descriptor.
#[derive(Debug, Default)]
pub(super) struct RingTimeouts {
    /// When the slice's timeout expires, if it is armed.
    pub(super) slice_timeout: Cell<Option<Instant>>,
    pub(super) sleep_timeout: SleepTimeout,
    /// Whether the ring watches the wake-up descriptor.
    pub(super) watches_wake_ups: Cell<bool>,
}

impl RingTimeouts {
    /// Takes note of a completion. False if it is of an operation.
    #[inline]
    pub(super) fn completed(&self, completion: &Completion) -> bool {
        match completion.user_data {
            IGNORED => {}
            // It has expired, or was removed.
            PREEMPTION => self.slice_timeout.set(None),
            SLEEP_TIMEOUT => self.sleep_timeout.expired(),
            WAKE_UP => {
                if !completion.outcome.has_more() {
                    self.watches_wake_ups.set(false);
                }
            }
            _ => return false,
        }
        true
    }

    /// The kernel has dropped completions: all of it is set up anew. What still stands does no harm:
    /// it completes twice.
    pub(super) fn lost(&self) {
        self.slice_timeout.set(None);
        self.sleep_timeout.expired();
        self.watches_wake_ups.set(false);
    }
}
