//! A paused clock, which moves when nothing else can happen.
//!
//! ```text
//!   nothing is runnable, nothing has completed ──▶ a device or a thread works for us? ──yes──▶ wait for it
//!                                                        │ no
//!                                                        ▼
//!                                     does a task wait for this moment? ──yes──▶ wake it
//!                                                        │ no
//!                                                        ▼
//!                                     the clock moves to the next deadline
//! ```
//!
//! What other executors, processes and hosts do is not waited for, as it cannot be known, unless a
//! task [holds](crate::time::hold) the clock for it. What the modules above ask of a paused clock,
//! and of a reactor in a simulation, is at the end.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use super::driver::Driver;
use super::pools::Pools;
use super::timers::Timers;
use super::{Reactor, current};
use crate::clock::{self, Clock};
use crate::panic::wake;
use crate::ring::Wait;
use crate::simulated;

/// How often to look whether the blocking calls are over, and whether the clock is still held.
const LOOK: Duration = Duration::from_micros(100);

/// Deadlines that are further from the start of the executor than this are never reached: those of
/// timers without an end are.
const END: Duration = Duration::from_nanos(u64::MAX / 2);

pub(super) struct PausedClock {
    end: Instant,
    /// They wait until only the clock can go on.
    waiting: RefCell<Vec<Waker>>,
    /// How often such were woken.
    woken: Cell<u64>,
    /// Shared with all that hold the clock, whatever thread they are on.
    held: Arc<()>,
}

impl PausedClock {
    pub(super) fn new(now: Instant) -> Self {
        PausedClock {
            end: now + END,
            waiting: RefCell::default(),
            woken: Cell::new(0),
            held: Arc::default(),
        }
    }

    /// Moves the clock on, which is paused, or does what comes before that. False if the thread has to
    /// sleep instead.
    pub(super) fn goes_on(
        &self,
        driver: &Driver,
        timers: &Timers,
        pools: &Pools,
        is_idle: impl Fn() -> bool,
    ) -> bool {
        driver.exchange();
        let is_idle = || {
            is_idle()
                && !timers.has_more_due()
                && !driver.work_pending()
                && !driver.in_flight().borrow().has_backlog()
        };
        if !is_idle() {
            return true;
        }
        if driver.in_flight().borrow().waits_for_device() {
            return false;
        }
        if pools.are_busy() || Arc::strong_count(&self.held) > 1 {
            driver.enter(Wait::Until(clock::real() + LOOK));
            driver.reap();
            return true;
        }
        // A call that is over has woken its task before, and so has what held the clock.
        fence(Ordering::Acquire);
        if !is_idle() || self.wake_waiting() {
            return true;
        }
        let next = self.in_reach(timers.next_expiry());
        if let Some(next) = next {
            clock::pause_at(next);
        }
        next.is_some()
    }

    /// A deadline that is ever to be reached.
    fn in_reach(&self, deadline: Option<Instant>) -> Option<Instant> {
        deadline.filter(|it| *it < self.end)
    }

    /// Wakes those that wait until only the clock can go on. True if there are any.
    fn wake_waiting(&self) -> bool {
        let waiting = self.waiting.take();
        let are_any = !waiting.is_empty();
        self.woken.update(|times| times + u64::from(are_any));
        waiting.into_iter().for_each(wake);
        are_any
    }

    /// Remembers the waker of one that waits. Cloning and dropping wakers is user code: nothing is
    /// borrowed meanwhile.
    fn wait(&self, waker: &Waker) {
        let is_known = (self.waiting.borrow().iter()).any(|known| known.will_wake(waker));
        if !is_known {
            let waker = waker.clone();
            self.waiting.borrow_mut().push(waker);
        }
    }
}

impl Reactor {
    /// The clock of the executor, which runs here, goes on.
    pub(crate) fn resume_clock(&self) {
        // That of a simulation is not the executor's.
        if !simulated::is_any() {
            clock::resume();
            self.paused.wake_waiting();
        }
    }

    /// Has the executor's clock be `clock` when it is next entered.
    pub(crate) fn set_clock(&self, clock: Clock) {
        self.clock.set(clock);
    }

    /// The clock does not move on while it is paused and this lives.
    pub(crate) fn hold_clock(&self) -> Arc<()> {
        Arc::clone(&self.paused.held)
    }

    /// Whether a turn at the time `now` of its clock would have an effect, besides on tasks that are
    /// runnable.
    pub(crate) fn has_work(&self, now: Instant) -> bool {
        self.sleep.is_notified()
            || self.round_ends.are_any()
            || self.timers.has_more_due()
            || self.next_deadline().is_some_and(|next| next <= now)
            || self.driver.has_work()
    }

    /// The earliest deadline of its timers, if it is ever to be reached.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.paused.in_reach(self.timers.next_expiry())
    }

    /// Whether tasks wait until nothing but the clock can go on.
    pub(crate) fn is_settling(&self) -> bool {
        !self.paused.waiting.borrow().is_empty()
    }

    /// The power of its node is about to go off.
    pub(crate) fn lose_power(&self) {
        self.driver.ring().lose_power();
    }

    /// Wakes tasks that wait until nothing but the clock can go on. True if there are any.
    pub(crate) fn settle(&self) -> bool {
        self.paused.wake_waiting()
    }
}

/// Waits until nothing is left to do at the time that the paused clock of the running executor
/// shows. Over at once if it is not paused.
pub(crate) async fn settled() {
    let reactor = current::current();
    let woken = reactor.upgrade().map(|it| it.paused.woken.get());
    poll_fn(|cx| match reactor.upgrade() {
        Some(it) if clock::is_paused() && Some(it.paused.woken.get()) == woken => {
            it.paused.wait(cx.waker());
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}
