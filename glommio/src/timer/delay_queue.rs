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

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};
use std::{fmt, mem, thread};

use crate::clock;
use crate::panic::FirstPanic;
use crate::reactor::{Reactor, TimerEntry, budget, current, deadline_after};
use crate::timer_queue::{Handle, TimerQueue};
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
    /// Wakes the task that polled last. Taken out while a waker is cloned, which is user code.
    alarm: Cell<Option<TimerEntry>>,
    /// When it does, if a task waits.
    alarm_at: Cell<Option<Instant>>,
    never: Instant,
}

struct Items<T> {
    timers: TimerQueue<Item<T>>,
    /// Those that were found to be due, at most [`BATCH`].
    due: VecDeque<Item<T>>,
    /// By number: those that were due and wait again, under another handle than their keys have.
    moved: HashMap<u64, Handle>,
    inserted: u64,
    /// The most items that there were since there was none.
    most: usize,
}

struct Item<T> {
    value: T,
    deadline: Instant,
    number: u64,
}

/// Names an item of a [`DelayQueue`]. Once the item has left, and in another queue, it names
/// nothing.
#[derive(Clone, Copy)]
pub struct Key {
    queue: u64,
    number: u64,
    /// Of the timer that was made for it; none of an item that has left.
    handle: Option<Handle>,
}

/// Where an item is.
enum Place {
    Armed(Handle),
    Due(usize),
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
            items: RefCell::new(Items::new(0)),
            alarm: Cell::default(),
            alarm_at: Cell::default(),
            never: deadline_after(clock::now(), Duration::MAX),
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
        self.insert_at(value, deadline_after(clock::now(), delay))
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
        let (number, handle) = self.items.borrow_mut().insert(value, deadline);
        self.wake_by(deadline);
        Key {
            queue: self.id,
            number,
            handle: Some(handle),
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
        let item = match self.find(&mut items, key)? {
            Place::Armed(handle) => {
                items.moved.remove(&key.number);
                items.timers.cancel(handle)
            }
            Place::Due(at) => items.due.remove(at),
        };
        items.has_lost_one();
        item.map(|item| item.value)
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
        self.reset_at(key, deadline_after(clock::now(), delay))
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
        match self.find(&mut items, key) {
            Some(Place::Armed(handle)) => {
                if let Some(item) = items.timers.get_mut(handle) {
                    item.deadline = deadline;
                }
                items.timers.rearm(handle, deadline);
            }
            Some(Place::Due(at)) => items.rearm_due(at, deadline),
            None => return false,
        }
        drop(items);
        self.wake_by(deadline);
        true
    }

    /// When an item is to expire, or has expired. `None` if it has left the queue.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        let mut items = self.items.borrow_mut();
        match self.find(&mut items, key)? {
            Place::Armed(handle) => items.timers.get_mut(handle).map(|item| item.deadline),
            Place::Due(at) => items.due.get(at).map(|item| item.deadline),
        }
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
        if let Some(expired) = self.take_expired() {
            budget::spend();
            return Poll::Ready(expired);
        }
        self.wait(cx.waker());
        Poll::Pending
    }

    fn take_expired(&self) -> Option<Expired<T>> {
        let mut items = self.items.borrow_mut();
        let item = items.next_due()?;
        items.has_lost_one();
        let key = Key {
            queue: self.id,
            number: item.number,
            handle: None,
        };
        Some(Expired {
            value: item.value,
            deadline: item.deadline,
            key,
        })
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
        let next = self.items.borrow_mut().timers.next_expiry();
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

    fn find(&self, items: &mut Items<T>, key: Key) -> Option<Place> {
        let handle = key.handle.filter(|_| key.queue == self.id)?;
        // The queue may be a new one since, in which the handle names another item.
        let is_item = |item: &mut Item<T>| item.number == key.number;
        if items.timers.get_mut(handle).is_some_and(is_item) {
            return Some(Place::Armed(handle));
        }
        let due = items.due.iter().position(|it| it.number == key.number);
        let moved = || items.moved.get(&key.number).copied();
        due.map(Place::Due).or_else(|| moved().map(Place::Armed))
    }
}

impl<T> Items<T> {
    fn new(inserted: u64) -> Self {
        Items {
            timers: TimerQueue::new(clock::now()),
            due: VecDeque::new(),
            moved: HashMap::new(),
            inserted,
            most: 0,
        }
    }

    fn len(&self) -> usize {
        self.timers.len() + self.due.len()
    }

    fn insert(&mut self, value: T, deadline: Instant) -> (u64, Handle) {
        let number = self.inserted;
        self.inserted += 1;
        let item = Item {
            value,
            deadline,
            number,
        };
        let handle = self.timers.insert(deadline, item);
        self.most = self.most.max(self.len());
        (number, handle)
    }

    /// Takes the next item that is due.
    fn next_due(&mut self) -> Option<Item<T>> {
        let mut has_more = true;
        while self.due.is_empty() && has_more {
            // A pass does bounded work, and may have to be followed by another to find one.
            let mut due = Vec::from(mem::take(&mut self.due));
            has_more = self.timers.expire(clock::now(), BATCH, &mut due);
            self.due = due.into();
            if !self.moved.is_empty() {
                for item in &self.due {
                    self.moved.remove(&item.number);
                }
            }
        }
        self.due.pop_front()
    }

    /// An item that is due waits again.
    #[cold]
    fn rearm_due(&mut self, at: usize, deadline: Instant) {
        if let Some(mut item) = self.due.remove(at) {
            item.deadline = deadline;
            let number = item.number;
            let handle = self.timers.insert(deadline, item);
            self.moved.insert(number, handle);
        }
    }

    /// Gives the memory of a peak back when the last item has left.
    fn has_lost_one(&mut self) {
        if self.most > KEPT_WHEN_EMPTY && self.len() == 0 {
            self.take();
        }
    }

    /// The items; none are left.
    fn take(&mut self) -> Self {
        let inserted = self.inserted;
        mem::replace(self, Items::new(inserted))
    }

    /// Drops each item, whatever the destructors of the others do.
    fn drop_all(mut self) {
        let mut panics = FirstPanic::default();
        for item in self.due.into_iter().chain(self.timers.disarm_all()) {
            panics.catch(|| drop(item));
        }
        // While another panic unwinds, dropping `panics` ends this one, with a line in the log.
        if !thread::panicking()
            && let Some(payload) = panics.take()
        {
            resume_unwind(payload);
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        (self.queue, self.number) == (other.queue, other.number)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.queue, self.number).hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("queue", &self.queue)
            .field("number", &self.number)
            .finish()
    }
}

/// Items that are found to be due at a time.
const BATCH: usize = 64;

/// A queue that has had no more items keeps its memory when the last one leaves.
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
        self.items.get_mut().take().drop_all();
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
