//! What the modules above ask of a reactor, beside operations ([`op_handle`](super::op_handle)) and
//! timers ([`timer_entry`](super::timer_entry)): each is a question to one of its parts.

use std::cell::RefMut;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::io_counters::IoCounters;
use super::polls::Polls;
use super::pools::{Pools, PoolsSettings, Retry};
use super::retry_timer::PoolRetryTimer;
use super::round_end::RoundEnd;
#[cfg(feature = "debugging")]
use super::user_data::OpKey;
use super::{Reactor, Settings};
use crate::blocking::BlockingPool;
use crate::error::GlommioError;
use crate::mailbox::Notifier;
use crate::memory::DmaBuffer;
#[cfg(feature = "metrics")]
use crate::metrics::{Parts, Registered};
#[cfg(feature = "debugging")]
use crate::ring::Asked;
use crate::ring::{Driver, Feature};
use crate::stats::RunCounts;
use crate::sys::fork_detect::Origin;

impl Reactor {
    /// Builds the reactor of an executor that will run on the calling thread.
    ///
    /// # Errors
    ///
    /// See [`Ring::new`](crate::ring::Ring::new).
    pub(crate) fn new(
        settings: Settings,
        notifier: Arc<Notifier>,
        pools: PoolsSettings,
    ) -> Result<Rc<Reactor>, GlommioError<()>> {
        let retry = Retry::new(Arc::clone(&notifier));
        Reactor::with_pools(settings, notifier, |this| {
            let timer = PoolRetryTimer::shared(this, Arc::clone(&retry).into());
            Pools::new(pools, retry, timer)
        })
    }

    /// What its ring is.
    pub(crate) fn driver(&self) -> Driver {
        self.driver.ring().driver()
    }

    /// How many submissions the ring holds.
    pub(crate) fn ring_entries(&self) -> usize {
        self.driver.ring().entries()
    }

    /// A buffer from the executor's I/O memory, or from the ordinary allocator if that is full.
    pub(crate) fn allocate_dma_buffer(&self, size: usize) -> DmaBuffer {
        self.driver.io.allocate(size)
    }

    /// Whether the ring of this reactor knows the memory of `buffer`, which is to be used for
    /// direct I/O. Makes it known if it is the first.
    pub(crate) fn is_registered(&self, buffer: &DmaBuffer) -> bool {
        self.driver.io.is_registered(buffer)
    }

    /// Whether this process was forked from the one that made the reactor, to which its ring
    /// belongs.
    pub(crate) fn is_inherited(&self) -> bool {
        self.driver.ring().is_inherited()
    }

    /// The process that made it.
    pub(crate) fn origin(&self) -> Origin {
        self.driver.ring().origin()
    }

    /// # Panics
    ///
    /// Panics if it [is inherited](Self::is_inherited).
    pub(crate) fn assert_own(&self) {
        self.driver.ring().assert_own();
    }

    /// Whether the kernel has `feature`, and it is not to be done without.
    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.driver.ring().features().has(feature)
    }

    /// See [`Driver::cancel_now`](super::driver::Driver::cancel_now).
    pub(crate) fn cancel_now(&self) {
        self.driver.cancel_now();
    }

    /// As [`cancel_now`](Self::cancel_now), outside of the executor's `run`: takes also what has
    /// ended thereby, which would wait until the executor runs again.
    pub(crate) fn cancel_and_reap(&self) {
        self.driver.cancel_now();
        if !self.is_inherited() {
            self.driver.reap();
        }
    }

    /// Whether the running task should give the thread back.
    #[inline]
    pub(crate) fn need_preempt(&self) -> bool {
        self.preempt.need_preempt(&self.driver)
    }

    /// Whether the round is over, between two polls; see [`Preempt`](super::preempt::Preempt::ends_round).
    #[inline]
    pub(crate) fn ends_round(&self, woken_wait: bool) -> bool {
        self.preempt.ends_round(&self.driver, woken_wait)
    }

    /// When the last turn looked at the clock: the round that follows begins.
    #[inline]
    pub(crate) fn round_start(&self) -> Instant {
        self.preempt.round_start()
    }

    /// Ends the slice no later than `length` after `start`, but no sooner than slices end.
    pub(crate) fn limit_slice(&self, start: Instant, length: Duration) {
        self.preempt.limit_slice(start, length);
    }

    /// Before the first task of a round: several were just woken, and none is to delay the others.
    pub(crate) fn shorten_slice(&self) {
        self.preempt.shorten_slice();
    }

    /// Which task is being polled.
    #[inline]
    pub(crate) fn polls(&self) -> &Polls {
        &self.polls
    }

    /// The poll of a task is over.
    #[inline]
    pub(crate) fn end_poll(&self) {
        self.round_ends.end_poll();
    }

    /// See [`RoundEnds`](super::round_end::RoundEnds::call_at_poll_end).
    pub(crate) fn call_at_poll_end(&self, it: Rc<dyn RoundEnd>) {
        self.round_ends.call_at_poll_end(it);
    }

    /// Has `it` called at the end of the round that runs, or at the end of the next if none does.
    /// From a completion that is delivered in the middle of a round it is the end of the next:
    /// that is the one in which those run who were woken.
    pub(crate) fn call_at_round_end(&self, it: Rc<dyn RoundEnd>) {
        let is_next = self.turn_time.is_known() && self.driver.completions.is_delivering();
        self.round_ends.call_at_round_end(it, is_next);
    }

    #[inline]
    pub(crate) fn counts(&self) -> &RunCounts {
        &self.driver.counts
    }

    /// What the operation of that [key](OpKey) asks the kernel for, if it has not completed.
    #[cfg(feature = "debugging")]
    pub(crate) fn asked(&self, index: u32, generation: u32) -> Option<Asked> {
        let key = OpKey { index, generation };
        self.driver.in_flight.borrow().asked(key)
    }

    /// Has the metrics of an executor listed, which may be a shard of a pool.
    #[cfg(feature = "metrics")]
    pub(crate) fn list_metrics(
        &self,
        (id, name, shard): (usize, &str, Option<usize>),
    ) -> Registered {
        Registered::new(Parts {
            id,
            name: name.to_owned(),
            shard,
            driver: self.driver(),
            run: self.driver.counts.clone(),
            timers: self.timers.counts.clone(),
            ring: self.driver.ring().counts().clone(),
            pools: self.pools.counts(),
        })
    }

    /// What the operations of its tasks are counted as.
    pub(crate) fn io_counters(&self) -> RefMut<'_, IoCounters> {
        self.driver.io_counters()
    }

    /// The `T` of this executor, made when it is first asked for.
    pub(crate) fn kept<T: Default + 'static>(&self) -> Rc<T> {
        self.kept.get()
    }

    /// The pool that runs blocking calls for users of this executor.
    pub(crate) fn blocking(&self) -> &BlockingPool {
        self.pools.blocking()
    }

    /// The pool that makes calls on files for this crate.
    pub(crate) fn files(&self) -> &BlockingPool {
        self.pools.files()
    }

    /// The pool that looks up host names for this executor.
    pub(crate) fn lookups(&self) -> &BlockingPool {
        self.pools.lookups()
    }

    /// Timers that are armed now.
    #[cfg(test)]
    pub(crate) fn live_timers(&self) -> usize {
        self.timers.len()
    }
}
