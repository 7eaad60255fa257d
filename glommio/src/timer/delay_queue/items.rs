//! The items of a [`DelayQueue`](super::DelayQueue): armed in a timer queue, or due and about to come
//! out; and the keys that name them.

use std::collections::{HashMap, VecDeque};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{mem, thread};

use crate::clock;
use crate::panic::FirstPanic;
use crate::reactor::deadline_after;
use crate::timer_queue::{Fired, Handle, TimerQueue};

pub(super) struct Items<T> {
    /// Unique in the process, and another one when the timers are new ones: their handles repeat.
    queue: u64,
    timers: TimerQueue<T>,
    /// Those that were found to be due, at most [`BATCH`], by the handles that their keys have.
    pub(super) due: VecDeque<Fired<Handle, T>>,
    pub(super) moved: Moved,
    /// What was armed for a time before or long after that of the timers, which they do not tell.
    outside: HashMap<Handle, Instant>,
    epoch: Instant,
    end: Instant,
    /// The most items that there were since there was none.
    pub(super) most: usize,
}

/// Those that were due and wait again, under another handle than their keys have.
#[derive(Default)]
pub(super) struct Moved {
    by_key: HashMap<Handle, Handle>,
    keys: HashMap<Handle, Handle>,
}

/// Names an item of a [`DelayQueue`](super::DelayQueue). Once the item has left, and in another queue,
/// it names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    queue: u64,
    /// Of the timer that was made for it.
    handle: Handle,
}

/// An item that has expired and left its [`DelayQueue`](super::DelayQueue).
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

/// Where an item is.
enum Place {
    Armed(Handle),
    Due(usize),
}

impl<T> Items<T> {
    /// None.
    pub(super) fn new() -> Self {
        static QUEUES: AtomicU64 = AtomicU64::new(0);
        let epoch = clock::now();
        Items {
            queue: QUEUES.fetch_add(1, Ordering::Relaxed),
            timers: TimerQueue::new(epoch),
            due: VecDeque::new(),
            moved: Moved::default(),
            outside: HashMap::new(),
            epoch,
            end: deadline_after(epoch, TOLD),
            most: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.timers.len() + self.due.len()
    }

    pub(super) fn insert(&mut self, value: T, deadline: Instant) -> Key {
        let handle = self.arm(value, deadline);
        self.most = self.most.max(self.len());
        Key {
            queue: self.queue,
            handle,
        }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let value = match self.find(key)? {
            Place::Armed(handle) => {
                self.moved.forget(handle);
                self.forget_outside(handle);
                self.timers.cancel(handle)
            }
            Place::Due(at) => self.due.remove(at).map(|item| item.payload),
        };
        self.has_lost_one();
        value
    }

    /// False if `key` names none.
    pub(super) fn reset(&mut self, key: Key, deadline: Instant) -> bool {
        match self.find(key) {
            Some(Place::Armed(handle)) => {
                self.forget_outside(handle);
                self.timers.rearm(handle, deadline);
                self.note_outside(handle, deadline);
            }
            Some(Place::Due(at)) => self.rearm_due(at, deadline),
            None => return false,
        }
        true
    }

    pub(super) fn deadline(&mut self, key: Key) -> Option<Instant> {
        match self.find(key)? {
            Place::Armed(handle) => {
                let outside = self.outside.get(&handle).copied();
                outside.or_else(|| self.timers.deadline(handle))
            }
            Place::Due(at) => self.due.get(at).map(|item| item.deadline),
        }
    }

    /// When one will be due that is not yet.
    pub(super) fn next_expiry(&mut self) -> Option<Instant> {
        self.timers.next_expiry()
    }

    /// Takes the next item that is due.
    #[inline]
    pub(super) fn take_due(&mut self) -> Option<Expired<T>> {
        if self.due.is_empty() {
            self.find_due();
        }
        let queue = self.queue;
        let expired = self.due.pop_front().map(|item| Expired {
            value: item.payload,
            deadline: item.deadline,
            key: Key {
                queue,
                handle: item.handle,
            },
        });
        self.has_lost_one();
        expired
    }

    /// The items; none are left.
    pub(super) fn take(&mut self) -> Self {
        mem::replace(self, Items::new())
    }

    /// Drops each item, whatever the destructors of the others do.
    pub(super) fn drop_all(mut self) {
        let mut panics = FirstPanic::default();
        let due = self.due.into_iter().map(|item| item.payload);
        for item in due.chain(self.timers.disarm_all()) {
            panics.catch(|| drop(item));
        }
        // While another panic unwinds, dropping `panics` ends this one, with a line in the log.
        if !thread::panicking()
            && let Some(payload) = panics.take()
        {
            resume_unwind(payload);
        }
    }

    fn find(&mut self, key: Key) -> Option<Place> {
        if key.queue != self.queue {
            return None;
        }
        if self.timers.get_mut(key.handle).is_some() {
            return Some(Place::Armed(key.handle));
        }
        let due = self.due.iter().position(|it| it.handle == key.handle);
        let moved = || self.moved.by_key.get(&key.handle).copied();
        due.map(Place::Due).or_else(|| moved().map(Place::Armed))
    }

    #[cold]
    fn find_due(&mut self) {
        let mut due = Vec::from(mem::take(&mut self.due));
        let mut has_more = true;
        while due.is_empty() && has_more {
            // A pass does bounded work, and may have to be followed by another to find one.
            has_more = self.timers.expire_fired(clock::now(), BATCH, &mut due);
        }
        if !self.moved.keys.is_empty() || !self.outside.is_empty() {
            for item in &mut due {
                item.deadline = self.forget_outside(item.handle).unwrap_or(item.deadline);
                item.handle = self.moved.forget(item.handle).unwrap_or(item.handle);
            }
        }
        self.due = due.into();
    }

    /// An item that is due waits again.
    #[cold]
    fn rearm_due(&mut self, at: usize, deadline: Instant) {
        if let Some(item) = self.due.remove(at) {
            let handle = self.arm(item.payload, deadline);
            self.moved.by_key.insert(item.handle, handle);
            self.moved.keys.insert(handle, item.handle);
        }
    }

    #[inline]
    fn arm(&mut self, value: T, deadline: Instant) -> Handle {
        let handle = self.timers.insert(deadline, value);
        self.note_outside(handle, deadline);
        handle
    }

    #[inline]
    fn note_outside(&mut self, handle: Handle, deadline: Instant) {
        if deadline < self.epoch || deadline > self.end {
            self.outside.insert(handle, deadline);
        }
    }

    #[inline]
    fn forget_outside(&mut self, handle: Handle) -> Option<Instant> {
        if self.outside.is_empty() {
            return None;
        }
        self.outside.remove(&handle)
    }

    /// Gives the memory of a peak back when the last item has left.
    #[inline]
    fn has_lost_one(&mut self) {
        if self.most > KEPT_WHEN_EMPTY && self.len() == 0 {
            self.take();
        }
    }
}

impl Moved {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_key.len().max(self.keys.len())
    }

    /// The item that is armed under `handle` leaves. The handle of its key, if that is another one.
    fn forget(&mut self, handle: Handle) -> Option<Handle> {
        if self.keys.is_empty() {
            return None;
        }
        let key = self.keys.remove(&handle)?;
        self.by_key.remove(&key);
        Some(key)
    }
}

/// So long after their beginning the timers tell deadlines exactly; they do for 584 years.
const TOLD: Duration = Duration::from_secs(1 << 34);

/// Items that are found to be due at a time.
pub(super) const BATCH: usize = 64;

/// A queue that has had no more items keeps its memory when the last one leaves.
const KEPT_WHEN_EMPTY: usize = 64;
