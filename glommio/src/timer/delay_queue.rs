//! A collection whose items come out when their deadlines have passed.
//!
//! Made for message queues: delayed delivery, retries, leases, entries of a cache that expire.
//! Every item is a timer of the executor (with the feature `timing-wheel`, a record of its wheel),
//! so that an insert, a reset and a removal cost the same beside ten items and beside a million,
//! and one task waits for all of them.
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
//! Items come in the order in which they expire: by deadline, and items of one deadline in the
//! order in which they were inserted or reset. It is the executor that lets them expire, when it
//! looks at its timers: never before the deadline, and not inside the call that inserts or resets.
//! An item whose deadline has passed by then expires with the next look, which is behind those that
//! have expired before.

mod expired_list;
#[cfg(test)]
mod tests;
mod wakes;

use std::cell::RefCell;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Weak;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use std::{fmt, mem, thread};

use futures_core::Stream;
use slab::Slab;

use self::expired_list::ExpiredList;
use self::wakes::Wakes;
use crate::panic::FirstPanic;
use crate::reactor::{Reactor, TimerEntry, budget, current, deadline_after};

/// Items, each of which is to come out at its deadline.
///
/// All methods take `&self`: some tasks can insert and remove while another one waits. One task
/// waits at a time: of several that wait for the next item, only the one that polled last is woken.
///
/// As a [`Stream`] it never ends, and an empty queue is pending: an item that is inserted later
/// wakes the task. `&DelayQueue` is a stream, too.
///
/// A queue belongs to the executor in which it was created, also when it is used under another one.
/// When that executor is gone, no further item expires; those that had expired still come out, and
/// [`remove`](Self::remove) and [`clear`](Self::clear) work.
///
/// Dropping the queue drops its items. If destructors panic, the others run all the same, and the
/// first panic goes on.
///
/// # Examples
///
/// ```
/// use futures_lite::StreamExt;
/// use glommio::timer::DelayQueue;
/// use std::time::{Duration, Instant};
///
/// glommio::LocalExecutor::default().run(async {
///     let queue = DelayQueue::new();
///     let now = Instant::now();
///     for n in [3, 1, 2] {
///         queue.insert_at(n, now + Duration::from_millis(n));
///     }
///     let order: Vec<_> = (&queue).take(3).map(|it| it.into_inner()).collect().await;
///     assert_eq!(order, [1, 2, 3]);
/// });
/// ```
pub struct DelayQueue<T> {
    reactor: Weak<Reactor>,
    /// Unique in the process.
    id: u64,
    items: RefCell<Items<T>>,
    wakes: Arc<Wakes>,
}

struct Items<T> {
    slab: Slab<Item<T>>,
    /// For each place of the slab that was ever used.
    wakers: Vec<Waker>,
    inserted: u64,
    /// Items whose timers have woken, and none that is armed.
    expired: ExpiredList,
}

struct Item<T> {
    value: T,
    deadline: Instant,
    /// Armed until the item expires.
    timer: TimerEntry,
    number: u64,
}

/// Names an item of a [`DelayQueue`]. Once the item has left, and in another queue, it names
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    queue: u64,
    index: usize,
    number: u64,
}

impl<T> DelayQueue<T> {
    /// An empty queue of the executor that runs on this thread. It takes memory with the first
    /// item.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn new() -> Self {
        static QUEUES: AtomicU64 = AtomicU64::new(0);
        DelayQueue {
            reactor: current::current(),
            id: QUEUES.fetch_add(1, Ordering::Relaxed),
            items: RefCell::new(Items {
                slab: Slab::new(),
                wakers: Vec::new(),
                inserted: 0,
                expired: ExpiredList::default(),
            }),
            wakes: Arc::default(),
        }
    }

    /// Inserts an item that expires `delay` from now. `Duration::MAX` and the like mean never.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::timer::DelayQueue;
    /// use std::time::{Duration, Instant};
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let queue = DelayQueue::new();
    /// let before = Instant::now();
    /// queue.insert("lease", Duration::from_millis(2));
    /// let expired = queue.next_expired().await;
    /// assert!(expired.deadline() >= before + Duration::from_millis(2));
    /// assert!(expired.deadline() <= Instant::now());
    /// # });
    /// ```
    pub fn insert(&self, value: T, delay: Duration) -> Key {
        self.insert_at(value, deadline_after(Instant::now(), delay))
    }

    /// Inserts an item that expires at `deadline`.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::timer::DelayQueue;
    /// use std::time::Instant;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let queue = DelayQueue::new();
    /// queue.insert_at("due", Instant::now());
    /// assert_eq!(queue.next_expired().await.into_inner(), "due");
    /// # });
    /// ```
    pub fn insert_at(&self, value: T, deadline: Instant) -> Key {
        let mut items = self.items.borrow_mut();
        let number = items.inserted;
        items.inserted += 1;
        let index = items.slab.vacant_key();
        if index == items.wakers.len() {
            items.wakers.push(self.wakes.waker(index));
        }
        if self.reactor.strong_count() == 0 {
            // It will not be armed, and would be taken for expired by a wake of its place.
            items.collect(&self.wakes);
        }
        let mut item = Item {
            value,
            deadline,
            timer: TimerEntry::new(Weak::clone(&self.reactor)),
            number,
        };
        item.timer.arm(deadline, &items.wakers[index]);
        items.slab.insert(item);
        Key {
            queue: self.id,
            index,
            number,
        }
    }

    /// Takes an item out, expired or not. `None` if it has left the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::timer::DelayQueue;
    /// use std::time::Duration;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let unanswered = DelayQueue::new();
    /// let request = unanswered.insert("resend", Duration::from_secs(30));
    /// // The answer comes in time.
    /// assert_eq!(unanswered.remove(request), Some("resend"));
    /// assert_eq!(unanswered.remove(request), None);
    /// # });
    /// ```
    pub fn remove(&self, key: Key) -> Option<T> {
        let mut items = self.items.borrow_mut();
        let item = self.find(&mut items, key)?;
        if !item.timer.disarm() {
            items.unlist(key.index, &self.wakes);
        }
        let item = self.take(&mut items, key.index);
        Some(item.value)
    }

    /// Moves the deadline of an item to `delay` from now, sooner or later than it was. Also that of
    /// one that has expired and not come out yet: it waits again. False if it has left the
    /// queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::timer::DelayQueue;
    /// use std::time::Duration;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let sessions = DelayQueue::new();
    /// let session = sessions.insert("idle", Duration::from_millis(1));
    /// assert!(sessions.reset(session, Duration::from_millis(2)));
    /// sessions.next_expired().await;
    /// assert!(!sessions.reset(session, Duration::from_millis(2)));
    /// # });
    /// ```
    pub fn reset(&self, key: Key, delay: Duration) -> bool {
        self.reset_at(key, deadline_after(Instant::now(), delay))
    }

    /// Moves the deadline of an item to `deadline`, as [`reset`](Self::reset) does.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::timer::DelayQueue;
    /// use std::time::{Duration, Instant};
    ///
    /// let leases = DelayQueue::new();
    /// let lease = leases.insert("a", Duration::from_secs(30));
    /// let deadline = Instant::now() + Duration::from_millis(1);
    /// assert!(leases.reset_at(lease, deadline));
    /// assert_eq!(leases.deadline(lease), Some(deadline));
    /// assert_eq!(leases.next_expired().await.deadline(), deadline);
    /// assert_eq!(leases.deadline(lease), None, "it has left");
    /// # });
    /// ```
    pub fn reset_at(&self, key: Key, deadline: Instant) -> bool {
        let mut items = self.items.borrow_mut();
        let Some(item) = self.find(&mut items, key) else {
            return false;
        };
        item.deadline = deadline;
        if !item.timer.rearm(deadline) {
            items.unlist(key.index, &self.wakes);
            let Items { slab, wakers, .. } = &mut *items;
            slab[key.index].timer.arm(deadline, &wakers[key.index]);
        }
        true
    }

    /// When an item is to expire, or has expired. `None` if it has left the queue.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        Some(self.find(&mut self.items.borrow_mut(), key)?.deadline)
    }

    /// How many items there are, those that have expired and not come out included.
    pub fn len(&self) -> usize {
        self.items.borrow().slab.len()
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
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::timer::DelayQueue;
    /// use std::time::Duration;
    ///
    /// let queue = DelayQueue::new();
    /// queue.insert("a", Duration::from_secs(30));
    /// assert_eq!(queue.len(), 1);
    /// queue.clear();
    /// assert!(queue.is_empty());
    /// # });
    /// ```
    pub fn clear(&self) {
        let mut items = self.items.borrow_mut();
        let slab = mem::take(&mut items.slab);
        self.forget_places(&mut items);
        drop(items);
        drop_all(slab);
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
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::timer::DelayQueue;
    /// use std::{future::poll_fn, time::Duration};
    ///
    /// let queue = DelayQueue::new();
    /// queue.insert("due", Duration::ZERO);
    /// let expired = poll_fn(|cx| queue.poll_expired(cx)).await;
    /// assert_eq!(expired.into_inner(), "due");
    /// # });
    /// ```
    pub fn poll_expired(&self, cx: &mut Context<'_>) -> Poll<Expired<T>> {
        ready!(budget::poll_leave(cx));
        let expired = self.take_expired().or_else(|| {
            self.wakes.watch(cx.waker());
            // Once more: cloning a waker is user code.
            self.take_expired()
        });
        expired.map_or(Poll::Pending, |expired| {
            budget::spend();
            Poll::Ready(expired)
        })
    }

    fn take_expired(&self) -> Option<Expired<T>> {
        let mut items = self.items.borrow_mut();
        let index = items.expired.take_oldest().or_else(|| {
            items.collect(&self.wakes);
            items.expired.take_oldest()
        })?;
        let item = self.take(&mut items, index);
        let key = Key {
            queue: self.id,
            index,
            number: item.number,
        };
        Some(Expired {
            value: item.value,
            deadline: item.deadline,
            key,
        })
    }

    fn find<'a>(&self, items: &'a mut Items<T>, key: Key) -> Option<&'a mut Item<T>> {
        let item = items.slab.get_mut(key.index)?;
        self.is_named(item, key).then_some(item)
    }

    fn is_named(&self, item: &Item<T>, key: Key) -> bool {
        key.queue == self.id && key.number == item.number
    }

    fn take(&self, items: &mut Items<T>, index: usize) -> Item<T> {
        let item = items.slab.remove(index);
        if items.slab.is_empty() && items.slab.capacity() > KEPT_WHEN_EMPTY {
            items.slab = Slab::new();
            self.forget_places(items);
        }
        item
    }

    /// Gives back what there is for each place, and forgets the wakes, as the slab is a new one.
    fn forget_places(&self, items: &mut Items<T>) {
        items.wakers = Vec::new();
        items.expired = ExpiredList::default();
        self.wakes.reset();
    }
}

impl<T> Item<T> {
    /// False for one that the end of its executor has kept from expiring.
    fn is_due_if_left(&self) -> bool {
        !self.timer.is_left() || self.deadline <= Instant::now()
    }
}

impl<T> Items<T> {
    /// Lists the items that have expired since the last time.
    fn collect(&mut self, wakes: &Wakes) {
        wakes.collect(|index| {
            // The wake may have been for an item that has left, or has another deadline since: the
            // pass that woke had it already. A timer that is armed is to wake yet. None is any more
            // if the executor has ended meanwhile, so the clock is asked, too.
            let item = self.slab.get_mut(index);
            if item.is_some_and(|it| it.timer.has_expired() && it.is_due_if_left()) {
                // If it is listed, this is for another wake than that one, and a later one.
                self.expired.append(index);
            }
        });
    }

    /// An item that is not armed is to be armed again or to leave.
    #[cold]
    fn unlist(&mut self, index: usize, wakes: &Wakes) {
        self.collect(wakes);
        self.expired.remove(index);
    }
}

/// A queue of that many places keeps its memory when the last item leaves.
const KEPT_WHEN_EMPTY: usize = 64;

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
        drop_all(mem::take(&mut self.items.get_mut().slab));
    }
}

/// Drops each item, whatever the destructors of the others do.
fn drop_all<T>(items: Slab<Item<T>>) {
    let mut panics = FirstPanic::default();
    for (_, item) in items {
        panics.catch(|| drop(item));
    }
    // While another panic unwinds, dropping `panics` ends this one, with a line in the log.
    if !thread::panicking()
        && let Some(payload) = panics.take()
    {
        resume_unwind(payload);
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

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

/// An item that has expired and left its [`DelayQueue`].
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::timer::DelayQueue;
/// use std::time::{Duration, Instant};
///
/// let queue = DelayQueue::new();
/// let key = queue.insert(vec![1], Duration::from_millis(1));
/// let mut expired = queue.next_expired().await;
/// assert_eq!(expired.key(), key);
/// assert!(expired.deadline() <= Instant::now());
/// expired.get_mut().push(2);
/// assert_eq!(expired.get_ref().len(), 2);
/// assert_eq!(expired.into_inner(), [1, 2]);
/// # });
/// ```
#[derive(Debug)]
pub struct Expired<T> {
    value: T,
    deadline: Instant,
    key: Key,
}

impl<T> Expired<T> {
    /// The item.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The item, borrowed.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The item, to change it.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// When it was to expire. `Instant::now()` less this is how late it was taken out.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What named it while it was in the queue.
    pub fn key(&self) -> Key {
        self.key
    }
}
