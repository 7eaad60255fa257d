//! The end of a reactor: nothing is closed before the kernel has let go of all memory.

use std::time::{Duration, Instant};
use std::{io, mem};

use super::{FLUSH_ATTEMPTS, LOST, Reactor, deadline_after};
use crate::panic::{self, FirstPanic};
use crate::ring::Wait;

/// How long a drain goes on in silence.
const SILENT: Duration = Duration::from_secs(1);

impl Reactor {
    /// Cancels everything in flight and reaps until nothing is. Requests that a device already
    /// works on cannot be cancelled: they are waited for, with a line in the log once a second.
    /// Keeps the first panic of code that is called meanwhile in `panics`: unwinding from here
    /// would skip the waiting.
    pub(crate) fn shutdown(&self, panics: &mut FirstPanic) {
        self.is_closing.set(true);
        self.pools.close(panics);
        let keys = self.in_flight.borrow().keys();
        for key in keys {
            let given_up = self.in_flight.borrow_mut().abandon(key);
            panics.catch(|| drop(given_up));
        }
        self.drain(SILENT, panics);
    }

    /// Waits until nothing is in flight; every `silent`, the log is told. What is left if the ring
    /// does not work any more is leaked with the table.
    pub(super) fn drain(&self, silent: Duration, panics: &mut FirstPanic) {
        let mut left = self.in_flight.borrow().len();
        let mut patience = deadline_after(Instant::now(), silent);
        while left > 0 {
            let waited = panics.catch(|| self.hand_over_and_wait(patience));
            let before = mem::replace(&mut left, self.in_flight.borrow().len());
            let has_lost = self.has_lost_completions.get();
            if let Some(Err(error)) = waited
                && !has_lost
            {
                panic::log(|| {
                    tracing::error!(
                        "dropping an executor: its ring fails, {left} operations are leaked: {error}"
                    );
                });
                return;
            }
            let is_silent = Instant::now() >= patience;
            if left < before || is_silent {
                patience = deadline_after(Instant::now(), silent);
            }
            if left == 0 || !is_silent {
                continue;
            }
            if has_lost {
                // Some of them have completed, and the rest may yet.
                panic::log(|| {
                    tracing::error!("dropping an executor: {left} operations are leaked: {LOST}");
                });
                return;
            }
            panic::log(|| {
                tracing::warn!("dropping an executor: waiting for {left} operations in the kernel");
            });
        }
    }

    fn hand_over_and_wait(&self, until: Instant) -> io::Result<()> {
        for _ in 0..FLUSH_ATTEMPTS {
            if self.in_flight.borrow_mut().flush(&self.ring).is_ok() {
                break;
            }
            self.try_enter(Wait::Now)?;
            self.reap();
        }
        if self.is_polling() {
            self.try_exchange_polled()?;
            self.try_enter(Wait::Now)?;
        } else {
            self.try_enter(Wait::Until(until))?;
        }
        self.reap();
        Ok(())
    }
}

/// Timers that have neither expired nor been disarmed by now. Their wakers' destructors may use
/// timers, which are out of their reach then.
impl Drop for Reactor {
    fn drop(&mut self) {
        for waker in self.timers.clear() {
            panic::contain("dropping the waker of a timer panicked", || drop(waker));
        }
    }
}
