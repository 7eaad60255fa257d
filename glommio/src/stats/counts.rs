//! Where events are counted, each by one call at the place where it happens.
//!
//! What is counted here is shown by `metrics`, and exists only with that feature: without it a
//! [`Counter`] is empty, and so is all that is made of counters. An event that users see without
//! the feature is counted where the statistics of 0.9 need it, and copied ([`RunCounts::publish`]).

use std::fmt;
use std::ops::Deref;
#[cfg(feature = "metrics")]
use std::sync::Arc;
#[cfg(feature = "metrics")]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[cfg(feature = "metrics")]
use super::histogram::LiveHistogram;

/// A number that one thread writes and others read.
#[derive(Default)]
pub(crate) struct Counter(#[cfg(feature = "metrics")] AtomicU64);

impl Counter {
    /// For the one thread that writes: a load and a store, no read-modify-write.
    #[inline(always)]
    pub(crate) fn add(&self, number: u64) {
        self.set(self.read().wrapping_add(number));
    }

    #[inline(always)]
    fn set(&self, number: u64) {
        #[cfg(feature = "metrics")]
        self.0.store(number, Ordering::Relaxed);
        #[cfg(not(feature = "metrics"))]
        let _ = number;
    }

    /// For any thread.
    #[inline(always)]
    pub(crate) fn read(&self) -> u64 {
        #[cfg(feature = "metrics")]
        {
            self.0.load(Ordering::Relaxed)
        }
        #[cfg(not(feature = "metrics"))]
        {
            0
        }
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

/// Counts of one part of an executor, on cache lines of their own.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts<C>(
    #[cfg(feature = "metrics")] Arc<Aligned<C>>,
    #[cfg(not(feature = "metrics"))] C,
);

#[cfg(feature = "metrics")]
#[derive(Debug, Default)]
#[repr(align(128))]
struct Aligned<C>(C);

#[cfg(feature = "metrics")]
impl<C> Clone for SharedCounts<C> {
    fn clone(&self) -> Self {
        SharedCounts(Arc::clone(&self.0))
    }
}

/// There is nothing to share.
#[cfg(not(feature = "metrics"))]
impl<C: Default> Clone for SharedCounts<C> {
    fn clone(&self) -> Self {
        SharedCounts::default()
    }
}

impl<C> Deref for SharedCounts<C> {
    type Target = C;

    #[inline(always)]
    fn deref(&self) -> &C {
        #[cfg(feature = "metrics")]
        {
            &self.0.0
        }
        #[cfg(not(feature = "metrics"))]
        {
            &self.0
        }
    }
}

/// Of the loop.
#[derive(Debug, Default)]
pub(crate) struct RunCounts {
    pub(crate) turns: Counter,
    pub(crate) parks: Counter,
    pub(crate) slice_overruns: Counter,
    pub(crate) polls: Counter,
    pub(crate) first_polls: Counter,
    pub(crate) tasks_queued: Counter,
    pub(crate) wakes_by_io: Counter,
    pub(crate) wakes_by_threads: Counter,
    pub(crate) tasks_panicked: Counter,
    pub(crate) datagrams_received: Counter,
    pub(crate) datagram_pauses: Counter,
}

/// How much longer than its slice a round may last before it counts: the thread may have had to
/// wait for a core.
const OVERRUN: Duration = Duration::from_millis(1);

impl RunCounts {
    /// A round that was to end at `slice_end` is over `now`, which is asked for with the feature
    /// only.
    #[inline(always)]
    pub(crate) fn round_over(&self, now: impl FnOnce() -> Instant, slice_end: Instant) {
        if cfg!(feature = "metrics") && now().saturating_duration_since(slice_end) >= OVERRUN {
            self.slice_overruns.add(1);
        }
    }

    /// By `recv_many`. They are counted with the feature only.
    #[inline(always)]
    pub(crate) fn datagrams_received(&self, count: impl FnOnce() -> usize) {
        if cfg!(feature = "metrics") {
            self.datagrams_received.add(count() as u64);
        }
    }

    /// What the executor counts for itself.
    #[inline(always)]
    pub(crate) fn publish(&self, polls: u64, first_polls: u64, tasks_queued: u64) {
        self.polls.set(polls);
        self.first_polls.set(first_polls);
        self.tasks_queued.set(tasks_queued);
    }
}

/// Of the timers.
#[derive(Debug, Default)]
pub(crate) struct TimerCounts {
    pub(crate) armed: Counter,
    pub(crate) rearmed: Counter,
    pub(crate) cancelled: Counter,
    #[cfg(feature = "metrics")]
    pub(crate) fired: Counter,
    #[cfg(feature = "metrics")]
    pub(crate) lateness: LiveHistogram,
}

#[cfg(feature = "metrics")]
impl TimerCounts {
    /// Timers with these `deadlines` have fired at `now`.
    pub(crate) fn fired(&self, now: Instant, deadlines: &[Instant]) {
        for &deadline in deadlines {
            self.lateness
                .record(now.saturating_duration_since(deadline));
        }
        self.fired.add(deadlines.len() as u64);
    }
}

/// Of the ring.
#[derive(Debug, Default)]
pub(crate) struct RingCounts {
    pub(crate) enters: Counter,
    pub(crate) submissions: Counter,
}

impl RingCounts {
    #[inline(always)]
    pub(crate) fn entered(&self, submitted: usize) {
        self.enters.add(1);
        self.submissions.add(submitted as u64);
    }
}

/// Of a pool of blocking threads; written under its lock.
#[derive(Debug, Default)]
pub(crate) struct PoolCounts {
    pub(crate) begun: Counter,
    pub(crate) done: Counter,
}

#[cfg(not(feature = "metrics"))]
const _: () = assert!(size_of::<(SharedCounts<RunCounts>, SharedCounts<TimerCounts>)>() == 0);
