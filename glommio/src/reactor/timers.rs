//! What the reactor asks of the timer queue, and what it is held to with the feature `audit`.

use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use super::{EXPIRE_BUDGET, Reactor, wake, wake_by_ref};
use crate::planted::{self, planted};
use crate::sys::prefetch::prefetch;

/// How many wakes ahead the memory of a task is asked for.
const PREFETCHED: usize = 6;

impl Reactor {
    /// Wakes those whose timers are due at `now`, up to [`EXPIRE_BUDGET`] of them.
    pub(super) fn expire(&self, now: Instant) {
        if planted!("stutter") && planted::begins_half_second(self.last_expiry.get(), now) {
            thread::sleep(Duration::from_millis(250));
        }
        if planted!("memory_grows") && planted::begins_half_second(self.last_expiry.get(), now) {
            std::hint::black_box(vec![1_u8; 8 << 20].leak());
        }
        if planted!("slow_passes") && self.next_expiry().is_some_and(|at| at <= now) {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(!planted!("dies", one in 5000), "planted");
        let mut expired = self.expired.take();
        #[cfg(feature = "audit")]
        let clock = Instant::now();
        let more = self
            .timers
            .borrow_mut()
            .expire(now, EXPIRE_BUDGET, &mut expired);
        if more && planted!("slow_batches") {
            thread::sleep(Duration::from_millis(5));
        }
        self.more_timers_due.set(more);
        self.fired_in_part.set(more && !expired.is_empty());
        self.last_expiry.set(now);
        #[cfg(feature = "audit")]
        self.audit_pass(now, clock, more);
        self.has_woken
            .set(self.has_woken.get() || !expired.is_empty());
        let mut batch = expired.drain(..);
        while let Some(waker) = batch.next() {
            // Timers that are due together were seldom armed together: their tasks are far from each other.
            if let Some(soon) = batch.as_slice().get(PREFETCHED) {
                prefetch::<3>(soon.data());
            }
            self.wake_expired(waker);
        }
        drop(batch);
        self.expired.set(expired);
    }

    #[inline]
    fn wake_expired(&self, waker: Waker) {
        if planted!("double_wake") {
            self.audit.waking();
            wake_by_ref(&waker);
        }
        self.audit.waking();
        wake(waker);
    }

    /// When the timers want to be looked at next: the earliest deadline, or a bound before it.
    #[inline]
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let next = self.timers.borrow_mut().next_expiry();
        self.audit.announced(next);
        next
    }

    /// A sleep or a slice that is to end at `end` must not be longer than a timer due at `deadline` allows.
    #[cfg(feature = "audit")]
    pub(super) fn audit_end(&self, end: Instant, deadline: Instant) {
        if let Some(limit) = deadline.checked_add(self.timer_slack) {
            self.audit.lasts_until(end, limit);
        }
    }

    /// A slice is to end at `end`.
    #[cfg(feature = "audit")]
    pub(super) fn audit_slice(&self, end: Instant) {
        let next = self.timers.borrow_mut().next_expiry();
        if let Some(next) = next.filter(|_| !self.more_timers_due.get()) {
            self.audit_end(end, next);
        }
    }

    /// A pass for what is due at `now` has begun at `clock`, and is over.
    #[cfg(feature = "audit")]
    pub(super) fn audit_pass(&self, now: Instant, clock: Instant, has_more: bool) {
        let mut timers = self.timers.borrow_mut();
        let next = timers.next_expiry();
        let deadlines = timers.last_expired();
        self.audit.passed((now, clock), deadlines, has_more, next);
    }
}
