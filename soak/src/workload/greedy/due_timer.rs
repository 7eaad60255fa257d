//! A timer that is due again and again, and what greedy tasks do while it is.
//!
//! In a simulation no time passes while they run, so no timer becomes due. There a task of the other queue is woken
//! by what they do, and what they do until it runs is counted.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_lite::future::or;
use glommio::timer::{Timer, sleep};

use crate::check::checker::Checker;
use crate::check::invariants::Invariant;

/// Arms the timer, and counts.
pub(super) struct DueTimer {
    checker: Rc<Checker>,
    /// When the timer is due that has not fired yet.
    due: Cell<Option<Instant>>,
    /// What was done since then.
    operations: Cell<u64>,
    /// In a simulation: the task that the next operation wakes, and whether one has.
    waits: RefCell<Option<Waker>>,
    is_woken: Cell<bool>,
}

impl DueTimer {
    pub(super) fn new(checker: &Rc<Checker>) -> Self {
        DueTimer {
            checker: Rc::clone(checker),
            due: Cell::new(None),
            operations: Cell::new(0),
            waits: RefCell::default(),
            is_woken: Cell::new(false),
        }
    }

    /// A greedy task has done one more thing.
    pub(super) fn operation(&self) {
        if self.checker.control.is_simulated() {
            self.operations.set(self.operations.get() + 1);
            let waits = self.waits.take();
            if let Some(waker) = waits {
                self.operations.set(0);
                self.is_woken.set(true);
                waker.wake();
            }
        } else if self.due.get().is_some_and(|due| Instant::now() > due) {
            self.operations.set(self.operations.get() + 1);
        }
    }

    /// Until the run drains.
    pub(super) async fn attend(&self) {
        let checker = &self.checker;
        if checker.control.is_simulated() {
            return self.attend_simulated().await;
        }
        let mut excesses = Vec::new();
        while !checker.control.is_draining() {
            let ticket = checker.arm(Instant::now() + EVERY);
            let _live = ticket.live;
            self.due.set(Some(ticket.deadline));
            Timer::at(ticket.deadline).await;
            self.due.set(None);
            checker.fired(ticket.key);
            let operations = self.operations.take();
            if operations > OPERATIONS_MAX {
                excesses.push((ticket.deadline, Instant::now(), operations));
            } else {
                self.judge(0, operations);
            }
            excesses.retain(|&excess| !self.judge_later(excess));
        }
    }

    async fn attend_simulated(&self) {
        while !self.checker.control.is_draining() {
            let woken = async {
                poll_fn(|cx| self.poll_woken(cx)).await;
                let operations = self.operations.get();
                let too_many = operations.saturating_sub(OPERATIONS_MAX_SIMULATED);
                self.judge(too_many, operations);
            };
            or(woken, sleep(EVERY)).await;
        }
    }

    fn poll_woken(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_woken.take() {
            return Poll::Ready(());
        }
        let replaced = self.waits.replace(Some(cx.waker().clone()));
        drop(replaced);
        Poll::Pending
    }

    /// Whether it is known by now if the process was stopped in that time, or before: its executors
    /// take a stop for a turn of the task that it came in, for which that task's queue pays.
    fn judge_later(&self, (due, fired, operations): (Instant, Instant, u64)) -> bool {
        if fired.elapsed() < HEARD_OF_STOPS {
            return false;
        }
        let stopped = self.checker.control.stalls.lasted(due - PAID_OFF, fired);
        if stopped.is_zero() {
            self.judge(operations - OPERATIONS_MAX, operations);
        }
        true
    }

    fn judge(&self, too_many: u64, operations: u64) {
        self.checker.check(Invariant::Turns, too_many, || {
            format!("{operations} operations were done while a timer was due")
        });
    }
}

/// How long it takes at most until a stop of the process is known here.
const HEARD_OF_STOPS: Duration = Duration::from_millis(500);

/// By then a queue has paid for a stop.
const PAID_OFF: Duration = Duration::from_secs(1);

const EVERY: Duration = Duration::from_millis(2);

/// A task asks whether to return after 32 of them. Then the executor chooses a queue, and it may
/// once more be the greedy one's turn, for a slice: 45,000 were seen. Without the budget it is most
/// of the 600,000 that there are of the cheapest kind.
const OPERATIONS_MAX: u64 = 150_000;

/// Where a slice ends, the seed says.
const OPERATIONS_MAX_SIMULATED: u64 = 20_000;
