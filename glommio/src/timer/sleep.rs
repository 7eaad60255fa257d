//! Waiting for a point in time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::clock;
use crate::reactor::{TimerEntry, budget, current, deadline_after};

/// A future that completes at a deadline, and returns it.
///
/// The deadline is fixed when the timer is created or [`reset`](Self::reset). The output is that
/// deadline, so `Instant::now() - output` is how late the task got to run. Polled again after its
/// end, a timer gives the same output at once.
///
/// Only the task that awaits it is suspended; others of its task queue run on.
///
/// # Cancel safety
///
/// Dropping a timer takes it out of the queue. A timer belongs to the executor in which it was
/// created, wherever it is polled, reset or dropped. Once that executor is gone, the timer wakes no task.
///
/// # Examples
///
/// ```
/// use glommio::timer::Timer;
/// use std::time::{Duration, Instant};
///
/// glommio::LocalExecutor::default().run(async {
///     let deadline = Timer::new(Duration::from_millis(2)).await;
///     assert!(Instant::now() >= deadline);
///
///     let mut timeout = Timer::at(deadline + Duration::from_secs(3600));
///     timeout.reset(Duration::from_millis(1));
///     (&mut timeout).await;
///     timeout.reset_at(deadline); // a timer that was done waits again
///     assert_eq!(timeout.await, deadline);
/// });
/// ```
#[derive(Debug)]
pub struct Timer {
    deadline: Instant,
    entry: TimerEntry,
}

impl Timer {
    /// A timer that is done `dur` from now. It costs nothing in the kernel, and is armed when it is
    /// first polled.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    #[inline]
    pub fn new(dur: Duration) -> Timer {
        let mut entry = TimerEntry::new(current::current());
        entry.expect_within(dur);
        Timer {
            deadline: deadline_after(clock::now(), dur),
            entry,
        }
    }

    /// Moves the deadline to `dur` from now, sooner or later than it was.
    ///
    /// A task that waits for the timer goes on waiting, for the new deadline, without polling it
    /// again. A timer that was done waits again.
    pub fn reset(&mut self, dur: Duration) {
        if !self.move_to(deadline_after(clock::now(), dur)) {
            self.entry.expect_within(dur);
        }
    }

    /// A timer that is done at `deadline`; when it is first polled if that is past. It is armed
    /// then, as that of [`new`](Self::new) is.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn at(deadline: Instant) -> Timer {
        let mut entry = TimerEntry::new(current::current());
        entry.expect_at(deadline);
        Timer { deadline, entry }
    }

    /// Moves the deadline to `deadline`, as [`reset`](Self::reset) does.
    pub fn reset_at(&mut self, deadline: Instant) {
        if !self.move_to(deadline) {
            self.entry.expect_at(deadline);
        }
    }

    /// Its task is not woken any more.
    pub(super) fn disarm(&mut self) {
        self.entry.disarm();
    }

    /// The time to the deadline of an armed timer; `None` if it is not armed.
    pub(super) fn remaining(&self) -> Option<Duration> {
        let now = clock::now();
        self.entry
            .is_armed()
            .then(|| self.deadline.saturating_duration_since(now))
    }

    /// One poll. A timer that was not armed yet and whose task has no leave waits for a turn, also if
    /// it is due; one that has waited is ready without leave, so that a time limit ends what was
    /// refused.
    #[inline]
    pub(super) fn poll_with_leave(&mut self, cx: &Context<'_>, has_leave: bool) -> Poll<Instant> {
        let (deadline, waker) = (self.deadline, cx.waker());
        let waits = !has_leave && self.entry.arm_first(deadline, waker);
        if waits || !self.entry.is_past_or_arm(deadline, waker) {
            return Poll::Pending;
        }
        budget::spend();
        Poll::Ready(deadline)
    }

    /// False if it is not armed: it was not polled yet, or has expired already. Then the next poll,
    /// which the waking of the task brings about, sees the new deadline.
    fn move_to(&mut self, deadline: Instant) -> bool {
        self.deadline = deadline;
        self.entry.rearm(deadline)
    }
}

impl Future for Timer {
    type Output = Instant;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        self.poll_with_leave(cx, budget::has_leave())
    }
}

/// Suspends the task for `wait`, counted from the first poll.
///
/// # Panics
///
/// Panics when it is first polled if no executor is running on this thread.
///
/// # Cancel safety
///
/// Nothing is lost when it is dropped.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::timer::{sleep, sleep_until};
/// use std::time::{Duration, Instant};
///
/// let start = Instant::now();
/// sleep(Duration::from_millis(1)).await;
/// sleep_until(start + Duration::from_millis(2)).await;
/// assert!(start.elapsed() >= Duration::from_millis(2), "never early");
/// # });
/// ```
pub async fn sleep(wait: Duration) {
    Timer::new(wait).await;
}

/// Suspends the task until `deadline`. If that is past, it is ready at once, unless the slice of the
/// task is over.
///
/// # Panics
///
/// Panics when it is first polled if no executor is running on this thread.
///
/// # Cancel safety
///
/// Nothing is lost when it is dropped.
pub async fn sleep_until(deadline: Instant) {
    Timer::at(deadline).await;
}
