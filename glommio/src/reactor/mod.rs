//! What one executor shares with the kernel: the ring, the operations in flight, the timers, and
//! the decision to sleep. Knows wakers, not tasks.
//!
//! ```text
//!   submit ──▶ in_flight ──flush──▶ ring ──enter──▶ kernel
//!                  ▲                                  │
//!    waker ◀───────┴───────────── reap ◀──────────────┘
//!    waker ◀── expire ── timers
//! ```
//!
//! [`Reactor`] composes a turn of parts that each own their state, and know each other only as
//! arguments: [`Driver`] (submission and completion), [`Timers`], [`Preempt`], [`Sleep`],
//! [`TurnTime`], [`RoundEnds`]. [`face`] is what the modules above call; [`op_handle`] and
//! [`timer_entry`] are what they hold.
//!
//! One turn ([`Reactor::turn`]) reads like this: reap what is posted; hand over what was submitted,
//! and sleep in the same system call if nothing is runnable; reap; read the clock once; expire
//! timers; start a round. It answers with a [`Turn`]. At most one `enter` per turn in the ordinary
//! case, none if there is nothing to say to the kernel; more after a sleep that many completions have
//! ended, of which the kernel gives some at a time.
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
//!
//! Cost: a turn with nothing to hand over is a few loads and one clock read.

mod batch_gate;
pub(crate) mod budget;
mod completions;
pub(crate) mod current;
mod driver;
mod extensions;
mod face;
mod in_flight;
mod io_counters;
mod io_ring;
pub(crate) mod op;
mod op_handle;
#[cfg(feature = "simulation")]
mod paused;
mod polls;
mod pools;
mod preempt;
#[cfg(feature = "simulation")]
pub(crate) mod quiescence;
mod retry_timer;
mod ring_timeouts;
mod round_end;
mod shutdown;
mod sleep;
mod sleep_timeout;
#[cfg(test)]
mod tests;
mod timed_wait;
mod timer_entry;
mod timers;
mod turn_time;
mod user_data;
#[cfg(any(feature = "audit", feature = "metrics"))]
mod watched_queue;

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use driver::Driver;
use extensions::Extensions;
use io_counters::IoCounters;
use io_ring::IoRing;
#[cfg(feature = "bench")]
pub(crate) use op::Op;
pub(crate) use op::{AcceptOne, Connect, PollMany, PollOnce, Sink};
pub(crate) use op_handle::{OpHandle, SinkHandle, executor_is_gone};
pub(crate) use polls::{Polls, TaskPoll};
use pools::Pools;
pub(crate) use pools::PoolsSettings;
use preempt::Preempt;
pub(crate) use round_end::RoundEnd;
use round_end::RoundEnds;
use sleep::Sleep;
pub use timed_wait::TimerPrecision;
pub(crate) use timer_entry::TimerEntry;
use timers::Timers;
use turn_time::TurnTime;
pub(crate) use turn_time::deadline_after;

use crate::clock::{self, Clock};
use crate::error::GlommioError;
use crate::mailbox::Notifier;
pub(crate) use crate::panic::wake;
use crate::panic::{self, FirstPanic};
use crate::sys::door::is_simulated;
use crate::sys::prefetch::prefetch;

/// The reactor of one executor.
pub(crate) struct Reactor {
    /// As it was when the executor was last left.
    clock: Cell<Clock>,
    #[cfg(feature = "simulation")]
    paused: paused::PausedClock,
    driver: Driver,
    timers: Timers,
    preempt: Preempt,
    sleep: Sleep,
    turn_time: TurnTime,
    polls: Polls,
    /// To be called before the next turn.
    round_ends: RoundEnds,
    pools: Pools,
    kept: Extensions,
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
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) ring_depth: usize,
    /// How many were made together, itself among them.
    pub(crate) executors: usize,
    pub(crate) spin_before_park: Duration,
    pub(crate) timer_slack: Duration,
    pub(crate) timer_precision: TimerPrecision,
    pub(crate) driver: crate::ring::Driver,
    pub(crate) io_memory_bytes: usize,
    pub(crate) record_io_latencies: bool,
    pub(crate) start_paused: bool,
}

impl Reactor {
    /// As [`new`](Self::new), with the pools that `pools` makes.
    fn with_pools(
        settings: Settings,
        notifier: Arc<Notifier>,
        pools: impl FnOnce(&Weak<Reactor>) -> Pools,
    ) -> Result<Rc<Reactor>, GlommioError<()>> {
        let now = clock::real();
        // That of a simulation goes another way.
        let time = clock::at(now);
        let ring = IoRing::new(
            settings.ring_depth,
            settings.executors,
            settings.io_memory_bytes,
            settings.driver,
        )?;
        Ok(Rc::new_cyclic(|this| Reactor {
            clock: Cell::new(Clock::new(settings.start_paused, time)),
            #[cfg(feature = "simulation")]
            paused: paused::PausedClock::new(time),
            driver: Driver::new(ring, IoCounters::new(settings.record_io_latencies)),
            timers: Timers::new(time, settings.timer_slack),
            preempt: Preempt::new(Arc::clone(&notifier), now),
            sleep: Sleep::new(
                notifier,
                settings.timer_precision,
                settings.spin_before_park,
            ),
            turn_time: TurnTime::default(),
            polls: Polls::default(),
            round_ends: RoundEnds::default(),
            pools: pools(this),
            kept: Extensions::default(),
        }))
    }

    /// One turn; see the module. `is_idle` tells whether nothing is runnable: only then may the
    /// thread sleep. `slice` is asked, when tasks have been woken, how long the round that follows
    /// may last (at least the minimum, unless a timer comes due and few tasks wait). `is_batch_done` tells whether the
    /// tasks have run that the last batch of timers woke: the next one waits for them, for a while.
    pub(crate) fn turn(
        &self,
        slice: impl FnOnce() -> Duration,
        is_batch_done: bool,
        is_idle: impl Fn() -> bool,
    ) -> Turn {
        self.round_ends.end_round();
        // A waker that is called in here may put something off, too.
        let is_idle = || is_idle() && !self.round_ends.are_any();
        self.pools.retry_if_due();
        let had_round = self.turn_time.is_known();
        self.turn_time.forget();
        if !self.timers.has_more_due() && is_idle() {
            self.timers.woken_have_run();
        }
        self.driver.reap();
        let parks = is_idle();
        let slice_end = self.preempt.slice_end();
        let counts = &self.driver.counts;
        if parks {
            if had_round {
                counts.round_over(clock::real, slice_end);
            }
            self.park(&is_idle);
        } else {
            self.driver.exchange();
        }
        let now = clock::real();
        self.sleep.is_over(now);
        if had_round && !parks {
            counts.round_over(|| now, slice_end);
        }
        counts.turns.add(1);
        let time = clock::at(now);
        self.turn_time.set(time);
        let batch = self.timers.expire_batch(time, is_batch_done);
        self.preempt.begin_round(now, slice(), &self.timers);
        Turn {
            woke: self.driver.completions.take_woken() || batch.woke,
            parked: parks,
            batch_is_partial: batch.is_partial,
            round_start: now,
        }
    }

    fn park(&self, is_idle: &impl Fn() -> bool) {
        self.preempt.disarm_slice_timeout(&self.driver);
        if is_simulated() {
            // The others have their turns, and then the clock moves.
            return self.driver.exchange();
        }
        #[cfg(feature = "simulation")]
        if clock::is_paused()
            && self
                .paused
                .goes_on(&self.driver, &self.timers, &self.pools, || {
                    is_idle() && !self.sleep.is_notified()
                })
        {
            return;
        }
        let round_start = self.preempt.round_start();
        self.sleep
            .park(&self.driver, &self.timers, round_start, is_idle);
    }

    /// Disarms all timers at once, so that the tasks that hold them need not look for each. Wakers keep
    /// the memory of their tasks: they are best dropped when those are over.
    pub(crate) fn disarm_timers(&self) -> Disarmed {
        Disarmed(self.timers.clear())
    }

    /// Cancels everything in flight, and waits until the kernel has let go of it. Keeps the first
    /// panic of code that is called meanwhile in `panics`.
    pub(crate) fn shutdown(&self, panics: &mut FirstPanic) {
        self.driver.close();
        self.pools.close(panics);
        shutdown::shut_down(&self.driver, panics);
    }

    /// The executor is left: there is no next round for a while.
    fn leave(&self) {
        // What was to be called now, and what at the end of the next.
        self.round_ends.end_round();
        self.round_ends.end_round();
        self.turn_time.forget();
    }
}

/// The wakers of timers that were disarmed, to be dropped with nothing borrowed.
#[must_use = "dropping wakers may run any code"]
pub(crate) struct Disarmed(std::vec::IntoIter<Waker>);

impl Drop for Disarmed {
    fn drop(&mut self) {
        /// So many are dropped while the memory of a task comes.
        const AHEAD: usize = 8;
        while let Some(waker) = self.0.next() {
            // In the order of deadlines, tasks are far from each other.
            if let Some(soon) = self.0.as_slice().get(AHEAD) {
                prefetch::<1>(soon.data());
            }
            panic::contain("dropping the waker of a timer panicked", || drop(waker));
        }
    }
}

/// Timers that have neither expired nor been disarmed by now. Their wakers' destructors may use
/// timers, which are out of their reach then.
impl Drop for Reactor {
    fn drop(&mut self) {
        drop(self.disarm_timers());
    }
}

impl_debug! { Reactor, it:
    driver: it.driver.ring().driver(), mode: it.driver.ring().mode(),
    features: it.driver.ring().features(), in_flight: it.driver.in_flight.borrow().len(),
    timers: it.timers.len(); ..
}
