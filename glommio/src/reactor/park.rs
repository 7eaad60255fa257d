//! Sleeping, and asking running tasks to stop: the two waits of a reactor.

use std::time::{Duration, Instant};

use super::Reactor;
use super::preempt::{Phase, SETTLE};
use super::user_data::{IGNORED, PREEMPTION, WAKE_UP};
use crate::planted::planted;
use crate::ring::{QueueFull, Submission, TimeoutCell, Wait};

impl Reactor {
    /// Sleeps until a completion, the earliest timer or a foreign wake; returns at once if any of
    /// them is there, or if taking leave of the last round made something runnable.
    pub(super) fn park(&self, is_idle: &impl Fn() -> bool) {
        self.take_back_slice_timeout();
        if !self.spin_before_park.is_zero() && !self.spin(is_idle) {
            return;
        }
        self.flush();
        self.watch_wake_ups();
        let may_sleep = is_idle()
            && !self.more_timers_due.get()
            && !self.in_flight.borrow().has_backlog()
            && self.wake_up_watched.get();
        if !may_sleep || !self.notifier.announce_sleep() {
            return self.exchange();
        }
        {
            // Also after a panic: an executor that is said to sleep costs each waker a system call.
            scopeguard::defer! { self.notifier.awake() };
            // Nothing that could arm a timer runs between here and the wait.
            self.enter(self.with_sleep_timeout(self.sleep()));
        }
        self.reap();
    }

    /// How long to sleep, as far as the timers go.
    pub(super) fn sleep(&self) -> Wait {
        let expiry = self.next_expiry();
        // One that came due while tasks ran costs no sleep, hence is not kept waiting for others.
        // Without slack the kernel sees that for itself.
        if !self.timer_slack.is_zero() && expiry.is_some_and(|deadline| deadline <= Instant::now())
        {
            return Wait::Now;
        }
        // The queue's own affairs wait for no others either: they are what keeps timers on time.
        let latest = expiry.map(|deadline| self.latest(deadline));
        let upkeep = self.timers.borrow_mut().next_upkeep();
        let Some(mut end) = latest.into_iter().chain(upkeep).min() else {
            return Wait::Forever;
        };
        if planted!("idle_polls") {
            end = end.min(Instant::now() + Duration::from_millis(1));
        }
        #[cfg(feature = "audit")]
        if let Some(deadline) = expiry {
            self.audit_end(end, deadline);
        }
        Wait::Until(end)
    }

    /// When a timer due at `deadline` must be looked at, at the latest.
    pub(super) fn latest(&self, deadline: Instant) -> Instant {
        if planted!("slack") {
            return deadline + Duration::from_millis(5);
        }
        deadline.checked_add(self.timer_slack).unwrap_or(deadline)
    }

    /// A timer was set to `deadline`: tasks must not run past it for longer than the slack.
    #[inline]
    pub(super) fn limit_by_timer(&self, deadline: Instant) {
        // Nearly all timers end after the slice: for them this is one comparison.
        if deadline < self.preempt.slice_end() && !planted!("no_preempt") {
            self.preempt.limit(self.latest(deadline));
        }
    }

    /// Looks for work without sleeping, for as long as the executor was told to; true if there is
    /// still none.
    fn spin(&self, is_idle: &impl Fn() -> bool) -> bool {
        let end = super::deadline_after(Instant::now(), self.spin_before_park);
        loop {
            self.exchange();
            let now = Instant::now();
            // What is due fires in the turn that follows, which has one budget for it.
            if !is_idle() || self.notifier.is_notified() || self.wants_poll_at(now) {
                return false;
            }
            if now >= end {
                return true;
            }
            std::hint::spin_loop();
        }
    }

    /// Whether the timers are to be looked at, for one that is due or for their own sake.
    fn wants_poll_at(&self, now: Instant) -> bool {
        let upkeep = self.timers.borrow_mut().next_upkeep();
        let expiry = self.next_expiry();
        expiry.into_iter().chain(upkeep).any(|at| at <= now)
    }

    /// Has the ring watch the wake-up descriptor, once for many wakes.
    fn watch_wake_ups(&self) {
        if self.wake_up_watched.get() {
            return;
        }
        // What was signalled so far is answered by the look at the mailbox before the sleep; left in
        // the descriptor it would end the sleep at once.
        self.notifier.clear_signal();
        let watch = Submission::poll_always(self.notifier.signal_fd(), libc::POLLIN as u32)
            .with_user_data(WAKE_UP);
        self.push(|| self.ring.push_memoryless(&watch));
        self.wake_up_watched.set(true);
    }

    /// Whether the running task should give the thread back; see [`super::preempt`].
    #[inline]
    pub(crate) fn need_preempt(&self) -> bool {
        if self.notifier.is_notified() {
            return true;
        }
        match self.preempt.phase.get() {
            Phase::Young => self.is_over_at(Instant::now()),
            Phase::Settled => self.ring.work_pending(),
            Phase::Due => true,
        }
    }

    /// The same between two polls, of which several in a young round may share a reading of the clock.
    #[inline]
    pub(crate) fn ends_round(&self) -> bool {
        if self.notifier.is_notified() {
            return true;
        }
        match self.preempt.phase.get() {
            Phase::Young => self.ends_young_round(),
            Phase::Settled => self.ring.work_pending(),
            Phase::Due => true,
        }
    }

    fn ends_young_round(&self) -> bool {
        if self.preempt.ends_stretch() {
            let now = Instant::now();
            self.preempt.begin_stretch(now);
            return self.is_over_at(now);
        }
        // What has completed ends the round if it is not so young any more.
        self.ring.work_pending() && self.is_over_at(Instant::now())
    }

    /// Ends the slice no later than `length` after its start, but no sooner than slices end.
    pub(crate) fn limit_slice(&self, length: Duration) {
        if let Some(end) = self.preempt.round_start().checked_add(length.max(SETTLE)) {
            self.preempt.limit(end);
        }
    }

    /// Before the first task of a round: its slice is `length`, not what the turn was told.
    pub(crate) fn restart_round(&self, length: Duration) {
        self.begin_round(self.preempt.round_start(), length);
    }

    /// Ends the slice as early as a slice can: somebody who was just woken waits behind others.
    pub(crate) fn hurry(&self) {
        self.limit_slice(SETTLE);
    }

    /// Whether the kernel has completions that nobody has looked at: a few loads.
    #[inline]
    pub(crate) fn work_pending(&self) -> bool {
        self.ring.work_pending()
    }

    /// Whether a young round is over; settles it when it is time to.
    fn is_over_at(&self, now: Instant) -> bool {
        if now >= self.preempt.slice_end() {
            self.preempt.phase.set(Phase::Due);
            return true;
        }
        if !self.preempt.settles(now) {
            return false;
        }
        self.settle();
        self.preempt.phase.get() == Phase::Due || self.ring.work_pending()
    }

    /// The round lasts: hands the kernel what waits, and has it post the end of the slice.
    fn settle(&self) {
        let end = self.preempt.slice_end();
        self.preempt.phase.set(Phase::Settled);
        match self.preempt.armed_at.replace(Some(end)) {
            None => self.push(|| self.ring.push_timeout(TimeoutCell::Slice, end, PREEMPTION)),
            Some(armed) if armed != end => {
                self.push(|| {
                    self.ring
                        .push_timeout_move(TimeoutCell::Slice, end, PREEMPTION, IGNORED)
                });
            }
            Some(_) => {}
        }
        self.hand_over();
        // The move of the timeout completes at once, and is no reason to stop. An operation is.
        self.reap();
        if self.has_woken.get() {
            self.preempt.phase.set(Phase::Due);
        }
    }

    /// Hands over what was submitted in the middle of a round. Takes no completions, hence wakes no task.
    pub(super) fn hand_over(&self) {
        // One attempt: what does not fit goes with the next turn, which is near.
        let _ = self.in_flight.borrow_mut().flush(&self.ring);
        if self.ring.queued() > 0
            && let Err(error) = self.ring.submit_only()
        {
            tracing::warn!(
                "submitting in the middle of a round failed, retried at its end: {error}"
            );
        }
    }

    /// Removes the slice's timeout and takes its completion, which would end the sleep otherwise.
    fn take_back_slice_timeout(&self) {
        if self.preempt.armed_at.get().is_none() {
            return;
        }
        self.push(|| self.ring.push_timeout_removal(PREEMPTION, IGNORED));
        // Fired or removed, it completes: the wait is for the kernel's task work only.
        while self.preempt.armed_at.get().is_some() {
            self.enter(Wait::Forever);
            self.reap();
        }
    }

    /// Pushes, making room if the queue is full.
    fn push(&self, attempt: impl Fn() -> Result<(), QueueFull>) {
        while attempt().is_err() {
            self.enter(Wait::Now);
            // An older kernel takes nothing in while the completion queue overflows.
            self.reap();
        }
    }
}
