//! A collection whose items come out when their deadlines have passed.
//!
//! Made for message queues: delayed delivery, retries, leases, entries of a cache that expire.
//! The items are in a timer queue of their own, of the same kind as that of the executor: with the
//! feature `timing-wheel` an insert, a reset and a removal cost the same with ten items and with a
//! million. One task waits for all of them, and one timer of the executor wakes it.
//!
//! ```
//! use glommio::{LocalExecutor, spawn_local, timer::DelayQueue};
//! use std::{rc::Rc, time::Duration};
//!
//! LocalExecutor::default().run(async {
//!     let retries = Rc::new(DelayQueue::new());
//!     let worker = spawn_local({
//!         let retries = Rc::clone(&retries);
//!         async move { retries.next_expired().await.into_inner() }
//!     });
//!     let late = retries.insert("second", Duration::from_secs(60));
//!     retries.insert("first", Duration::from_millis(1));
//!     assert_eq!(worker.await, "first");
//!     assert_eq!(retries.remove(late), Some("second"));
//! });
//! ```
//!
//! # Order
//!
//! Items come in the order of their deadlines, and items of one deadline in the order in which they
//! were inserted or reset. A poll that finds items whose deadlines have passed takes note of up to 64 of
//! them: what is inserted or reset then comes behind these, whatever its deadline.

mod items;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Weak;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use self::items::Items;
pub use self::items::{Expired, Key};
use crate::clock;
use crate::noted::{Awaited, waits_for};
use crate::reactor::{Reactor, TimerEntry, budget, current, deadline_after};
use futures_core::Stream;

/// Items, each of which is to come out at its deadline.
///
/// All methods take `&self`: some tasks can insert and remove while another one waits. One task
/// waits at a time: of several that wait for the next item, only the one that polled last is woken.
///
/// As a [`Stream`] it never ends, and an empty queue is pending: an item that is inserted later
/// wakes the task. `&DelayQueue` is a stream, too.
///
/// The executor in which a queue was created wakes the task that waits, also if that runs under another
/// one. When that executor is gone no task is woken; a poll still finds what is due by then.
///
/// Dropping the queue drops its items. If destructors panic, the others run all the same, and the
/// first panic goes on.
///
/// # Examples
///
/// ```
/// use futures_lite::StreamExt;
/// use glommio::timer::DelayQueue;
/// use std::{future::poll_fn, time::{Duration, Instant}};
///
/// glommio::LocalExecutor::default().run(async {
///     let queue = DelayQueue::new();
///     let now = Instant::now();
///     for n in [3, 1, 2] {
///         queue.insert_at(n, now + Duration::from_millis(n));
///     }
///     let order: Vec<_> = (&queue).take(3).map(|it| it.into_inner()).collect().await;
///     assert_eq!(order, [1, 2, 3]);
///
///     let lease = queue.insert(4, Duration::from_secs(30));
///     let deadline = now + Duration::from_secs(60);
///     assert!(queue.reset_at(lease, deadline));
///     assert_eq!(queue.deadline(lease), Some(deadline));
///     assert!(queue.reset(lease, Duration::from_millis(1)));
///     assert_eq!(poll_fn(|cx| queue.poll_expired(cx)).await.into_inner(), 4);
///     assert_eq!(queue.deadline(lease), None, "it has left");
///
///     queue.insert(5, Duration::from_secs(30));
///     assert_eq!(queue.len(), 1);
///     queue.clear();
///     assert!(queue.is_empty());
/// });
/// ```
pub struct DelayQueue<T> {
    reactor: Weak<Reactor>,
    items: RefCell<Items<T>>,
    /// Wakes the task that polled last. Taken out while a waker is cloned, which is user code.
    alarm: Cell<Option<TimerEntry>>,
    /// When it does, if a task waits.
    alarm_at: Cell<Option<Instant>>,
    never: Instant,
}

impl<T> DelayQueue<T> {
    /// An empty queue of the executor that runs on this thread. It takes memory with the first
    /// item.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn new() -> Self {
        DelayQueue {
            reactor: current::current(),
            items: RefCell::new(Items::new()),
            alarm: Cell::default(),
            alarm_at: Cell::default(),
            never: deadline_after(clock::now(), Duration::MAX),
        }
    }

    /// Inserts an item that expires `delay` from now. `Duration::MAX` and the like mean never.
    pub fn insert(&self, value: T, delay: Duration) -> Key {
        self.insert_at(value, deadline_after(clock::now(), delay))
    }

    /// Inserts an item that expires at `deadline`.
    pub fn insert_at(&self, value: T, deadline: Instant) -> Key {
        let key = self.items.borrow_mut().insert(value, deadline);
        self.wake_by(deadline);
        key
    }

    /// Takes an item out, expired or not. `None` if it has left the queue.
    pub fn remove(&self, key: Key) -> Option<T> {
        self.items.borrow_mut().remove(key)
    }

    /// Moves the deadline of an item to `delay` from now, sooner or later than it was. Also that of
    /// one that has expired and not come out yet: it waits again. False if it has left the
    /// queue.
    pub fn reset(&self, key: Key, delay: Duration) -> bool {
        self.reset_at(key, deadline_after(clock::now(), delay))
    }

    /// Moves the deadline of an item to `deadline`, as [`reset`](Self::reset) does.
    pub fn reset_at(&self, key: Key, deadline: Instant) -> bool {
        let is_reset = self.items.borrow_mut().reset(key, deadline);
        if is_reset {
            self.wake_by(deadline);
        }
        is_reset
    }

    /// When an item is to expire, or has expired. `None` if it has left the queue.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        self.items.borrow_mut().deadline(key)
    }

    /// How many items there are, those that have expired and not come out included.
    pub fn len(&self) -> usize {
        self.items.borrow().len()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all items. Their destructors find the queue empty and may use it.
    ///
    /// # Panics
    ///
    /// Panics with the first panic of a destructor, when all have run.
    pub fn clear(&self) {
        let cleared = self.items.borrow_mut().take();
        cleared.drop_all();
    }

    /// Waits for the next item that expires, and takes it out.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped: an item leaves the queue when the future is ready with
    /// it.
    pub fn next_expired(&self) -> NextExpired<'_, T> {
        NextExpired { queue: self }
    }

    /// Takes the next item that has expired out. If there is none, the task of `cx` is woken when
    /// one expires, and no task that has polled before.
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<Expired<T>> {
        ready!(budget::poll_leave(cx));
        let expired = self.items.borrow_mut().take_due();
        if let Some(expired) = expired {
            budget::spend();
            return Poll::Ready(expired);
        }
        self.wait(cx.waker());
        waits_for(Poll::Pending, || Awaited::Deadline(self.next_expiry()))
    }

    /// Has `waker` woken when the next item is due.
    fn wait(&self, waker: &Waker) {
        let next = self.next_expiry();
        // Cloning and dropping wakers is user code, which may come back to the queue.
        let alarm = self.alarm.take();
        let mut alarm = alarm.unwrap_or_else(|| TimerEntry::new(Weak::clone(&self.reactor)));
        let is_set = self.alarm_at.get() == Some(next) && alarm.set_waker(waker);
        if !is_set {
            alarm.arm(next, waker);
        }
        self.alarm_at.set(Some(next));
        let other = self.alarm.replace(Some(alarm));
        drop(other);
        // What was inserted meanwhile.
        self.wake_by(self.next_expiry());
    }

    /// When to look again.
    fn next_expiry(&self) -> Instant {
        let next = self.items.borrow_mut().next_expiry();
        next.unwrap_or(self.never)
    }

    /// A deadline of an item is `deadline` now: who waits is not to be woken later.
    fn wake_by(&self, deadline: Instant) {
        if self.alarm_at.get().is_none_or(|at| at <= deadline) {
            return;
        }
        if let Some(mut alarm) = self.alarm.take() {
            // If it has gone off, the task is woken, and will say when it waits again.
            let is_waiting = alarm.rearm(deadline);
            self.alarm_at.set(is_waiting.then_some(deadline));
            self.alarm.set(Some(alarm));
        }
    }
}

impl<T> Default for DelayQueue<T> {
    /// As [`new`](Self::new).
    fn default() -> Self {
        DelayQueue::new()
    }
}

impl<T> Stream for DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.poll_expired(cx).map(Some)
    }
}

impl<T> Stream for &DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.poll_expired(cx).map(Some)
    }
}

impl<T> Drop for DelayQueue<T> {
    fn drop(&mut self) {
        self.items.get_mut().take().drop_all();
    }
}

impl_debug! { [T] DelayQueue[T], it: len: it.len(); .. }

/// See [`DelayQueue::next_expired`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct NextExpired<'a, T> {
    queue: &'a DelayQueue<T>,
}

impl<T> Future for NextExpired<'_, T> {
    type Output = Expired<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Expired<T>> {
        self.queue.poll_expired(cx)
    }
}
