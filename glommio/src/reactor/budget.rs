//! How much a task may do in one poll before it is asked whether its slice is over.
//!
//! An operation that succeeds at once returns `Ready`, and a loop of such operations never returns
//! to the executor: a peer that keeps a socket's buffer full would keep the thread. So each *leaf*
//! operation (one that waits by itself: a receive, a lock, a tick) counts its successes, and after
//! [`PER_LEAVE`] of them the next one asks `need_preempt`. If that is true it wakes its task and is
//! pending, as is every other leaf from then on: one arm of a `select!` must not go on because the
//! other was refused. The next poll of the task begins with a full budget, so it always advances.
//!
//! Each public future that can be ready without waiting takes part, also where it is ready with an
//! error: a loop that goes on after errors would keep the thread as well. A leaf that takes part:
//!
//! 1. calls [`poll_leave`] first: before a system call, and before it takes or changes anything, as
//!    nothing may be lost or done twice. It may run wakers, so nothing is borrowed.
//! 2. calls [`spend`] when it is `Ready` without having waited in this poll.
//!
//! [`counted`] does both. An `async fn` that seldom waits, or for long, calls [`consume`] when it
//! begins: that is counted once, and not in each poll in which it goes on waiting. One that fails
//! before it begins is [`checked`].
//!
//! The idea is that of tokio's `task::coop`; other than there, a task whose slice lasts goes on.
//!
//! A read from the page cache takes as long as ten of the others, and all tasks that read may be
//! served at once: with thirty tasks, each would wait for thirty slices. So where other tasks wait,
//! a task [reads](poll_leave_to_read) only [`READS`] blocks in one poll, and comes behind them then.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, ready};

use super::current;

thread_local! {
    /// Of the thread and not of a reactor: channels work outside of executors, too, and a look at it
    /// has to be a single load.
    static BUDGET: Cell<Budget> = const { Cell::new(Budget::ALONE) };
}

/// Successes until `need_preempt` is asked, which may read the clock (about 20 ns).
const PER_LEAVE: u32 = 32;

/// Blocks that a task reads from the page cache in one poll while others wait.
const READS: u32 = 3;

/// A read of fewer bytes counts as much.
const BLOCK_BYTES: usize = 4096;

/// So many refusals in one poll, and there is leave for [`PER_LEAVE`] more. A task that drives
/// futures by itself (a `block_on` in a task) polls what was refused again and again, and would
/// never get on; and a task that polls thousands of futures in one poll is held up by no more than a
/// small part of what these polls take.
const REFUSALS: u32 = 1024;

/// What the current poll may still do: successes in the lowest 16 bits, reads in the next 16, and
/// refusals in the upper half.
///
/// One word, as it is read right after it was written: a processor waits to read what several
/// narrower writes have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget(u64);

impl Budget {
    const FULL: Budget = Budget::new(PER_LEAVE, READS, REFUSALS);

    /// Where no other task waits: more reads than there will be.
    const ALONE: Budget = Budget::new(PER_LEAVE, u16::MAX as u32, REFUSALS);

    /// None left to refuse: nothing is refused.
    const UNLIMITED: Budget = Budget::new(PER_LEAVE, u16::MAX as u32, 0);

    const fn new(left: u32, reads_left: u32, refusals_left: u32) -> Self {
        Budget((refusals_left as u64) << 32 | (reads_left as u64) << 16 | left as u64)
    }

    const fn left(self) -> u32 {
        self.0 as u16 as u32
    }

    const fn reads_left(self) -> u32 {
        (self.0 >> 16) as u16 as u32
    }

    const fn refusals_left(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A poll of a task begins, for which others wait or do not, or none is under way any more. Returns
/// the budget of the poll before, for a poll inside another one to [go back](resume) to.
#[inline]
pub(crate) fn begin(others_wait: bool) -> Budget {
    BUDGET.replace(if others_wait {
        Budget::FULL
    } else {
        Budget::ALONE
    })
}

/// A poll inside the one with the budget `outer` is over.
#[inline]
pub(crate) fn resume(outer: Budget) {
    BUDGET.replace(outer);
}

/// Leave for one more operation; or the task has been woken, and the operation is to be pending.
#[inline]
pub(crate) fn poll_leave(cx: &Context<'_>) -> Poll<()> {
    if has_leave() {
        return Poll::Ready(());
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Whether there is leave for one more operation; one that is pending without has the task woken.
#[inline]
pub(crate) fn has_leave() -> bool {
    BUDGET.get().left() > 0 || ask()
}

/// One poll of a leaf, which is not polled without leave, and counts if it is ready.
#[inline]
pub(crate) fn counted<T>(
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    ready!(poll_leave(cx));
    let polled = poll(cx);
    if polled.is_ready() {
        spend();
    }
    polled
}

/// An operation that is done, or begins, as soon as there is leave.
pub(crate) fn poll_consume(cx: &mut Context<'_>) -> Poll<()> {
    counted(cx, |_| Poll::Ready(()))
}

/// As [`poll_consume`], refused once at most: it goes on beside a future that takes all there is in
/// each poll.
pub(crate) async fn consume() {
    let mut was_refused = false;
    poll_fn(|cx| match mem::replace(&mut was_refused, true) {
        false => poll_consume(cx),
        true => Poll::Ready(()),
    })
    .await;
}

/// `result`, of what comes before an operation: if it failed, that is all, and counts.
pub(crate) async fn checked<T, E>(result: Result<T, E>) -> Result<T, E> {
    if result.is_err() {
        consume().await;
    }
    result
}

/// As [`poll_leave`], for a read that the page cache may serve.
pub(crate) fn poll_leave_to_read(cx: &Context<'_>) -> Poll<()> {
    ready!(poll_leave(cx));
    let budget = BUDGET.get();
    if budget.reads_left() > 0 {
        return Poll::Ready(());
    }
    // Refused once: what is polled again and again in one poll gets on.
    BUDGET.set(Budget::new(budget.left(), READS, budget.refusals_left()));
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// The page cache has served a read of so many bytes.
pub(crate) fn spend_read(bytes: usize) {
    let blocks = u32::try_from(bytes.div_ceil(BLOCK_BYTES).max(1)).unwrap_or(u32::MAX);
    let budget = BUDGET.get();
    let reads_left = budget.reads_left().saturating_sub(blocks);
    BUDGET.set(Budget::new(
        budget.left(),
        reads_left,
        budget.refusals_left(),
    ));
    spend();
}

/// An operation has succeeded at once.
#[inline]
pub(crate) fn spend() {
    let budget = BUDGET.get();
    BUDGET.set(Budget(budget.0 - u64::from(budget.left() > 0)));
}

/// `count` operations have succeeded by one call.
pub(crate) fn spend_many(count: usize) {
    let budget = BUDGET.get();
    let spent = u64::from(budget.left()).min(count as u64);
    BUDGET.set(Budget(budget.0 - spent));
}

#[cold]
fn ask() -> bool {
    let budget = BUDGET.get();
    let reads_left = budget.reads_left();
    let budget = match budget.refusals_left() {
        0 => Budget::UNLIMITED,
        1 => Budget::new(PER_LEAVE, reads_left, REFUSALS),
        left if current::need_preempt() => Budget::new(0, reads_left, left - 1),
        left => Budget::new(PER_LEAVE, reads_left, left),
    };
    BUDGET.set(budget);
    budget.left() > 0
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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// How many blocks are read until there is no leave for a time.
    fn blocks_read(bytes: usize, most: usize) -> usize {
        let cx = Context::from_waker(Waker::noop());
        (0..most)
            .take_while(|_| {
                let may_read = poll_leave_to_read(&cx).is_ready();
                if may_read {
                    spend_read(bytes);
                }
                may_read
            })
            .count()
    }

    #[test]
    fn who_is_served_at_once_comes_behind_those_who_wait() {
        begin(true);
        assert_eq!(blocks_read(4096, 1000), READS as usize);
        assert_eq!(blocks_read(1, 1000), READS as usize, "refused once");
        begin(true);
        assert_eq!(blocks_read(1 << 20, 1000), 1);
        begin(true);
        assert_eq!(blocks_read(usize::MAX, 1000), 1);
        begin(false);
    }

    #[test]
    fn where_none_waits_reading_goes_on() {
        begin(false);
        assert_eq!(blocks_read(4096, 1000), 1000);
        begin(true);
        unlimited(|| assert_eq!(blocks_read(4096, 1000), 1000));
        begin(false);
    }

    #[test]
    fn reads_left_are_as_many_after_a_question() {
        begin(true);
        spend_read(4096);
        let cx = Context::from_waker(Waker::noop());
        for _ in 0..3 * PER_LEAVE {
            assert!(poll_leave(&cx).is_ready());
            spend();
        }
        assert_eq!(blocks_read(4096, 1000), READS as usize - 1);
        begin(false);
    }
}
