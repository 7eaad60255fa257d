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

use super::user_data::{IGNORED, SLEEP_TIMEOUT};
use crate::ring::{Ring, TimeoutCell, Wait};
use crate::tuning;

/// Nearer deadlines are rarely outlived by a sleep that follows.
pub(super) const FAR: Duration = Duration::from_millis(20);

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

    /// The sleep that does for `wait`: one without an end if the timeout in `ring` ends it in time.
    /// The round before it began at `round_start`.
    pub(super) fn stand_in_for(&self, wait: Wait, ring: &Ring, round_start: Instant) -> Wait {
        let Wait::Until(end) = wait else {
            return wait;
        };
        let armed_at = self.armed_at.get();
        if armed_at.is_some_and(|at| at <= end) {
            return Wait::Forever;
        }
        if end.saturating_duration_since(round_start) < FAR {
            self.far_sleeps.set(0);
            return wait;
        }
        if self.far_sleeps.get() < tuning::get().far_sleeps {
            self.far_sleeps.set(self.far_sleeps.get() + 1);
            return wait;
        }
        // One attempt: making room would wake tasks, and the sleep has been announced.
        let pushed = match armed_at {
            None => ring.push_timeout(TimeoutCell::Sleep, end, SLEEP_TIMEOUT),
            // If it has expired meanwhile, its completion ends the sleep.
            Some(_) => ring.push_timeout_move(TimeoutCell::Sleep, end, SLEEP_TIMEOUT, IGNORED),
        };
        if pushed.is_err() {
            return wait;
        }
        self.armed_at.set(Some(end));
        Wait::Forever
    }
}
