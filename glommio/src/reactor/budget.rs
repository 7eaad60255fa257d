//! How much a task may do in one poll before it is asked whether its slice is over.
//!
//! An operation that succeeds at once returns `Ready`, and a loop of such operations never returns
//! to the executor: a peer that keeps a socket's buffer full would keep the thread. So each *leaf*
//! operation (one that waits by itself: a receive, a lock, a tick) counts its successes, and after
//! [`PER_LEAVE`] of them the next one asks `need_preempt`. If that is true it wakes its task and is
//! pending, as is every other leaf from then on: one arm of a `select!` must not go on because the
//! other was refused. The next poll of the task begins with a full budget, so it always advances.
//!
//! A leaf that takes part:
//!
//! 1. calls [`poll_leave`] first: before a system call, and before it takes or changes anything, as
//!    nothing may be lost or done twice. It may run wakers, so nothing is borrowed.
//! 2. calls [`spend`] when it is `Ready` without having waited in this poll.
//!
//! The idea is that of tokio's `task::coop`; other than there, a task whose slice lasts goes on.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::task::{Context, Poll};

use super::current;

thread_local! {
    /// Of the thread and not of a reactor: channels work outside of executors, too, and a look at it
    /// has to be a single load.
    static BUDGET: Cell<Budget> = const { Cell::new(Budget::FULL) };
}

/// Successes until `need_preempt` is asked, which may read the clock (some 20 ns).
const PER_LEAVE: u32 = 32;

/// Refusals in one poll until nothing is refused any more. A task that drives futures by itself (a
/// `block_on` in a task) polls what was refused again and again, and would never get on; so many
/// leaves that are refused in one honest poll are rare.
const REFUSALS_MAX: u32 = 4096;

/// What the current poll may still do: in the lower half successes, in the upper half refusals.
///
/// One word, as it is read right after it was written: a processor waits to read what several
/// narrower writes have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget(u64);

impl Budget {
    pub(crate) const FULL: Budget = Budget::new(PER_LEAVE, REFUSALS_MAX);

    /// With none left to refuse.
    const UNLIMITED: Budget = Budget::new(PER_LEAVE, 0);

    const fn new(left: u32, refusals_left: u32) -> Self {
        Budget((refusals_left as u64) << 32 | left as u64)
    }

    const fn left(self) -> u32 {
        self.0 as u32
    }

    const fn refusals_left(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A poll of a task begins, or none is under way any more. Returns the budget of the poll before,
/// for a poll inside another one to [go back](resume) to.
#[inline]
pub(crate) fn begin() -> Budget {
    BUDGET.replace(Budget::FULL)
}

/// A poll inside the one with the budget `outer` is over.
#[inline]
pub(crate) fn resume(outer: Budget) {
    BUDGET.replace(outer);
}

/// Leave for one more operation; or the task has been woken, and the operation is to be pending.
#[inline]
pub(crate) fn poll_leave(cx: &Context<'_>) -> Poll<()> {
    match BUDGET.get().left() {
        0 => ask(cx),
        _ => Poll::Ready(()),
    }
}

/// An operation has succeeded at once.
#[inline]
pub(crate) fn spend() {
    let budget = BUDGET.get();
    BUDGET.set(Budget(budget.0 - u64::from(budget.left() > 0)));
}

#[cold]
fn ask(cx: &Context<'_>) -> Poll<()> {
    let refusals_left = BUDGET.get().refusals_left();
    if refusals_left == 0 {
        BUDGET.set(Budget::UNLIMITED);
        return Poll::Ready(());
    }
    if !current::need_preempt() {
        BUDGET.set(Budget::FULL);
        return Poll::Ready(());
    }
    BUDGET.set(Budget::new(0, refusals_left - 1));
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Calls `poll` without a limit, and then goes on with what there was before.
pub(crate) fn unlimited<R>(poll: impl FnOnce() -> R) -> R {
    struct Restore(Budget);
    impl Drop for Restore {
        fn drop(&mut self) {
            resume(self.0);
        }
    }
    let _restore = Restore(BUDGET.replace(Budget::UNLIMITED));
    poll()
}
