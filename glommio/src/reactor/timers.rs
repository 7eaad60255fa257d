//! The timers of one executor: the queue, the batches in which they expire, and how long the thread
//! may sleep or run because of them.
//!
//! ```text
//!   TimerEntry ── insert, rearm, cancel ──▶ queue ── a pass: up to EXPIRE_BUDGET ──▶ wakers are called
//!                                             │
//!                                             └── next expiry (+ slack) ──▶ the end of a sleep or a slice
//! ```
//!
//! A pass that reaches its budget leaves timers that are due. The next one waits for the tasks that
//! this one has woken, up to `batch_patience` of [`Tuning`](crate::tuning::Tuning).
//!
//! No borrow of the queue is held while a waker is called, cloned or dropped: that may come back to
//! the timers.

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::batch_gate::BatchGate;
#[cfg(any(feature = "audit", feature = "metrics"))]
use super::watched_queue::WatchedQueue as TimerQueue;
use crate::clock;
use crate::panic::wake;
use crate::ring::Wait;
use crate::stats::{SharedCounts, TimerCounts};
use crate::sys::prefetch::prefetch;
use crate::sys::thread_time::ThreadTime;
use crate::timer_queue::Handle;
#[cfg(not(any(feature = "audit", feature = "metrics")))]
use crate::timer_queue::TimerQueue;
use crate::tuning;

/// Timers that expire in one turn. What is left stays first in line, and I/O is looked at in
/// between.
pub(super) const EXPIRE_BUDGET: usize = 256;

/// See the module.
pub(super) struct Timers {
    queue: RefCell<TimerQueue<Waker>>,
    /// How long after its deadline a timer may be looked at, if nothing else calls for a look.
    slack: Duration,
    /// The last pass stopped at its budget.
    has_more_due: Cell<bool>,
    last_pass: Cell<Instant>,
    batch_gate: BatchGate,
    /// Timers due until then have expired, and every task that they woke has run.
    expired_and_run_until: Cell<Instant>,
    pub(super) counts: SharedCounts<TimerCounts>,
    /// Scratch space, kept for its allocation.
    expired: Cell<Vec<Waker>>,
}

/// What expired in a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Wakers were called.
    pub(super) woke: bool,
    /// They were, and some timers that are due are left.
    pub(super) is_partial: bool,
}

impl Timers {
    pub(super) fn new(now: Instant, slack: Duration) -> Self {
        Timers {
            queue: RefCell::new(TimerQueue::new(now)),
            slack,
            has_more_due: Cell::new(false),
            last_pass: Cell::new(now),
            batch_gate: BatchGate::default(),
            expired_and_run_until: Cell::new(now),
            counts: SharedCounts::default(),
            // Grown in the turn that needs it, it would have the allocator tidy up first (glibc
            // consolidates its fast bins before it serves a kilobyte), which takes
            // milliseconds where many tasks have ended.
            expired: Cell::new(Vec::with_capacity(EXPIRE_BUDGET)),
        }
    }

    /// Timers that are armed now.
    pub(super) fn len(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Adds a timer that calls `waker` at `deadline`.
    #[inline]
    pub(super) fn insert(&self, deadline: Instant, waker: Waker) -> Handle {
        self.counts.armed.add(1);
        self.queue.borrow_mut().insert(deadline, waker)
    }

    /// Moves a timer to `deadline`. The name that it has from here on, or nothing if `handle` names
    /// none.
    #[inline]
    pub(super) fn rearm(&self, handle: Handle, deadline: Instant) -> Option<Handle> {
        let mut queue = self.queue.borrow_mut();
        if !queue.rearm(handle, deadline) {
            return None;
        }
        self.counts.rearmed.add(1);
        Some(queue.compact(handle).unwrap_or(handle))
    }

    /// Takes a timer out, if `handle` names one. Its waker is to be dropped by the caller.
    #[inline]
    pub(super) fn cancel(&self, handle: Handle) -> Option<Waker> {
        let cancelled = self.queue.borrow_mut().cancel(handle);
        self.counts.cancelled.add(u64::from(cancelled.is_some()));
        cancelled
    }

    /// Whether `handle` names a timer.
    pub(super) fn is_armed(&self, handle: Handle) -> bool {
        self.queue.borrow_mut().get_mut(handle).is_some()
    }

    /// Whether the timer wakes what `waker` wakes; nothing if `handle` names none.
    #[inline]
    pub(super) fn will_wake(&self, handle: Handle, waker: &Waker) -> Option<bool> {
        let mut queue = self.queue.borrow_mut();
        queue.get_mut(handle).map(|known| known.will_wake(waker))
    }

    /// Has the timer call `waker`, and returns the one before; or `waker` if `handle` names none.
    /// It is to be dropped by the caller.
    pub(super) fn replace_waker(&self, handle: Handle, waker: Waker) -> Result<Waker, Waker> {
        match self.queue.borrow_mut().get_mut(handle) {
            Some(known) => Ok(std::mem::replace(known, waker)),
            None => Err(waker),
        }
    }

    /// Takes all wakers out, without calling them. They are to be dropped by the caller.
    pub(super) fn clear(&self) -> std::vec::IntoIter<Waker> {
        let wakers = self.queue.borrow_mut().disarm_all();
        self.counts.cancelled.add(wakers.len() as u64);
        wakers.into_iter()
    }

    /// Whether the last pass left timers that are due.
    #[inline]
    pub(super) fn has_more_due(&self) -> bool {
        self.has_more_due.get()
    }

    /// The tasks that were woken by passes so far have run.
    #[inline]
    pub(super) fn woken_have_run(&self) {
        self.expired_and_run_until.set(self.last_pass.get());
    }

    /// Timers due until then have expired, and every task that they woke has run.
    pub(super) fn expired_and_run_until(&self) -> Instant {
        self.expired_and_run_until.get()
    }

    /// Wakes the tasks whose timers are due at `now`, up to [`EXPIRE_BUDGET`] of them; none if the
    /// pass before left some, those that it woke have not all run (`is_batch_done`), and there
    /// is time yet.
    pub(super) fn expire_batch(&self, now: Instant, is_batch_done: bool) -> Batch {
        let waits = self.has_more_due.get()
            && !is_batch_done
            // Time that stands still would keep them for as long as anything runs.
            && !clock::is_paused()
            && self.batch_gate.lasts(
                now.saturating_duration_since(self.last_pass.get()),
                tuning::get().batch_patience,
                ThreadTime::now,
            );
        if waits {
            Batch::default()
        } else {
            self.expire(now)
        }
    }

    /// One pass.
    pub(super) fn expire(&self, now: Instant) -> Batch {
        let mut expired = self.expired.take();
        let more = self
            .queue
            .borrow_mut()
            .expire(now, EXPIRE_BUDGET, &mut expired);
        let woke = !expired.is_empty();
        self.has_more_due.set(more);
        self.last_pass.set(now);
        self.batch_gate.begin(tuning::get().batch_patience);
        #[cfg(feature = "metrics")]
        if woke {
            self.counts.fired(now, self.queue.borrow().last_expired());
        }
        let mut batch = expired.drain(..);
        while let Some(waker) = batch.next() {
            // Timers that are due together were seldom armed together: their tasks are far from
            // each other.
            let ahead = tuning::get().wakes_prefetched;
            if ahead > 0
                && let Some(soon) = batch.as_slice().get(ahead)
            {
                prefetch::<3>(soon.data());
            }
            self.wake_expired(waker);
        }
        drop(batch);
        self.expired.set(expired);
        Batch {
            woke,
            is_partial: more && woke,
        }
    }

    #[inline]
    fn wake_expired(&self, waker: Waker) {
        #[cfg(feature = "audit")]
        self.queue.borrow_mut().waking();
        wake(waker);
    }

    /// When the timers want to be looked at next: the earliest deadline, or a bound before it.
    #[inline]
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.queue.borrow_mut().next_expiry()
    }

    /// When a timer due at `deadline` must be looked at, at the latest.
    pub(super) fn latest(&self, deadline: Instant) -> Instant {
        deadline.checked_add(self.slack).unwrap_or(deadline)
    }

    /// When the first of them must be looked at, at the latest, however long tasks run; in real time.
    #[inline]
    pub(super) fn latest_of_first(&self) -> Option<Instant> {
        if self.queue.borrow().is_empty() {
            return None;
        }
        let first = self.next_expiry()?;
        clock::real_time_of(self.latest(first))
    }

    /// Whether they are to be looked at, for one that is due or for the queue's own sake.
    pub(super) fn want_pass_at(&self, now: Instant) -> bool {
        let upkeep = self.queue.borrow_mut().next_upkeep();
        let expiry = self.next_expiry();
        expiry.into_iter().chain(upkeep).any(|at| at <= now)
    }

    /// How long the thread may sleep.
    pub(super) fn longest_sleep(&self) -> Wait {
        let expiry = self.next_expiry();
        // One that came due while tasks ran costs no sleep, hence is not kept waiting for others.
        // Without slack the kernel sees that for itself.
        if !self.slack.is_zero() && expiry.is_some_and(|deadline| deadline <= clock::now()) {
            return Wait::Now;
        }
        // The queue's own affairs wait for no others either: they are what keeps timers on time.
        let latest = expiry.map(|deadline| self.latest(deadline));
        let upkeep = self.queue.borrow_mut().next_upkeep();
        let Some(end) = latest.into_iter().chain(upkeep).min() else {
            return Wait::Forever;
        };
        #[cfg(feature = "audit")]
        self.is_to_wait_until(end);
        // A paused clock gets nowhere while the thread sleeps.
        clock::real_time_of(end).map_or(Wait::Forever, Wait::Until)
    }

    /// The thread is to sleep, or to run tasks, until `end`.
    #[cfg(feature = "audit")]
    pub(super) fn is_to_wait_until(&self, end: Instant) {
        self.queue.borrow_mut().is_to_wait_until(end, self.slack);
    }
}
