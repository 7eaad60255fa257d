//! The witness of one executor: enters its timers into the model and what they do into the ledger.
//!
//! ```text
//!   arm ──▶ armed ──┬── fired ──────▶ early? twice? cancelled before? how late?
//!            │  ▲   ├── cancelled ──▶ overdue by more than patience? then it was lost
//!            └──┘   └── sweep ──────▶ the same question, asked while it is still waited for
//!           rearmed
//! ```
//!
//! A workload says what it is about to do *before* it calls the library, since the call may run other
//! callbacks. Beside the model runs a second count that the library alone can bring down: each arming
//! gives a [`Live`] token that is moved into the timer's future, and lives exactly as long.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use glommio::spawn_local;
use glommio::timer::sleep;

use crate::control::{Control, nanos};
use crate::invariants::Invariant;
use crate::model::{DeadlineModel, Firing, Key};
use crate::station::Station;

/// Shared by the tasks of one executor.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) station: Arc<Station>,
    pub(crate) control: Arc<Control>,
    model: RefCell<DeadlineModel>,
    next_key: Cell<u64>,
    last_sweep: Cell<Instant>,
}

impl Watch {
    pub(crate) fn new(station: Arc<Station>, control: Arc<Control>) -> Rc<Self> {
        Rc::new(Watch {
            station,
            control,
            model: RefCell::default(),
            next_key: Cell::new(0),
            last_sweep: Cell::new(Instant::now()),
        })
    }

    /// A timer is about to be armed for `deadline`. The token goes into its future.
    pub(crate) fn arm(&self, deadline: Instant) -> (Key, Live) {
        let key = Key(self.next_key.get());
        self.next_key.set(key.0 + 1);
        self.model.borrow_mut().arm(key, deadline);
        self.station
            .gauges
            .live_timers
            .fetch_add(1, Ordering::Relaxed);
        (
            key,
            Live {
                station: Arc::clone(&self.station),
            },
        )
    }

    /// A timer is about to be moved to `deadline`. `false`: it has fired or was cancelled, so the
    /// call must change nothing.
    pub(crate) fn rearm(&self, key: Key, deadline: Instant) -> bool {
        self.model.borrow_mut().rearm(key, deadline)
    }

    /// A timer is about to be cancelled: from here on it must be silent. `false`: it has fired or was
    /// cancelled before, so the call must change nothing.
    pub(crate) fn cancel(&self, key: Key) -> bool {
        let Some(deadline) = self.model.borrow_mut().cancel(key) else {
            return false;
        };
        self.judge_overdue(key, deadline);
        self.station.ledger.passed(Invariant::CancelsHold);
        true
    }

    /// A timer's callback has begun. `true`: it was meant to.
    pub(crate) fn fired(&self, key: Key) -> bool {
        let now = Instant::now();
        let firing = self.model.borrow_mut().fire(key);
        let ledger = &self.station.ledger;
        match firing {
            Firing::Expected(deadline) => {
                let early = nanos(deadline.saturating_duration_since(now));
                ledger.check(Invariant::NothingEarly, early, || {
                    format!("timer {} by {early} ns", key.0)
                });
                ledger.passed(Invariant::NothingTwice);
                ledger.passed(Invariant::NothingLost);
                self.station
                    .record_lateness(now.saturating_duration_since(deadline));
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
        self.station.gauges.live_timers.load(Ordering::Relaxed)
    }

    /// Sweeps now and then until the run drains, in the executor whose timers are watched.
    pub(crate) fn spawn_sweeper(self: &Rc<Self>) {
        let watch = Rc::clone(self);
        spawn_local(async move {
            while !watch.control.is_draining() {
                sleep(SWEEP_EVERY).await;
                watch.sweep();
            }
        })
        .detach();
    }

    /// Writes off, as lost, timers that are overdue by more than the run's patience.
    fn sweep(&self) {
        if let Some(limit) = self.last_sweep.get().checked_sub(self.control.patience()) {
            for _ in 0..SWEEP_MAX {
                let lost = self.model.borrow_mut().write_off(limit);
                let Some((key, deadline)) = lost else { break };
                self.judge_overdue(key, deadline);
            }
        }
        self.last_sweep.set(Instant::now());
    }

    /// Waits until the model is empty and the library has dropped every future, then enters both.
    /// What is not gone when patience ends is lost.
    pub(crate) async fn settle(&self) {
        let mut waited_since = Instant::now();
        let mut remaining = (self.armed(), self.live());
        while remaining != (0, 0) && waited_since.elapsed() < self.control.patience() {
            sleep(Duration::from_millis(5)).await;
            let now_remaining = (self.armed(), self.live());
            if now_remaining != remaining {
                (remaining, waited_since) = (now_remaining, Instant::now());
            }
        }
        let (armed, live) = remaining;
        let ledger = &self.station.ledger;
        if armed > 0 {
            let overdue = nanos(waited_since.elapsed());
            ledger.check(Invariant::NothingLost, overdue, || {
                format!("{armed} timers never fired")
            });
        }
        ledger.check(Invariant::LiveTimersZero, live.unsigned_abs(), || {
            format!("{live} futures were left behind")
        });
    }

    /// Overdue is counted up to the last sweep, not up to now: at the sweep the executor has looked
    /// at its timers for certain, while between the two the machine may have stopped it for long.
    fn judge_overdue(&self, key: Key, deadline: Instant) {
        let overdue = self.last_sweep.get().saturating_duration_since(deadline);
        let overdue = if overdue > self.control.patience() {
            nanos(overdue)
        } else {
            0
        };
        self.station
            .ledger
            .check(Invariant::NothingLost, overdue, || {
                format!("timer {} was {overdue} ns overdue and had not fired", key.0)
            });
    }
}

/// Lives as long as the future it was moved into.
#[derive(Debug)]
pub(crate) struct Live {
    station: Arc<Station>,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.station
            .gauges
            .live_timers
            .fetch_sub(1, Ordering::Relaxed);
    }
}

const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// A sweep is bounded, because it runs between the timers it judges.
const SWEEP_MAX: usize = 64;
