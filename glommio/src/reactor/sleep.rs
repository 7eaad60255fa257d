//! Sleeping.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::Driver;
use super::timed_wait::{TimedWait, TimerPrecision};
use super::timers::Timers;
use super::turn_time::deadline_after;
use super::user_data::WAKE_UP;
use crate::clock;
use crate::mailbox::Notifier;
use crate::ring::{Submission, Wait};

/// How the thread of an executor that has nothing to run waits.
pub(super) struct Sleep {
    notifier: Arc<Notifier>,
    timed_wait: TimedWait,
    spin_before_park: Duration,
}

impl Sleep {
    pub(super) fn new(
        notifier: Arc<Notifier>,
        precision: TimerPrecision,
        spin_before_park: Duration,
    ) -> Self {
        Sleep {
            notifier,
            timed_wait: TimedWait::new(precision),
            spin_before_park,
        }
    }

    /// Sleeps until a completion, the earliest timer or a foreign wake; returns at once if any of
    /// them is there, or if taking leave of the last round, which began at `round_start`, made
    /// something runnable. The slice's timeout is disarmed.
    pub(super) fn park(
        &self,
        driver: &Driver,
        timers: &Timers,
        round_start: Instant,
        is_idle: &impl Fn() -> bool,
    ) {
        if !self.spin_before_park.is_zero() && !self.spin(driver, timers, is_idle) {
            return;
        }
        driver.flush();
        self.watch_wake_ups(driver);
        let may_sleep = is_idle()
            && !timers.has_more_due()
            && !driver.in_flight.borrow().has_backlog()
            && driver.timeouts.watches_wake_ups.get();
        if !may_sleep {
            return driver.exchange();
        }
        // Nothing that could arm a timer runs between here and the wait.
        let wait = timers.longest_sleep();
        if self.timed_wait.is_near(wait, round_start) {
            driver.exchange();
            if is_idle() && self.poll_near(driver, wait) {
                self.timed_wait.polled();
            }
            return driver.exchange();
        }
        if !self.notifier.announce_sleep() {
            return driver.exchange();
        }
        {
            // Also after a panic: an executor that is said to sleep costs each waker a system call.
            scopeguard::defer! { self.notifier.awake() };
            driver.counts.parks.add(1);
            let wait = self.timed_wait.begin(wait);
            let timeout = &driver.timeouts.sleep_timeout;
            driver.enter(timeout.stand_in_for(wait, driver.ring(), round_start));
        }
        driver.take_deferred();
        driver.reap();
    }

    /// The thread is awake, and it is `now`.
    pub(super) fn is_over(&self, now: Instant) {
        self.timed_wait.end(now);
    }

    /// Whether another thread has sent something.
    #[inline]
    pub(super) fn is_notified(&self) -> bool {
        self.notifier.is_notified()
    }

    /// Looks for work without sleeping, for as long as the executor was told to; true if there is
    /// still none.
    fn spin(&self, driver: &Driver, timers: &Timers, is_idle: &impl Fn() -> bool) -> bool {
        let end = deadline_after(clock::real(), self.spin_before_park);
        loop {
            driver.exchange();
            let now = clock::real();
            // What is due expires in the turn that follows, which has one budget for it.
            if !is_idle() || self.is_notified() || timers.want_pass_at(clock::at(now)) {
                return false;
            }
            if now >= end {
                return true;
            }
            std::hint::spin_loop();
        }
    }

    /// Polls the clock until `wait` is over or something else happens. False if it was over already.
    pub(super) fn poll_near(&self, driver: &Driver, wait: Wait) -> bool {
        let Wait::Until(end) = wait else { return false };
        let mut has_waited = false;
        while clock::real() < end && !self.is_notified() && !driver.work_pending() {
            has_waited = true;
            std::hint::spin_loop();
        }
        has_waited
    }

    /// Has the ring watch the wake-up descriptor, once for many wakes.
    fn watch_wake_ups(&self, driver: &Driver) {
        let is_watched = &driver.timeouts.watches_wake_ups;
        if is_watched.get() {
            return;
        }
        // What was signalled so far is answered by the look at the mailbox before the sleep; left
        // in the descriptor it would end the sleep at once.
        self.notifier.clear_signal();
        let watch = Submission::poll_always(self.notifier.signal_fd(), libc::POLLIN as u32)
            .with_user_data(WAKE_UP);
        driver.push(|ring| ring.push_memoryless(&watch));
        is_watched.set(true);
    }
}

#[cfg(test)]
impl Sleep {
    pub(super) fn notifier(&self) -> &Arc<Notifier> {
        &self.notifier
    }

    pub(super) fn timed_wait(&self) -> &TimedWait {
        &self.timed_wait
    }
}
