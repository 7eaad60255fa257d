//! Sleeping.

use std::time::Instant;

use super::Reactor;
use super::user_data::WAKE_UP;
use crate::ring::Submission;

impl Reactor {
    /// Sleeps until a completion, the earliest timer or a foreign wake; returns at once if any of
    /// them is there, or if taking leave of the last round made something runnable.
    pub(super) fn park(&self, is_idle: &impl Fn() -> bool) {
        self.disarm_slice_timeout();
        if !self.spin_before_park.is_zero() && !self.spin(is_idle) {
            return;
        }
        self.flush();
        self.watch_wake_ups();
        let polled_sleep_end = self.polled_sleep_end();
        let may_sleep = is_idle()
            && !self.timers.has_more_due()
            && !self.in_flight.borrow().has_backlog()
            && (polled_sleep_end.is_some() || !self.is_polling())
            && self.wake_up_watched.get();
        if !may_sleep {
            return self.exchange();
        }
        // Nothing that could arm a timer runs between here and the wait.
        let wait = self.timers.longest_sleep();
        if self.is_near(wait) {
            self.exchange();
            if is_idle() {
                self.poll_near(wait);
            }
            return self.exchange();
        }
        if !self.notifier.announce_sleep() {
            return self.exchange();
        }
        {
            // Also after a panic: an executor that is said to sleep costs each waker a system call.
            scopeguard::defer! { self.notifier.awake() };
            self.counts.parked();
            self.enter(match polled_sleep_end {
                Some(end) => wait.no_longer_than(end),
                None => self.with_sleep_timeout(self.timed_wait.begin(wait)),
            });
        }
        self.reap();
    }

    /// Looks for work without sleeping, for as long as the executor was told to; true if there is
    /// still none.
    fn spin(&self, is_idle: &impl Fn() -> bool) -> bool {
        let end = super::deadline_after(Instant::now(), self.spin_before_park);
        loop {
            self.exchange();
            let now = Instant::now();
            // What is due expires in the turn that follows, which has one budget for it.
            if !is_idle() || self.notifier.is_notified() || self.timers.want_pass_at(now) {
                return false;
            }
            if now >= end {
                return true;
            }
            std::hint::spin_loop();
        }
    }

    /// Has the ring watch the wake-up descriptor, once for many wakes.
    fn watch_wake_ups(&self) {
        if self.wake_up_watched.get() {
            return;
        }
        // What was signalled so far is answered by the look at the mailbox before the sleep; left
        // in the descriptor it would end the sleep at once.
        self.notifier.clear_signal();
        let watch = Submission::poll_always(self.notifier.signal_fd(), libc::POLLIN as u32)
            .with_user_data(WAKE_UP);
        self.push(|| self.ring.push_memoryless(&watch));
        self.wake_up_watched.set(true);
    }
}
