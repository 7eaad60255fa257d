//! A waker's knowledge of whether it may be called.
//!
//! ```text
//!   Waiting ──called──▶ Called      once, and not before the deadline
//!      │                  │
//!      └──────gone────────┴──▶ Gone   not at all any more
//! ```
//!
//! For timers that are polled by hand. What it sees comes from the queue as it is: no `Timer` has
//! looked at the clock again in between.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use crate::check::checker::Checker;
use crate::check::control::Control;
use crate::check::executor_stats::ExecutorStats;
use crate::check::invariants::Invariant;
use crate::check::model::Key;
use crate::clock;

/// Shared by a waker and the owner of its timer.
#[derive(Debug)]
pub(crate) struct Calls {
    stats: Arc<ExecutorStats>,
    control: Arc<Control>,
    key: Key,
    /// As of [`Control::since_start_ns`].
    deadline_ns: AtomicU64,
    state: AtomicU8,
}

impl Calls {
    /// Of a waker that is about to be handed to the timer `key`.
    pub(crate) fn new(checker: &Rc<Checker>, key: Key, deadline: Instant) -> Arc<Self> {
        let (stats, control) = (Arc::clone(&checker.stats), Arc::clone(&checker.control));
        Arc::new(Calls {
            key,
            deadline_ns: AtomicU64::new(control.since_start_ns(deadline)),
            state: AtomicU8::new(WAITING),
            stats,
            control,
        })
    }

    /// The timer is about to be moved to `deadline`.
    pub(crate) fn moved(&self, deadline: Instant) {
        let deadline_ns = self.control.since_start_ns(deadline);
        self.deadline_ns.store(deadline_ns, Ordering::Relaxed);
    }

    /// The timer is about to be dropped, or has another waker now.
    pub(crate) fn gone(&self) {
        self.state.store(GONE, Ordering::Relaxed);
    }

    /// The waker is called.
    pub(crate) fn called(&self) {
        let (ledger, key) = (&self.stats.ledger, self.key.0);
        match self.state.load(Ordering::Relaxed) {
            WAITING => {
                self.state.store(CALLED, Ordering::Relaxed);
                let now_ns = self.control.since_start_ns(clock::now());
                let early = self
                    .deadline_ns
                    .load(Ordering::Relaxed)
                    .saturating_sub(now_ns);
                ledger.check(Invariant::Expiries, early, || {
                    format!("the waker of timer {key} was called {early} ns early")
                });
                ledger.passed(Invariant::NothingTwice);
            }
            CALLED => ledger.holds(Invariant::NothingTwice, false, || {
                format!("the waker of timer {key} was called again")
            }),
            _ => ledger.holds(Invariant::CancelsHold, false, || {
                format!("the waker of timer {key} was called although the timer was gone")
            }),
        }
    }
}

const WAITING: u8 = 0;
const CALLED: u8 = 1;
const GONE: u8 = 2;
