//! The tasks at one end of a channel that wait for the thread at the other end.
//!
//! ```text
//!   this end                                     the other end
//!   1. waiting := 1, or more (swap)              1. change what is waited for
//!   2. look; wait if there is nothing            2. waiting = 0? (compare-exchange) else notify the oldest
//! ```
//!
//! Proof that no wake-up is lost: both write the word `waiting` by a read-modify-write, so one comes first. If it is
//! the other end's, then every write between that and this end's swap is a read-modify-write too, the swap acquires
//! what was changed before, and the look finds it. Otherwise the other end reads that there is a waiter, and takes the
//! lock. A compare-exchange that fails writes nothing, but then it has read that.
//!
//! A notified task has left the list, so changes that follow before it has run cost one compare-exchange each: wake-ups
//! coalesce. The word stays in the cache of the end that asks it, until a task waits again.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use crate::mailbox::loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::mailbox::loom::sync::{Mutex, MutexGuard};
use crate::reactor::wake;
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_waiting};

/// See the module. On cache lines of its own, as each end asks the list of the other all the time.
#[repr(align(128))]
pub(super) struct Waiters {
    /// How many wait and were not notified. Written by read-modify-writes only, and under the lock except by the
    /// compare-exchange that leaves it as it is.
    waiting: AtomicUsize,
    queue: Mutex<WaitQueue>,
    /// Whether this end has come to its executor. Here, as it fills up the line.
    has_arrived: AtomicBool,
}

const _: () = assert!(cfg!(loom) || size_of::<Waiters>() == 128);

impl Waiters {
    pub(super) fn new() -> Self {
        Waiters {
            waiting: AtomicUsize::new(0),
            queue: Mutex::new(WaitQueue::new()),
            has_arrived: AtomicBool::new(false),
        }
    }

    /// This end has come to its executor. The other end is for the caller to notify.
    pub(super) fn arrive(&self) {
        self.has_arrived.store(true, Ordering::Release);
    }

    /// Whether it has.
    pub(super) fn has_arrived(&self) -> bool {
        self.has_arrived.load(Ordering::Acquire)
    }

    /// Wakes the oldest task that waits, after something has changed that one of them waits for.
    #[inline]
    pub(super) fn notify_one(&self) {
        let unchanged = self
            .waiting
            .compare_exchange(0, 0, Ordering::AcqRel, Ordering::Acquire);
        if unchanged.is_err() {
            self.notify_oldest();
        }
    }

    fn notify_oldest(&self) {
        let mut queue = self.lock();
        let waker = queue.notify_oldest();
        self.publish(&queue);
        drop(queue);
        waker.into_iter().for_each(wake);
    }

    /// Wakes all that wait, after something has changed for good.
    pub(super) fn notify_all(&self) {
        let waiting = self.lock().waiting();
        (0..waiting).for_each(|_| self.notify_oldest());
    }

    /// Waits until `look` finds something. It is called under the lock, and must run no code of others.
    pub(super) fn wait<R, L>(&self, look: L) -> Wait<'_, L>
    where
        L: FnMut() -> Option<R>,
    {
        Wait {
            waiters: self,
            look,
            key: None,
        }
    }

    /// One poll of a future that [waits](Self::wait).
    pub(super) fn poll<R>(
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
        poll_waiting(cx, |waker| {
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
    pub(super) fn leave(&self, key: &mut Option<WaitKey>) {
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
    pub(super) fn shrink(&self) {
        self.lock().shrink();
    }

    fn publish(&self, queue: &WaitQueue) {
        self.waiting.swap(queue.waiting(), Ordering::AcqRel);
    }

    fn lock(&self) -> MutexGuard<'_, WaitQueue> {
        // Nothing under the lock panics half-way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters")
            .field("waiting", &self.waiting.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// See [`Waiters::wait`].
#[must_use = "futures do nothing unless polled"]
pub(super) struct Wait<'a, L> {
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
        waiters.poll(key, cx, look)
    }
}

impl<L> Drop for Wait<'_, L> {
    fn drop(&mut self) {
        self.waiters.leave(&mut self.key);
    }
}
