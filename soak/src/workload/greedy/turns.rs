//! What greedy tasks do once their executor wants the thread back, and a timer that is due again and
//! again beside them.
//!
//! Both are exact. Whether the executor wants the thread back when a timer is due, the library's own
//! counts say (`next expiry kept`). How soon the timer's task runs then depends on the machine, which may
//! have taken a core away just as its kernel was to fire a timer there: `late, greedy` says it, in time.

use std::future::poll_fn;
use std::pin::pin;

use crate::workload::prelude::*;

/// Counts.
pub(super) struct Turns {
    pub(super) checker: Rc<Checker>,
    /// Operations of the poll that goes on while the executor wants its thread back: since it does, and at most.
    overdue: Cell<(u64, u64)>,
    /// For how long the thread had computed at the last beat of the timer, and at most from one beat to the next.
    computed: Cell<Duration>,
    longest_stretch: Cell<Duration>,
}

impl Turns {
    pub(super) fn new(checker: &Rc<Checker>) -> Self {
        Turns {
            checker: Rc::clone(checker),
            overdue: Cell::default(),
            computed: Cell::new(process::thread_time()),
            longest_stretch: Cell::default(),
        }
    }

    /// A greedy task has done one more thing.
    pub(super) fn operation(&self) {
        let (now, most) = self.overdue.get();
        // It may want the thread back and then not any more, as when what was submitted begins a new slice: then the budget is
        // full again.
        let now = (now + 1) * u64::from(executor().need_preempt());
        self.overdue.set((now, most.max(now)));
    }

    /// Does `work`, each poll of which is held against `promise`.
    pub(super) async fn judge<W: Future>(self: Rc<Self>, promise: Invariant, work: W) -> W::Output {
        let mut work = pin!(work);
        poll_fn(|cx| {
            // It may be polled inside of another one that spawns it.
            let outer = self.overdue.take();
            let polled = work.as_mut().poll(cx);
            let (_, most) = self.overdue.replace(outer);
            let too_many = most.saturating_sub(OVERDUE_MAX);
            self.checker.check(promise, too_many, || {
                format!("{most} operations were done in a poll that was to end")
            });
            polled
        })
        .await
    }

    /// For how long the thread has computed at most since the last call, with no beat in between.
    pub(super) fn take_longest_stretch(&self) -> Duration {
        self.stretch();
        self.longest_stretch.take()
    }

    fn stretch(&self) {
        let now = process::thread_time();
        let stretch = now - self.computed.replace(now);
        let longest = self.longest_stretch.get();
        self.longest_stretch.set(longest.max(stretch));
    }

    /// Beats until the run drains.
    pub(super) async fn attend(&self) {
        let checker = &self.checker;
        while !checker.control.is_draining() {
            let ticket = checker.arm(clock::now() + EVERY);
            let _live = ticket.live;
            Timer::at(ticket.deadline).await;
            checker.fired(ticket.key);
            self.stretch();
        }
    }
}

const EVERY: Duration = Duration::from_millis(2);

/// Twice what a budget is: a task asks whether to return after 32 operations.
const OVERDUE_MAX: u64 = 64;

/// What is done in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Of the stream, in pieces.
    pub(super) reads: usize,
    pub(super) datagrams: usize,
    /// Of the channel between the executors,
    pub(super) messages: usize,
    /// and of the one within.
    pub(super) local: usize,
    /// From one round to the next.
    pub(super) every: Duration,
}

/// So many times as long does an operation take without optimisation, at the least: fewer hold an executor for as long.
pub(super) const SLOWNESS: usize = if cfg!(debug_assertions) { 16 } else { 1 };
