//! A deadline that is far off is told to the kernel once, not with every sleep.
//!
//! A sleep with an end costs the kernel a timer that it sets, and takes back when a message ends the
//! sleep before. Where messages come by the microsecond and timers end after seconds (the timeouts of
//! sockets), that was a tenth of the whole trip. So a ring that has slept towards far deadlines for
//! some times in a row sets one timeout in the ring, and sleeps without an end for as long as that one
//! comes first. Deadlines that move away behind it cost nothing; when it goes off, the thread wakes
//! once, maybe for nothing.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::Reactor;
use super::user_data::{ALARM_CLOCK, IGNORED};
use crate::ring::{TimeoutCell, Wait};

/// Nearer deadlines are rarely outlived by a sleep that follows.
pub(super) const FAR: Duration = Duration::from_millis(20);

/// Sleeps in a row towards far deadlines before the timeout is set, which costs as much as a few of
/// them.
pub(super) const PATIENCE: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct AlarmClock {
    /// When the timeout in the ring goes off, if there is one.
    rings_at: Cell<Option<Instant>>,
    far_sleeps: Cell<u32>,
}

impl AlarmClock {
    #[cfg(test)]
    pub(super) fn rings_at(&self) -> Option<Instant> {
        self.rings_at.get()
    }

    /// The timeout has gone off.
    pub(super) fn has_rung(&self) {
        self.rings_at.set(None);
        self.far_sleeps.set(0);
    }
}

impl Reactor {
    /// The sleep that does for `wait`: one without an end if the kernel's timeout ends it in time.
    pub(super) fn with_alarm_clock(&self, wait: Wait) -> Wait {
        let Wait::Until(end) = wait else {
            return wait;
        };
        let clock = &self.alarm_clock;
        let rings_at = clock.rings_at.get();
        if rings_at.is_some_and(|at| at <= end) {
            return Wait::Forever;
        }
        if end.saturating_duration_since(self.preempt.round_start()) < FAR {
            clock.far_sleeps.set(0);
            return wait;
        }
        if clock.far_sleeps.get() < PATIENCE {
            clock.far_sleeps.set(clock.far_sleeps.get() + 1);
            return wait;
        }
        // One attempt: making room would wake tasks, and the sleep has been announced.
        let pushed = match rings_at {
            None => self
                .ring
                .push_timeout(TimeoutCell::AlarmClock, end, ALARM_CLOCK),
            // Has it gone off meanwhile, then its completion ends the sleep.
            Some(_) => {
                self.ring
                    .push_timeout_move(TimeoutCell::AlarmClock, end, ALARM_CLOCK, IGNORED)
            }
        };
        if pushed.is_err() {
            return wait;
        }
        clock.rings_at.set(Some(end));
        Wait::Forever
    }
}
