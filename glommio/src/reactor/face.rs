//! What the modules above ask of a reactor, beside operations ([`op_handle`](super::op_handle)) and
//! timers ([`timer_entry`](super::timer_entry)): each is a question to one of its parts.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::polls::Polls;
use super::pools::{Pools, PoolsSettings, Retrying};
use super::retry_timer::PoolRetryTimer;
use super::round_end::RoundEnd;
use super::{Reactor, Settings};
use crate::blocking::BlockingPool;
use crate::error::GlommioError;
use crate::mailbox::Notifier;
use crate::memory::DmaBuffer;
#[cfg(feature = "metrics")]
use crate::metrics::{Parts, Registered};
use crate::ring::{Driver, Feature};
use crate::shares::TaskQueueHandle;
use crate::stats::RunCounts;
use crate::stats::{Counted, IoStats};
use crate::sys::origin::Origin;

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
        Reactor::with_pools(settings, notifier, |this| {
            let this = this.clone();
            let retry_timer = move |pool| match pool {
                Retrying::Blocking => PoolRetryTimer::boxed(&this, Reactor::blocking),
                Retrying::Files => PoolRetryTimer::boxed(&this, Reactor::files),
            };
            Pools::new(pools, Box::new(retry_timer))
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
        self.driver.rings().allocate(size)
    }

    /// Whether the rings of this reactor know the memory of `buffer`, which is to be used for
    /// direct I/O. Makes it known if it is the first.
    pub(crate) fn is_registered(&self, buffer: &DmaBuffer) -> bool {
        self.driver.rings().is_registered(buffer)
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

    /// Whether the kernel has completions that were not looked at: a few loads.
    #[inline]
    pub(crate) fn work_pending(&self) -> bool {
        self.driver.work_pending()
    }

    /// Hands cancellations over on the spot, so that the kernel lets go of the descriptors of what
    /// was given up. For those who are about to close one: it would stay open behind its number
    /// until the end of the turn. Wakes no task. No system call if nothing was given up.
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

    /// The same between two polls, of which several in a young round may share a reading of the
    /// clock. `woken_wait` tells whether tasks are left that were woken before the round began:
    /// a hurried one waits for them.
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
    pub(crate) fn hurry(&self) {
        self.preempt.hurry();
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

    /// Has `it` called when the poll of a task is over in which this is called, or, outside of
    /// polls, that of the next one; in any case before the thread may sleep.
    pub(crate) fn call_at_poll_end(&self, it: Rc<dyn RoundEnd>) {
        self.round_ends.call_at_poll_end(it);
    }

    /// Has `it` called at the end of the round that runs, or at the end of the next if none does.
    /// From a completion that is delivered in the middle of a round it is the end of the next:
    /// that is the one in which those run who were woken.
    pub(crate) fn call_at_round_end(&self, it: Rc<dyn RoundEnd>) {
        let is_next = self.turn_time.is_known() && self.driver.completions().is_delivering();
        self.round_ends.call_at_round_end(it, is_next);
    }

    #[inline]
    pub(crate) fn counts(&self) -> &RunCounts {
        self.driver.counts()
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
            run: self.driver.counts().clone(),
            timers: self.timers.counts.clone(),
            ring: self.driver.ring().counts().clone(),
            pools: self.pools.counts(),
        })
    }

    /// Counts what a task of the queue `from` has done without the ring; of a read that is timed,
    /// `since` is when it began.
    pub(crate) fn count(
        &self,
        counted: Counted,
        bytes: u64,
        from: TaskQueueHandle,
        since: Option<Instant>,
    ) {
        let mut io_counters = self.driver.io_counters();
        io_counters.done_at_once(counted, bytes, from, since);
    }

    /// Whether it is recorded how long reads take.
    pub(crate) fn times_reads(&self) -> bool {
        self.driver.io_counters().is_timed()
    }

    /// The counted operations of the executor since this was last called.
    pub(crate) fn take_io_stats(&self) -> IoStats {
        self.driver.io_counters().take()
    }

    /// The counted operations of a task queue since this was last called.
    pub(crate) fn take_queue_io_stats(&self, queue: TaskQueueHandle) -> IoStats {
        self.driver.io_counters().take_queue(queue)
    }

    /// The task queue is no more, and its counter is not asked for again.
    pub(crate) fn forget_queue(&self, queue: TaskQueueHandle) {
        self.driver.io_counters().forget(queue);
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
