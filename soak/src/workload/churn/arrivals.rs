//! Wakers that know whether they may be called, and the list of the slots that want to be polled.
//!
//! ```text
//!   Waiting ──called──▶ Called      once, and not before the deadline
//!      │                  │
//!      └──────gone────────┴──▶ Gone   not at all any more
//! ```
//!
//! What a waker sees comes from the queue as it is: no `Timer` has looked at the clock again in
//! between.

use std::sync::Mutex;
use std::task::Wake;

use crate::workload::prelude::*;

/// Slots whose timers want to be polled.
#[derive(Default)]
pub(super) struct Arrivals(Mutex<Woken>);

#[derive(Default)]
struct Woken {
    slots: Vec<usize>,
    collector: Option<Waker>,
}

impl Arrivals {
    /// Moves the list into `into`, once there is something in it.
    pub(super) fn poll(&self, cx: &Context<'_>, into: &mut Vec<usize>) -> Poll<()> {
        let mut woken = lock(&self.0);
        std::mem::swap(&mut woken.slots, into);
        if into.is_empty() {
            woken.collector = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// A timer's waker, which its owner has a share of.
pub(super) struct Arrival {
    stats: Arc<ExecutorStats>,
    arrivals: Arc<Arrivals>,
    index: usize,
    key: Key,
    state: Mutex<State>,
}

enum State {
    /// For a timer that is due then.
    Waiting(Instant),
    Called,
    Gone,
}

impl Arrival {
    /// A waker that is about to be handed to the timer `key` in the slot `index`.
    pub(super) fn new(
        stats: &Arc<ExecutorStats>,
        arrivals: &Arc<Arrivals>,
        index: usize,
        key: Key,
        deadline: Instant,
    ) -> Arc<Self> {
        Arc::new(Arrival {
            stats: Arc::clone(stats),
            arrivals: Arc::clone(arrivals),
            index,
            key,
            state: Mutex::new(State::Waiting(deadline)),
        })
    }

    /// The timer is about to be moved.
    pub(super) fn moved(&self, to: Instant) {
        if let State::Waiting(deadline) = &mut *lock(&self.state) {
            *deadline = to;
        }
    }

    /// The timer is about to be dropped, or has another waker now.
    pub(super) fn gone(&self) {
        *lock(&self.state) = State::Gone;
    }

    fn called(&self) {
        let (ledger, key) = (&self.stats.ledger, self.key.0);
        let mut state = lock(&self.state);
        match *state {
            State::Waiting(deadline) => {
                *state = State::Called;
                let early = nanos(deadline.saturating_duration_since(Instant::now()));
                ledger.check(Invariant::Expiries, early, || {
                    format!("the waker of timer {key} was called {early} ns early")
                });
                ledger.passed(Invariant::NothingTwice);
            }
            State::Called => ledger.holds(Invariant::NothingTwice, false, || {
                format!("the waker of timer {key} was called again")
            }),
            State::Gone => ledger.holds(Invariant::CancelsHold, false, || {
                format!("the waker of timer {key} was called although the timer was gone")
            }),
        }
    }
}

impl Wake for Arrival {
    fn wake(self: Arc<Self>) {
        self.called();
        let collector = {
            let mut woken = lock(&self.arrivals.0);
            woken.slots.push(self.index);
            woken.collector.take()
        };
        if let Some(collector) = collector {
            collector.wake();
        }
    }
}
