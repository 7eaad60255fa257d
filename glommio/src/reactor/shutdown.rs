//! The end of a reactor: nothing is closed before the kernel has let go of all memory.

use std::time::{Duration, Instant};

use super::{LOST, Reactor, deadline_after};
use crate::panic::{self, FirstPanic};
use crate::ring::Wait;
use crate::timer_queue::TimerQueue;

/// How long a drain goes on in silence.
const SILENT: Duration = Duration::from_secs(1);

impl Reactor {
    /// Cancels everything in flight and reaps until nothing is. Requests that a device already works
    /// on cannot be cancelled: they are waited for, with a line in the log once a second. Keeps the
    /// first panic of a destructor in `panics`: unwinding from here would skip the waiting.
    pub(crate) fn shutdown(&self, panics: &mut FirstPanic) {
        self.is_closing.set(true);
        // What a panic may have left undelivered.
        self.reap();
        self.blocking.close(panics);
        let keys = self.in_flight.borrow().keys();
        for key in keys {
            let given_up = self.in_flight.borrow_mut().abandon(key);
            panics.catch(|| drop(given_up));
        }
        let mut left = self.in_flight.borrow().len();
        let mut patience = deadline_after(Instant::now(), SILENT);
        while left > 0 {
            self.flush();
            if let Err(error) = self.try_enter(Wait::Until(patience))
                && !self.has_lost_completions.get()
            {
                panic!("io_uring_enter failed: {error}");
            }
            self.reap();
            let before = std::mem::replace(&mut left, self.in_flight.borrow().len());
            let is_silent = Instant::now() >= patience;
            if left < before || is_silent {
                patience = deadline_after(Instant::now(), SILENT);
            }
            if left == 0 || !is_silent {
                continue;
            }
            if self.has_lost_completions.get() {
                // Some of them have completed, and the rest may yet: their memory stays, for good.
                tracing::error!("dropping an executor: leaking {left} operations: {LOST}");
                self.in_flight.borrow_mut().leak();
                return;
            }
            tracing::warn!("dropping an executor: waiting for {left} operations in the kernel");
        }
    }
}

/// What nobody has woken or taken back by now. Out of reach of the wakers' destructors, which may use timers.
impl Drop for Reactor {
    fn drop(&mut self) {
        let timers = self.timers.replace(TimerQueue::new(Instant::now()));
        for waker in timers.into_payloads() {
            panic::contain("dropping the waker of a timer panicked", || drop(waker));
        }
    }
}
