//! Tasks that wait for what another thread does: at the other end of a channel, or of a
//! cancellation.
//!
//! ```text
//!   this thread                                  the other thread
//!   1. waiting := 1, or more (swap)              1. change what is waited for
//!   2. look; wait if there is nothing            2. waiting = 0? (compare-exchange) else notify the oldest
//! ```
//!
//! Proof that no wake-up is lost: both write the word `waiting` by a read-modify-write, so one
//! comes first. If it is the other thread's, then every write between that and this thread's swap
//! is a read-modify-write too, the swap acquires what was changed before, and the look finds it.
//! Otherwise the other thread reads that there is a waiter, and takes the lock. A compare-exchange
//! that fails writes nothing, but then it has read that.
//!
//! Nothing in this asks for a compare-exchange after each change. One after the last of several
//! changes covers them all, so a thread that makes many may put it off, as long as it is sure to
//! come; see `channels/shared_channel`. Meanwhile [`Waiters::may_wait`], a plain load, tells of
//! waiters that have been there for a while.
//!
//! A notified task has left the list, so changes that follow before it has run cost one
//! compare-exchange each: wake-ups coalesce. The word stays in the cache of the thread that asks
//! it, until a task waits again.

use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use crate::loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::loom::sync::{Mutex, MutexGuard};
use crate::noted::waits_at;
use crate::reactor::wake;
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_first};

/// See the module.
pub(crate) struct Waiters {
    /// How many wait and were not notified. Written by read-modify-writes only, and under the lock
    /// except by the compare-exchange that leaves it as it is.
    waiting: AtomicUsize,
    queue: Mutex<WaitQueue>,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Waiters {
            waiting: AtomicUsize::new(0),
            queue: Mutex::new(WaitQueue::new()),
        }
    }

    /// Whether tasks wait that were not notified: a hint, which may miss one that has only just
    /// begun to.
    #[inline]
    pub(crate) fn may_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Wakes the oldest task that waits, after something has changed that one of them waits for.
    /// False if none does.
    #[inline]
    pub(crate) fn notify_one(&self) -> bool {
        let unchanged = self
            .waiting
            .compare_exchange(0, 0, Ordering::Release, Ordering::Relaxed);
        if unchanged.is_err() {
            self.notify_oldest();
        }
        unchanged.is_err()
    }

    fn notify_oldest(&self) {
        let mut queue = self.lock();
        let waker = queue.notify_oldest();
        self.publish(&queue);
        drop(queue);
        waker.into_iter().for_each(wake);
    }

    /// Wakes all that wait, after something has changed for good.
    pub(crate) fn notify_all(&self) {
        let waiting = self.lock().waiting();
        (0..waiting).for_each(|_| self.notify_oldest());
    }

    /// Waits until `look` finds something. It is called under the lock, and must run no code of
    /// others.
    pub(crate) fn wait<R, L>(&self, look: L) -> Wait<'_, L>
    where
        L: FnMut() -> Option<R>,
    {
        Wait {
            waiters: self,
            look,
            key: None,
        }
    }

    /// Gives a future its place as if it had been notified: it looks again by itself. False if
    /// others wait or have been notified, who came before it.
    pub(crate) fn enter_alone(&self, key: &mut Option<WaitKey>) -> bool {
        self.lock().enter_alone(key, ())
    }

    /// Takes a future away that has [entered alone](Self::enter_alone), and found what it looked
    /// for.
    pub(crate) fn forget(&self, key: &mut Option<WaitKey>) {
        let left = self.lock().leave(key);
        debug_assert!(
            matches!(left, Some(Removed::Notified(()))),
            "it did not wait"
        );
    }

    /// One poll of a future that [waits](Self::wait).
    pub(crate) fn poll<R>(
        &self,
        key: &mut Option<WaitKey>,
        cx: &Context<'_>,
        mut look: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        if key.is_none()
            && let Some(found) = look()
        {
            return Poll::Ready(found);
        }
        self.wait_on(key, cx, look)
    }

    /// As [`poll`](Self::poll), for a future that has just looked and found nothing, or was woken.
    pub(crate) fn wait_on<R>(
        &self,
        key: &mut Option<WaitKey>,
        cx: &Context<'_>,
        mut look: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        poll_first(cx, key.is_none(), |waker| {
            let mut queue = self.lock();
            let was_waiting = key.as_ref().is_some_and(|key| !queue.is_notified(key));
            if key.is_some()
                && let Some(found) = look()
            {
                queue.finish(key, waker);
                self.publish(&queue);
                return Poll::Ready(found);
            }
            // One that was in the list before is told of whatever this look has missed.
            if !queue.wait(key, waker, ()) || was_waiting {
                return Poll::Pending;
            }
            self.publish(&queue);
            let Some(found) = look() else {
                return Poll::Pending;
            };
            queue.finish(key, waker);
            self.publish(&queue);
            Poll::Ready(found)
        })
    }

    /// Gives up waiting. A notification that was not acted on goes to the next.
    pub(crate) fn leave(&self, key: &mut Option<WaitKey>) {
        if key.is_none() {
            return;
        }
        let mut queue = self.lock();
        let left = queue.leave(key);
        self.publish(&queue);
        drop(queue);
        if let Some(Removed::Notified(())) = left {
            self.notify_oldest();
        }
    }

    /// Gives back what was needed to wait: a channel may be idle for long after its ends have met.
    pub(crate) fn shrink(&self) {
        self.lock().shrink();
    }

    fn publish(&self, queue: &WaitQueue) {
        self.waiting.swap(queue.waiting(), Ordering::Acquire);
    }

    fn lock(&self) -> MutexGuard<'_, WaitQueue> {
        // Nothing under the lock panics half-way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Waiters {
    fn default() -> Self {
        Waiters::new()
    }
}

impl_debug! { Waiters, it: waiting: it.waiting.load(Ordering::Relaxed); .. }

/// Something that is said once, by any thread, to all that look or wait.
#[derive(Debug, Default)]
pub(crate) struct Notice {
    is_given: AtomicBool,
    waiters: Waiters,
}

impl Notice {
    pub(crate) fn give(&self) {
        // Before they are notified: a task that is woken finds this set.
        self.is_given.store(true, Ordering::Release);
        self.waiters.notify_all();
    }

    /// Costs a load.
    pub(crate) fn is_given(&self) -> bool {
        self.is_given.load(Ordering::Acquire)
    }

    /// Waits until it is given.
    pub(crate) async fn given(&self) {
        let is_given = || self.is_given().then_some(());
        self.waiters.wait(is_given).await;
    }
}

/// See [`Waiters::wait`].
#[must_use = "futures do nothing unless polled"]
pub(crate) struct Wait<'a, L> {
    waiters: &'a Waiters,
    look: L,
    key: Option<WaitKey>,
}

/// Nothing is pinned in it.
impl<L> Unpin for Wait<'_, L> {}

impl<R, L: FnMut() -> Option<R>> Future for Wait<'_, L> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let Wait { waiters, look, key } = &mut *self;
        waits_at(waiters.poll(key, cx, look), "another thread", *waiters)
    }
}

impl<L> Drop for Wait<'_, L> {
    fn drop(&mut self) {
        self.waiters.leave(&mut self.key);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::thread;

    use super::{AtomicBool, Notice, Ordering};

    /// A thread that finds the notice given sees what was done before.
    #[run_test(loom::model)]
    fn loom_a_notice_shows_what_was_before_it() {
        let notice = Arc::new((Notice::default(), AtomicBool::new(false)));
        let giver = Arc::clone(&notice);
        let thread = thread::spawn(move || {
            giver.1.store(true, Ordering::Relaxed);
            giver.0.give();
        });
        if notice.0.is_given() {
            assert!(notice.1.load(Ordering::Relaxed));
        }
        thread.join().expect("it ends well");
    }
}
