//! A deadline that is far off is told to the kernel once, not with every sleep.
//!
//! A sleep with an end costs the kernel a timer that it arms, and disarms when a message ends the
//! sleep before. Where messages come by the microsecond and timers expire after seconds (the
//! timeouts of sockets), that was a tenth of the whole trip. So a reactor that has slept towards
//! far deadlines for some times in a row arms one timeout in the ring, and sleeps without an end
//! for as long as that one comes first. Deadlines that move away behind it cost nothing; when it
//! expires, the thread wakes once, maybe for nothing.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::Reactor;
use super::user_data::{IGNORED, SLEEP_TIMEOUT};
use crate::ring::{TimeoutCell, Wait};

/// Nearer deadlines are rarely outlived by a sleep that follows.
pub(super) const FAR: Duration = Duration::from_millis(20);

/// Sleeps in a row towards far deadlines before the timeout is armed, which costs as much as a few
/// of them.
pub(super) const PATIENCE: u32 = 16;

/// The timeout in the ring that ends long sleeps.
#[derive(Debug, Default)]
pub(super) struct SleepTimeout {
    /// When it expires, if it is armed.
    armed_at: Cell<Option<Instant>>,
    far_sleeps: Cell<u32>,
}

impl SleepTimeout {
    #[cfg(test)]
    pub(super) fn armed_at(&self) -> Option<Instant> {
        self.armed_at.get()
    }

    /// The timeout has completed.
    pub(super) fn expired(&self) {
        self.armed_at.set(None);
        self.far_sleeps.set(0);
    }
}

impl Reactor {
    /// The sleep that does for `wait`: one without an end if the timeout in the ring ends it in
    /// time.
    pub(super) fn with_sleep_timeout(&self, wait: Wait) -> Wait {
        let Wait::Until(end) = wait else {
            return wait;
        };
        let timeout = &self.sleep_timeout;
        let armed_at = timeout.armed_at.get();
        if armed_at.is_some_and(|at| at <= end) {
            return Wait::Forever;
        }
        if end.saturating_duration_since(self.preempt.round_start()) < FAR {
            timeout.far_sleeps.set(0);
            return wait;
        }
        if timeout.far_sleeps.get() < PATIENCE {
            timeout.far_sleeps.set(timeout.far_sleeps.get() + 1);
            return wait;
        }
        // One attempt: making room would wake tasks, and the sleep has been announced.
        let pushed = match armed_at {
            None => self
                .ring
                .push_timeout(TimeoutCell::Sleep, end, SLEEP_TIMEOUT),
            // If it has expired meanwhile, its completion ends the sleep.
            Some(_) => self
                .ring
                .push_timeout_move(TimeoutCell::Sleep, end, SLEEP_TIMEOUT, IGNORED),
        };
        if pushed.is_err() {
            return wait;
        }
        timeout.armed_at.set(Some(end));
        Wait::Forever
    }
}
