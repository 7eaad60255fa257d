//! The items of a [`DelayQueue`](super::DelayQueue): armed in a timer queue, or due and about to come
//! out; and the keys that name them.

use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::panic::resume_unwind;
use std::time::Instant;
use std::{fmt, mem, thread};

use crate::clock;
use crate::panic::FirstPanic;
use crate::timer_queue::{Handle, TimerQueue};

pub(super) struct Items<T> {
    /// Of the queue that they are in, unique in the process.
    queue: u64,
    timers: TimerQueue<Item<T>>,
    /// Those that were found to be due, at most [`BATCH`].
    pub(super) due: VecDeque<Item<T>>,
    /// By number: those that were due and wait again, under another handle than their keys have.
    pub(super) moved: HashMap<u64, Handle>,
    inserted: u64,
    /// The most items that there were since there was none.
    pub(super) most: usize,
}

pub(super) struct Item<T> {
    pub(super) value: T,
    pub(super) deadline: Instant,
    number: u64,
}

/// Names an item of a [`DelayQueue`](super::DelayQueue). Once the item has left, and in another queue,
/// it names nothing.
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

impl<T> Items<T> {
    /// None, of the queue with the id `queue`.
    pub(super) fn new(queue: u64) -> Self {
        Self::numbered_from(queue, 0)
    }

    fn numbered_from(queue: u64, inserted: u64) -> Self {
        Items {
            queue,
            timers: TimerQueue::new(clock::now()),
            due: VecDeque::new(),
            moved: HashMap::new(),
            inserted,
            most: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.timers.len() + self.due.len()
    }

    pub(super) fn insert(&mut self, value: T, deadline: Instant) -> Key {
        let number = self.inserted;
        self.inserted += 1;
        let item = Item {
            value,
            deadline,
            number,
        };
        let handle = self.timers.insert(deadline, item);
        self.most = self.most.max(self.len());
        Key {
            queue: self.queue,
            number,
            handle: Some(handle),
        }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let item = match self.find(key)? {
            Place::Armed(handle) => {
                self.moved.remove(&key.number);
                self.timers.cancel(handle)
            }
            Place::Due(at) => self.due.remove(at),
        };
        self.has_lost_one();
        item.map(|item| item.value)
    }

    /// False if `key` names none.
    pub(super) fn reset(&mut self, key: Key, deadline: Instant) -> bool {
        match self.find(key) {
            Some(Place::Armed(handle)) => {
                if let Some(item) = self.timers.get_mut(handle) {
                    item.deadline = deadline;
                }
                self.timers.rearm(handle, deadline);
            }
            Some(Place::Due(at)) => self.rearm_due(at, deadline),
            None => return false,
        }
        true
    }

    pub(super) fn deadline(&mut self, key: Key) -> Option<Instant> {
        match self.find(key)? {
            Place::Armed(handle) => self.timers.get_mut(handle).map(|item| item.deadline),
            Place::Due(at) => self.due.get(at).map(|item| item.deadline),
        }
    }

    /// When one will be due that is not yet.
    pub(super) fn next_expiry(&mut self) -> Option<Instant> {
        self.timers.next_expiry()
    }

    /// Takes the next item that is due, with a key that names nothing any more.
    pub(super) fn take_due(&mut self) -> Option<(Item<T>, Key)> {
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
        let item = self.due.pop_front()?;
        self.has_lost_one();
        let key = Key {
            queue: self.queue,
            number: item.number,
            handle: None,
        };
        Some((item, key))
    }

    /// The items; none are left.
    pub(super) fn take(&mut self) -> Self {
        let none = Self::numbered_from(self.queue, self.inserted);
        mem::replace(self, none)
    }

    /// Drops each item, whatever the destructors of the others do.
    pub(super) fn drop_all(mut self) {
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

    fn find(&mut self, key: Key) -> Option<Place> {
        let handle = key.handle.filter(|_| key.queue == self.queue)?;
        // The timers may be new ones since, of which the handle names another item.
        let is_item = |item: &mut Item<T>| item.number == key.number;
        if self.timers.get_mut(handle).is_some_and(is_item) {
            return Some(Place::Armed(handle));
        }
        let due = self.due.iter().position(|it| it.number == key.number);
        let moved = || self.moved.get(&key.number).copied();
        due.map(Place::Due).or_else(|| moved().map(Place::Armed))
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
pub(super) const BATCH: usize = 64;

/// A queue that has had no more items keeps its memory when the last one leaves.
const KEPT_WHEN_EMPTY: usize = 64;
