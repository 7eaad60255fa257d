//! A paused clock, which moves when nothing else can happen.
//!
//! ```text
//!   nothing is runnable, nothing has completed ──▶ a device, a thread or TCP works for us? ──yes──▶ wait for it
//!                                                        │ no
//!                                                        ▼
//!                                     does a task wait for this moment? ──yes──▶ wake it
//!                                                        │ no
//!                                                        ▼
//!                                     the clock moves to the next deadline
//! ```
//!
//! What other executors, processes and hosts do is not waited for, as it cannot be known, unless a
//! task [holds](crate::time::hold) the clock for it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::driver::Driver;
use super::pools::Pools;
use super::timers::Timers;
use crate::blocking::BlockingPool;
use crate::clock;
use crate::panic::wake;
use crate::ring::Wait;
use crate::sys::unsent;

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
    pub(super) held: Arc<()>,
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
        let is_idle = || {
            is_idle()
                && !timers.has_more_due()
                && !driver.ring().completions_posted()
                && !driver.in_flight.borrow().has_backlog()
        };
        driver.exchange();
        if is_idle() && driver.work_pending() {
            // What the kernel put off meanwhile. A mark that outlives this stands for nothing: one of its workers
            // that is interrupted between adding work and marking it marks what is long done.
            driver.exchange();
        }
        if !is_idle() {
            return true;
        }
        if driver.in_flight.borrow().waits_for_device() {
            return false;
        }
        let works = pools.made().any(BlockingPool::is_busy) || unsent::are_any();
        if works || Arc::strong_count(&self.held) > 1 {
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
    pub(super) fn in_reach(&self, deadline: Option<Instant>) -> Option<Instant> {
        deadline.filter(|it| *it < self.end)
    }

    /// How often tasks were woken that had waited until only the clock can go on.
    pub(super) fn woken(&self) -> u64 {
        self.woken.get()
    }

    /// Whether any wait until only the clock can go on.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Wakes those that wait until only the clock can go on. True if there are any.
    pub(super) fn wake_waiting(&self) -> bool {
        let waiting = self.waiting.take();
        let are_any = !waiting.is_empty();
        self.woken.update(|times| times + u64::from(are_any));
        waiting.into_iter().for_each(wake);
        are_any
    }

    /// Remembers the waker of one that waits. Cloning and dropping wakers is user code: nothing is
    /// borrowed meanwhile.
    pub(super) fn wait(&self, waker: &Waker) {
        let is_known = (self.waiting.borrow().iter()).any(|known| known.will_wake(waker));
        if !is_known {
            let waker = waker.clone();
            self.waiting.borrow_mut().push(waker);
        }
    }
}
