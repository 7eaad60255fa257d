//! The checker of one executor: enters its timers into the model and what they do into the ledger.
//!
//! ```text
//!   arm ──▶ armed ──┬── fired ──────▶ early? twice? cancelled before? how late?
//!            │  ▲   ├── cancelled ──▶ overdue by more than patience? then it was lost
//!            └──┘   └── sweep ──────▶ the same question, asked while it is still waited for
//!           rearmed
//! ```
//!
//! A workload says what it is about to do *before* it calls the library, since the call may run
//! other callbacks. Beside the model runs a second count that the library alone can bring down:
//! each ticket holds a [`Live`] token that is moved into the timer's future, and lives exactly as
//! long.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use glommio::spawn_local;
use glommio::timer::sleep;

use crate::check::control::Control;
use crate::check::executor_stats::ExecutorStats;
use crate::check::invariants::{Invariant, Ledger};
use crate::check::model::{DeadlineModel, Firing, Key, Lane, Place};
use crate::check::probe::Timing;
use crate::clock;
use crate::counters::bump;
use crate::measure::nanos;

/// Shared by the tasks of one executor.
#[derive(Debug)]
pub(crate) struct Checker {
    pub(crate) stats: Arc<ExecutorStats>,
    pub(crate) control: Arc<Control>,
    model: RefCell<DeadlineModel>,
    next_key: Cell<u64>,
    last_sweep: Cell<Instant>,
    /// By how many futures the library's count is known to be off.
    astray: Cell<i64>,
}

/// One arming of one timer.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) key: Key,
    /// Goes into the timer's future.
    pub(crate) live: Live,
    /// What the library is told.
    pub(crate) deadline: Instant,
}

impl Ticket {
    /// How far ahead of now the deadline is, for calls that take a delay.
    pub(crate) fn delay(&self) -> Duration {
        self.deadline.saturating_duration_since(clock::now())
    }
}

/// What is checked beside the timers goes into the ledger as it is.
impl Deref for Checker {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.stats.ledger
    }
}

impl Checker {
    pub(crate) fn new(stats: Arc<ExecutorStats>, control: Arc<Control>) -> Rc<Self> {
        Rc::new(Checker {
            stats,
            control,
            model: RefCell::default(),
            next_key: Cell::new(0),
            last_sweep: Cell::new(clock::now()),
            astray: Cell::new(0),
        })
    }

    /// A timer is about to be armed for `deadline`.
    pub(crate) fn arm(self: &Rc<Self>, deadline: Instant) -> Ticket {
        let key = Key(self.next_key.get());
        self.next_key.set(key.0 + 1);
        self.model.borrow_mut().arm(key, deadline, clock::now());
        let gauges = &self.stats.gauges;
        bump(&gauges.timers_armed);
        gauges.live_timers.fetch_add(1, Ordering::Relaxed);
        let checker = Rc::clone(self);
        Ticket {
            key,
            live: Live { checker, key },
            deadline,
        }
    }

    /// A timer has been armed and waited for, so that the library's queue has it: from now on its
    /// turn among those of its lane is promised.
    pub(crate) fn join_lane(&self, key: Key, lane: Lane) {
        self.model.borrow_mut().join_lane(key, lane, clock::now());
    }

    /// A timer is about to be moved to `deadline`. `false`: it has fired or was cancelled, so the
    /// call must change nothing.
    pub(crate) fn rearm(&self, key: Key, deadline: Instant) -> bool {
        let is_armed = self.model.borrow_mut().rearm(key, deadline, clock::now());
        if is_armed {
            bump(&self.stats.gauges.timers_rearmed);
        }
        is_armed
    }

    /// A timer is about to be cancelled: from here on it must be silent. `false`: it has fired or
    /// was cancelled before, so the call must change nothing.
    pub(crate) fn cancel(&self, key: Key) -> bool {
        let Some(due) = self.model.borrow_mut().cancel(key, clock::now()) else {
            return false;
        };
        bump(&self.stats.gauges.timers_cancelled);
        self.judge_overdue(due, || format!("timer {}", key.0));
        self.passed(Invariant::CancelsHold);
        true
    }

    /// A timer's callback has begun. `true`: it was meant to.
    pub(crate) fn fired(&self, key: Key) -> bool {
        self.fired_as(key, Timing::Lateness)
    }

    /// As [`fired`](Self::fired), of a timer whose lateness is counted as `timing`.
    pub(crate) fn fired_as(&self, key: Key, timing: Timing) -> bool {
        let now = clock::now();
        let firing = self.model.borrow_mut().fire(key, now);
        let ledger = &self.stats.ledger;
        match firing {
            Firing::Expected { deadline, place } => {
                bump(&self.stats.gauges.timers_fired);
                let early = nanos(deadline.saturating_duration_since(now));
                ledger.check(Invariant::NothingEarly, early, || {
                    format!("timer {} by {early} ns", key.0)
                });
                ledger.passed(Invariant::NothingTwice);
                ledger.passed(Invariant::NothingLost);
                match place {
                    Place::NoLane => {}
                    Place::First => ledger.passed(Invariant::InOrder),
                    Place::Behind(other) => ledger.holds(Invariant::InOrder, false, || {
                        format!("timer {} fired before timer {}", key.0, other.0)
                    }),
                }
                // At the end everything is settled at once: what is late then says nothing.
                if !self.control.is_draining() {
                    self.stats.record(timing, deadline, now);
                }
                return true;
            }
            Firing::Cancelled => ledger.holds(Invariant::CancelsHold, false, || {
                format!("timer {} fired after its cancellation", key.0)
            }),
            Firing::Again | Firing::Unknown => ledger.holds(Invariant::NothingTwice, false, || {
                format!("timer {} fired, {firing:?}", key.0)
            }),
            // It was lost, is counted as such, and came after all.
            Firing::WrittenOff => {}
        }
        false
    }

    pub(crate) fn is_armed(&self, key: Key) -> bool {
        self.model.borrow().is_armed(key)
    }

    /// Timers that ought to be armed.
    pub(crate) fn armed(&self) -> usize {
        self.model.borrow().len()
    }

    /// Futures the library still holds.
    pub(crate) fn live(&self) -> i64 {
        self.stats.gauges.live_timers.load(Ordering::Relaxed)
    }

    /// Sweeps now and then until the run drains, in the executor whose timers are checked.
    pub(crate) fn spawn_sweeper(self: &Rc<Self>) {
        let checker = Rc::clone(self);
        spawn_local(async move { checker.drained().await }).detach();
    }

    /// Waits until the run drains, and sweeps meanwhile.
    pub(crate) async fn drained(&self) {
        while !self.control.is_draining() {
            self.pause(SWEEP_EVERY).await;
        }
    }

    /// Waits until `end`, or until the run drains.
    pub(crate) async fn rest(&self, end: Instant) {
        while !self.control.is_draining() && clock::now() < end {
            self.pause(LOOK_EVERY).await;
        }
    }

    /// Sleeps, then sweeps if it is time to: for an executor whose queue is to be empty now and
    /// then, which a sweeper's own timer would prevent.
    pub(crate) async fn pause(&self, wait: Duration) {
        sleep(wait).await;
        if clock::since(self.last_sweep.get()) >= SWEEP_EVERY {
            self.sweep();
        }
    }

    /// Gives back the memory that the model keeps for as many timers as there were.
    pub(crate) fn shrink(&self) {
        self.model.borrow_mut().shrink();
    }

    /// Writes off, as lost, timers that are overdue by more than the run's patience, and judges
    /// what the library holds.
    fn sweep(&self) {
        let now = clock::now();
        let last = self.last_sweep.get();
        let stalled = self.control.stalls.lasted(last - REMEMBERED, last);
        if let Some(limit) = last.checked_sub(self.control.patience() + stalled) {
            for _ in 0..SWEEP_MAX {
                let lost = self.model.borrow_mut().write_off(limit, now);
                let Some((key, due)) = lost else { break };
                self.judge_overdue(due, || format!("timer {}", key.0));
            }
            for _ in 0..SWEEP_MAX {
                let stuck = self.model.borrow_mut().overdue_return(limit);
                let Some((key, _)) = stuck else { break };
                self.astray.set(self.astray.get() + 1);
                self.holds(Invariant::LiveTimers, false, || {
                    format!("the future of timer {} outlives it", key.0)
                });
            }
        }
        let expected = self.model.borrow().held() as i64 + self.astray.get();
        let off = self.live() - expected;
        self.astray.set(self.astray.get() + off);
        self.check(Invariant::LiveTimers, off.unsigned_abs(), || {
            format!("{} futures are held instead of {expected}", self.live())
        });
        self.last_sweep.set(now);
    }

    /// Waits until nothing remains, or until patience ends with what remains: that is returned.
    pub(crate) async fn until_none<T: Copy + Default + PartialEq>(
        &self,
        remaining: impl Fn() -> T,
    ) -> T {
        let (mut last, mut since) = (remaining(), clock::now());
        while last != T::default() && clock::since(since) < self.control.patience() {
            sleep(Duration::from_millis(5)).await;
            if remaining() != last {
                (last, since) = (remaining(), clock::now());
            }
        }
        last
    }

    /// Waits until the model is empty and the library has dropped every future, then enters both. What is not gone when
    /// patience ends is lost.
    pub(crate) async fn settle(&self) {
        let (armed, live) = self.until_none(|| (self.armed(), self.live())).await;
        if armed > 0 {
            let overdue = nanos(self.control.patience());
            self.check(Invariant::NothingLost, overdue, || {
                format!("{armed} timers never fired")
            });
        }
        self.check(Invariant::LiveTimers, live.unsigned_abs(), || {
            format!("{live} futures were left behind")
        });
    }

    /// Overdue is counted up to the last sweep, not up to now: at the sweep the executor has looked
    /// at its timers for certain, while between the two the machine may have stopped it for long.
    pub(crate) fn judge_overdue(&self, due: Instant, what: impl FnOnce() -> String) {
        let (last, patience) = (self.last_sweep.get(), self.control.patience());
        let waited = last.saturating_duration_since(due);
        let is_lost = waited > patience
            && waited.saturating_sub(self.control.stalls.lasted(due, last)) > patience;
        let overdue = if is_lost { nanos(waited) } else { 0 };
        self.check(Invariant::NothingLost, overdue, || {
            format!("{} was {overdue} ns overdue and had not fired", what())
        });
    }
}

/// Lives as long as the future it was moved into.
#[derive(Debug)]
pub(crate) struct Live {
    checker: Rc<Checker>,
    key: Key,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.checker.model.borrow_mut().returned(self.key);
        let live = &self.checker.stats.gauges.live_timers;
        live.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) const SWEEP_EVERY: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Stalls as far back as this put off what is due now.
const REMEMBERED: Duration = Duration::from_secs(30);

/// A sweep is bounded, because it runs between the timers it judges.
const SWEEP_MAX: usize = 64;
