//! How long a batch of due timers waits for the tasks that the one before it has woken.
//!
//! While the thread has no CPU, on a busy machine or in a container that is throttled, no task can
//! run, and batches that expired meanwhile would pile up in the task queues. So a wait that is over
//! by the clock (a quarter of the patience) is measured anew in processor time (all of it). Where a
//! task has blocked the thread, it is over; where processor time is not told, the clock decides.
//!
//! Cost: nothing for batches that are worked off in a quarter of the patience; four system calls for
//! one that is not.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::time::Duration;

use crate::sys::thread_time::ThreadTime;

/// See the module. All times are by the clock and since the last batch, if not said otherwise.
#[derive(Default)]
pub(super) struct BatchGate {
    /// When the processor time is to be looked at next.
    look_at: Cell<Duration>,
    /// What it was when it was first looked at.
    first: Cell<Option<ThreadTime>>,
}

impl BatchGate {
    /// A batch expires.
    pub(super) fn begin(&self, patience: Duration) {
        self.look_at.set(patience / 4);
        self.first.set(None);
    }

    /// Whether the next one should still wait.
    #[inline]
    pub(super) fn lasts(
        &self,
        passed: Duration,
        patience: Duration,
        thread_time: impl FnOnce() -> Option<ThreadTime>,
    ) -> bool {
        passed < self.look_at.get()
            || !patience.is_zero() && self.look(passed, patience, thread_time())
    }

    #[cold]
    fn look(&self, passed: Duration, patience: Duration, time: Option<ThreadTime>) -> bool {
        let Some(time) = time else {
            return passed < patience;
        };
        let first = self.first.get().unwrap_or(time);
        self.first.set(Some(first));
        let left = patience.saturating_sub(time.on_cpu.saturating_sub(first.on_cpu));
        // It is over then if the thread keeps its CPU.
        self.look_at.set(passed + left);
        !left.is_zero() && time.waits == first.waits
    }
}
