//! Which entries have expired, in that order.
//!
//! A list that is linked through an array by key, so that an entry can be listed again or taken out
//! at once, and is in it once at most: the list is never longer than the queue was.
//!
//! A waker must be `Send`, the items of a queue need not be. So the list is what wakers and queue
//! share, under a lock that only the thread of the executor takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

#[derive(Default)]
pub(super) struct ExpiredList(Mutex<State>);

#[derive(Default)]
struct State {
    /// Of the task that waits for the next entry.
    waiting: Option<Waker>,
    /// By key; longer if need be.
    links: Vec<Link>,
    oldest: Option<usize>,
    newest: Option<usize>,
}

#[derive(Clone, Copy, Default)]
struct Link {
    is_listed: bool,
    older: Option<usize>,
    newer: Option<usize>,
}

impl ExpiredList {
    /// The waker for the timer of `key`. Made once for each place of the queue, and used by one
    /// entry after the other.
    pub(super) fn waker(self: &Arc<Self>, key: usize) -> Waker {
        Waker::from(Arc::new(ExpiryWaker {
            list: Arc::clone(self),
            key,
        }))
    }

    pub(super) fn take_oldest(&self) -> Option<usize> {
        let mut state = self.lock();
        let key = state.oldest?;
        state.unlink(key);
        Some(key)
    }

    pub(super) fn remove(&self, key: usize) {
        self.lock().unlink(key);
    }

    /// Wakes `waker` when the next entry expires, and no other.
    pub(super) fn watch(&self, waker: &Waker) {
        let is_known = |known: &Waker| known.will_wake(waker);
        if self.lock().waiting.as_ref().is_some_and(is_known) {
            return;
        }
        // Cloning and dropping wakers is code of others, which may come back to the queue.
        let waker = waker.clone();
        let replaced = self.lock().waiting.replace(waker);
        drop(replaced);
    }

    /// Empties the list and gives its memory back.
    pub(super) fn reset(&self) {
        let mut state = self.lock();
        state.links = Vec::new();
        (state.oldest, state.newest) = (None, None);
    }

    /// How many entries it has memory for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.lock().links.capacity()
    }

    fn append(&self, key: usize) {
        let mut state = self.lock();
        // One that is listed already was woken for an entry that has left, or was moved to a later
        // deadline. Its place is that of the last wake.
        state.unlink(key);
        state.push(key);
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of others runs under the lock, and nothing panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, key: usize) {
        if self.links.len() <= key {
            self.links.resize(key + 1, Link::default());
        }
        let older = self.newest.replace(key);
        self.links[key] = Link {
            is_listed: true,
            older,
            newer: None,
        };
        match older {
            Some(older) => self.links[older].newer = Some(key),
            None => self.oldest = Some(key),
        }
    }

    /// Does nothing to a key that is not listed.
    fn unlink(&mut self, key: usize) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        let Link {
            is_listed: true,
            older,
            newer,
        } = std::mem::take(link)
        else {
            return;
        };
        match older {
            Some(older) => self.links[older].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.links[newer].older = older,
            None => self.newest = older,
        }
    }
}

struct ExpiryWaker {
    list: Arc<ExpiredList>,
    key: usize,
}

impl Wake for ExpiryWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.list.append(self.key);
    }
}
