//! Owns what one executor shares with the kernel: the ring, the operations in flight, the timers,
//! and the decision to sleep. Knows wakers, not tasks.
//!
//! ```text
//!   submit ──▶ in_flight ──flush──▶ ring ──enter──▶ kernel
//!                  ▲                                  │
//!    waker ◀───────┴───────────── reap ◀──────────────┘
//!    waker ◀── expire ── timers
//! ```
//!
//! One turn ([`Reactor::turn`]) reads like this: reap what is posted; hand over what was submitted,
//! and sleep in the same system call if nothing is runnable; reap; read the clock once; expire
//! timers; start a round. It answers with a [`Turn`]. At most one `enter` per turn in the ordinary
//! case, none if there is nothing to say to the kernel.
//!
//! Invariants:
//!
//! 1. No borrow of the table or of the timers is held while a waker is woken or dropped, or a sink
//!    is called: that code may come back in.
//! 2. The thread sleeps only after everything submitted was handed over, the slice's timeout was
//!    disarmed, the wake-up descriptor is watched, and the sleep was announced (`mailbox::sleep`).
//! 3. Completions are delivered in the order in which the kernel posted them, each once, also if a
//!    waker or sink reaps again or panics.
//! 4. A turn does bounded work: at most [`EXPIRE_BUDGET`](timers::EXPIRE_BUDGET) timers expire in
//!    it.
//!
//! Direct I/O on devices that are polled goes through a second ring ([`polled`]).
//!
//! Cost: a turn with nothing to hand over is a few loads and one clock read.

mod accounts;
pub(crate) mod budget;
pub(crate) mod current;
mod hybrid_wait;
mod in_flight;
mod kept;
pub(crate) mod op;
mod op_handle;
mod park;
mod polled;
mod polls;
mod pools;
mod preempt;
mod registered;
mod retry_timer;
mod round_end;
mod shutdown;
mod sleep_timeout;
#[cfg(test)]
mod tests;
mod timed_wait;
mod timer_entry;
mod timers;
mod turn_time;
mod user_data;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use accounts::Accounts;
use in_flight::{Delivery, InFlight};
use kept::Kept;
#[cfg(feature = "bench")]
pub(crate) use op::Op;
pub(crate) use op::{AcceptMany, AcceptOne, Connect, PollMany, PollOnce, Sink};
pub(crate) use op_handle::{OpHandle, SinkHandle, executor_is_gone};
use polled::PolledRing;
pub(crate) use polls::{Polls, TaskPoll};
use pools::Pools;
pub(crate) use pools::PoolsSettings;
use preempt::Preempt;
use registered::Registration;
pub(crate) use round_end::RoundEnd;
use round_end::RoundEnds;
use sleep_timeout::SleepTimeout;
use timed_wait::TimedWait;
pub use timed_wait::TimerPrecision;
pub(crate) use timer_entry::{TimerEntry, deadline_after};
use timers::Timers;
use turn_time::TurnTime;
use user_data::{IGNORED, PREEMPTION, SLEEP_TIMEOUT, WAKE_UP};

use crate::error::GlommioError;
use crate::mailbox::Notifier;
use crate::memory::{Arena, DmaBuffer};
use crate::metrics::{Registered, RunCounts, Shared};
use crate::panic;
pub(crate) use crate::panic::wake;
use crate::planted::planted;
use crate::ring::{Completion, Feature, QueueFull, Ring, Wait};
use crate::sys::origin::Origin;

/// The reactor of one executor.
pub(crate) struct Reactor {
    ring: Ring,
    polled: PolledRing,
    registration: Registration,
    notifier: Arc<Notifier>,
    in_flight: RefCell<InFlight>,
    timers: Timers,
    preempt: Preempt,
    sleep_timeout: SleepTimeout,
    timed_wait: TimedWait,
    turn_time: TurnTime,
    /// See [`Reactor::completions_lost`].
    has_lost_completions: Cell<bool>,
    polls: Polls,
    /// The ring watches the wake-up descriptor.
    wake_up_watched: Cell<bool>,
    spin_before_park: Duration,
    pools: Pools,
    /// A waker or a sink was called since the last turn ended.
    has_woken: Cell<bool>,
    /// Nothing new is taken on.
    is_closing: Cell<bool>,
    /// What is to be told of completions that were reaped, in the order of these.
    deliveries: RefCell<VecDeque<Delivery>>,
    /// A call of [`Reactor::reap`] is at it.
    is_delivering: Cell<bool>,
    /// To be called before the next turn.
    round_ends: RoundEnds,
    kept: Kept,
    counts: Shared<RunCounts>,
    /// Scratch space, kept for its allocation.
    reaped: Cell<Vec<Completion>>,
    /// Behind the rings, and so dropped after them: the kernel may know this memory.
    io_memory: Arena,
}

/// What a turn of the reactor came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// A waker or a sink was called since the turn before.
    pub(crate) woke: bool,
    /// The thread slept, or spun, or was about to.
    pub(crate) parked: bool,
    /// Timers have expired, and some that are due are left.
    pub(crate) batch_is_partial: bool,
    /// When the turn looked at the clock: the round that follows begins.
    pub(crate) round_start: Instant,
}

/// What an executor tells its reactor about itself.
pub(crate) struct Settings {
    pub(crate) ring_depth: usize,
    pub(crate) spin_before_park: Duration,
    pub(crate) timer_slack: Duration,
    pub(crate) timer_precision: TimerPrecision,
    pub(crate) io_memory_bytes: usize,
    pub(crate) record_io_latencies: bool,
}

impl Reactor {
    /// Builds the reactor of an executor that will run on the calling thread.
    ///
    /// # Errors
    ///
    /// See [`Ring::new`].
    pub(crate) fn new(
        settings: Settings,
        notifier: Arc<Notifier>,
        pools: PoolsSettings,
    ) -> Result<Rc<Reactor>, GlommioError<()>> {
        let now = Instant::now();
        let ring = Ring::new(settings.ring_depth)?;
        Ok(Rc::new_cyclic(|this| Reactor {
            ring,
            polled: PolledRing::default(),
            registration: Registration::default(),
            notifier,
            in_flight: RefCell::new(InFlight::new(Accounts::new(settings.record_io_latencies))),
            timers: Timers::new(now, settings.timer_slack),
            preempt: Preempt::new(now),
            sleep_timeout: SleepTimeout::default(),
            timed_wait: TimedWait::new(settings.timer_precision),
            turn_time: TurnTime::default(),
            has_lost_completions: Cell::new(false),
            polls: Polls::default(),
            wake_up_watched: Cell::new(false),
            spin_before_park: settings.spin_before_park,
            pools: Pools::new(pools, this),
            has_woken: Cell::new(false),
            is_closing: Cell::new(false),
            deliveries: RefCell::default(),
            is_delivering: Cell::new(false),
            round_ends: RoundEnds::default(),
            kept: Kept::default(),
            counts: Shared::default(),
            reaped: Cell::default(),
            io_memory: Arena::new(settings.io_memory_bytes),
        }))
    }

    /// One turn; see the module. `is_idle` tells whether nothing is runnable: only then may the
    /// thread sleep. `slice` is how long the round that follows may last (at least [`SETTLE`],
    /// unless a timer comes due). `is_batch_done` tells whether the tasks have run that the
    /// last batch of timers woke: the next one waits for them, for a while.
    ///
    /// [`SETTLE`]: preempt::SETTLE
    pub(crate) fn turn(
        &self,
        slice: Duration,
        is_batch_done: bool,
        is_idle: impl Fn() -> bool,
    ) -> Turn {
        self.end_round();
        // A waker that is called in here may put something off, too.
        let is_idle = || is_idle() && !self.has_round_ends();
        let had_round = self.turn_time.is_known();
        self.turn_time.forget();
        if !self.timers.has_more_due() && is_idle() {
            self.timers.woken_have_run();
        }
        self.reap();
        let parks = is_idle();
        let slice_end = self.preempt.slice_end();
        if parks {
            if had_round {
                self.counts.round_over(Instant::now, slice_end);
            }
            self.park(&is_idle);
        } else {
            self.exchange();
        }
        let now = Instant::now();
        self.timed_wait.end(now);
        if had_round && !parks {
            self.counts.round_over(|| now, slice_end);
        }
        self.counts.turn();
        self.turn_time.set(now);
        let batch = self.timers.expire_batch(now, is_batch_done);
        self.begin_round(now, slice);
        Turn {
            woke: self.has_woken.take() || batch.woke,
            parked: parks,
            batch_is_partial: batch.is_partial,
            round_start: now,
        }
    }

    /// When the last turn looked at the clock: the round that follows begins.
    pub(crate) fn round_start(&self) -> Instant {
        self.preempt.round_start()
    }

    /// How many submissions the ring holds.
    pub(crate) fn ring_entries(&self) -> usize {
        self.ring.entries()
    }

    /// A buffer from the executor's I/O memory, or from the ordinary allocator if that is full.
    pub(crate) fn allocate_dma_buffer(&self, size: usize) -> DmaBuffer {
        self.io_memory.allocate(size)
    }

    /// Whether this process was forked from the one that made the reactor, to which its ring
    /// belongs.
    pub(crate) fn is_inherited(&self) -> bool {
        self.ring.is_inherited()
    }

    /// The process that made it.
    pub(crate) fn origin(&self) -> Origin {
        self.ring.origin()
    }

    /// # Panics
    ///
    /// Panics if it [is inherited](Self::is_inherited).
    pub(crate) fn assert_own(&self) {
        self.ring.assert_own();
    }

    /// Whether the kernel has `feature`, and it is not to be done without.
    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.ring.features().has(feature)
    }

    /// Which task is being polled.
    #[inline]
    pub(crate) fn polls(&self) -> &Polls {
        &self.polls
    }

    pub(crate) fn counts(&self) -> &RunCounts {
        &self.counts
    }

    /// Has the metrics of the `executor`, a number and a name, listed.
    pub(crate) fn list_metrics(&self, executor: (usize, &str)) -> Registered {
        Registered::new(
            executor,
            self.counts.clone(),
            self.timers.counts().clone(),
            self.ring.counts().clone(),
            self.pools.counts(),
        )
    }

    /// Hands cancellations over on the spot, so that the kernel lets go of the descriptors of what
    /// was given up. For those who are about to close one: it would stay open behind its number
    /// until the end of the turn. Wakes no task. No system call if nothing was given up.
    pub(crate) fn cancel_now(&self) {
        if !self.in_flight.borrow().has_cancels() || self.ring.is_inherited() {
            return;
        }
        // The queue holds so many at a time, and the kernel (6.13 and newer) carries out twenty
        // with each call; what one was told last comes last. Bounded: before ours stands at
        // most what is in flight. What fails now goes with the next turn.
        let most = self.in_flight.borrow().len();
        for _ in 0..=most {
            let flushed = self.in_flight.borrow_mut().flush(&self.ring);
            if let Err(error) = self.ring.enter(Wait::Now) {
                tracing::warn!("cancelling on the spot failed, retried soon: {error}");
                return;
            }
            if flushed.is_ok() && !self.ring.has_deferred_work() {
                return;
            }
        }
    }

    /// As [`cancel_now`](Self::cancel_now), outside of the executor's `run`: takes also what has
    /// ended thereby, which would wait until the executor runs again.
    pub(crate) fn cancel_and_reap(&self) {
        self.cancel_now();
        if !self.ring.is_inherited() {
            self.reap();
        }
    }

    /// Hands over what was submitted and takes what the kernel has, without waiting.
    fn exchange(&self) {
        self.flush();
        if self.ring.queued() > 0 || self.ring.needs_enter_to_reap() {
            self.enter(Wait::Now);
        }
        self.exchange_polled();
        self.reap();
    }

    /// Moves the backlog into the submission queue, entering the kernel whenever that is full.
    fn flush(&self) {
        // Bounded: each refused attempt is followed by an `enter` that takes the whole queue. A
        // kernel short of memory may refuse; then the rest waits, and the thread does not sleep
        // meanwhile.
        for _ in 0..FLUSH_ATTEMPTS {
            if self.in_flight.borrow_mut().flush(&self.ring).is_ok() {
                return;
            }
            self.enter(Wait::Now);
            self.reap();
        }
    }

    /// Hands over what was submitted in the middle of a round. Takes no completions, hence wakes no
    /// task.
    fn hand_over(&self) {
        // One attempt: what does not fit goes with the next turn, which is near.
        let _ = self.in_flight.borrow_mut().flush(&self.ring);
        if self.ring.queued() > 0
            && let Err(error) = self.ring.submit_only()
        {
            tracing::warn!(
                "submitting in the middle of a round failed, retried at its end: {error}"
            );
        }
        self.hand_over_polled();
    }

    /// Pushes, making room if the queue is full.
    fn push(&self, attempt: impl Fn() -> Result<(), QueueFull>) {
        while attempt().is_err() {
            self.enter(Wait::Now);
            // An older kernel takes nothing in while the completion queue overflows.
            self.reap();
        }
    }

    /// Whether the kernel has completions that were not looked at: a few loads.
    #[inline]
    pub(crate) fn work_pending(&self) -> bool {
        self.ring.work_pending()
    }

    /// Enters the kernel.
    ///
    /// # Panics
    ///
    /// Panics where [`try_enter`](Self::try_enter) fails.
    fn enter(&self, wait: Wait) {
        if let Err(error) = self.try_enter(wait) {
            panic!("io_uring_enter failed: {error}");
        }
    }

    /// Enters the kernel, again after a pause if it is short of memory.
    ///
    /// # Errors
    ///
    /// What is beyond repair: memory pressure that stays, completions that the kernel has dropped,
    /// and whatever a ring in order does not give.
    fn try_enter(&self, wait: Wait) -> io::Result<()> {
        self.try_enter_into(&self.ring, wait)
    }

    fn try_enter_into(&self, ring: &Ring, wait: Wait) -> io::Result<()> {
        let mut pause = Duration::from_micros(50);
        loop {
            // A sleep beside file operations is a wait for a device, and counts as one.
            let entered = match self.in_flight.borrow().waits_for_device() {
                true => ring.enter(wait),
                false => ring.enter_idle(wait),
            };
            let Err(error) = entered else {
                return Ok(());
            };
            match error.raw_os_error() {
                Some(libc::ENOMEM) if pause < Duration::from_secs(1) => {
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                Some(libc::EBADR) => {
                    self.completions_lost();
                    return Err(io::Error::new(io::ErrorKind::OutOfMemory, LOST));
                }
                _ => return Err(error),
            }
        }
    }

    /// The kernel had completions for which there was neither room in the queue nor memory. It does
    /// not say which: operations that have ended may look as if they had not, for ever.
    fn completions_lost(&self) {
        self.has_lost_completions.set(true);
        // What the reactor itself waits for is set up anew. If it still stands, that does no harm:
        // it completes twice.
        self.preempt.timeout_lost();
        self.sleep_timeout.expired();
        self.wake_up_watched.set(false);
    }

    /// Takes all posted completions and tells what waits for them.
    ///
    /// Wakers and sinks are code of others, which may come back to this. Completions are then
    /// delivered in their order all the same: what such a call takes goes to the end of the
    /// line, and the outer call delivers it.
    fn reap(&self) {
        if self.ring.completions_posted() {
            self.take_in();
        } else if self.deliveries.borrow().is_empty() {
            return;
        }
        if self.is_delivering.replace(true) {
            return;
        }
        scopeguard::defer! { self.is_delivering.set(false) };
        // Not `while let`, which would hold the borrow while others run.
        loop {
            let Some(delivery) = self.deliveries.borrow_mut().pop_front() else {
                return;
            };
            if planted!("slow_io") {
                std::thread::sleep(Duration::from_millis(2));
            }
            match delivery {
                Delivery::Wake(waker) => {
                    self.has_woken.set(true);
                    self.counts.woken_by_io();
                    wake(waker);
                }
                Delivery::Sink(sink, outcome) => {
                    self.has_woken.set(true);
                    self.counts.woken_by_io();
                    panic::contain("a listener for completions panicked", move || {
                        sink.complete(outcome);
                    });
                }
                Delivery::Release(descriptor) => {
                    panic::contain("letting go of a file panicked", || drop(descriptor));
                }
                Delivery::Discard(op) => {
                    panic::contain("discarding the result of an operation panicked", || {
                        drop(op)
                    });
                }
            }
        }
    }

    /// Moves posted completions into the state of what they complete. Wakes nothing.
    fn take_in(&self) {
        let mut reaped = self.reaped.take();
        self.ring.reap(&mut reaped);
        let mut deliveries = self.deliveries.borrow_mut();
        for completion in reaped.drain(..) {
            match completion.user_data {
                IGNORED => {}
                PREEMPTION => self.preempt.timeout_completed(),
                SLEEP_TIMEOUT => self.sleep_timeout.expired(),
                WAKE_UP => {
                    if !completion.outcome.has_more() {
                        self.wake_up_watched.set(false);
                    }
                }
                _ => {
                    let mut in_flight = self.in_flight.borrow_mut();
                    in_flight.complete(completion, &mut deliveries);
                }
            }
        }
        self.reaped.set(reaped);
    }
}

const LOST: &str = "the kernel had no memory for completions and dropped some (EBADR): operations of this \
                    executor may never end";

/// Full rings in a row before a flush leaves the rest for the next turn.
const FLUSH_ATTEMPTS: usize = 1024;

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reactor")
            .field("mode", &self.ring.mode())
            .field("features", &self.ring.features())
            .field("in_flight", &self.in_flight.borrow().len())
            .field("timers", &self.timers.len())
            .finish_non_exhaustive()
    }
}
