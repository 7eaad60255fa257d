//! Which places of a queue were woken since the queue last looked.
//!
//! A waker must be `Send`, the items of a queue need not be. So this is what wakers and queue
//! share, under a lock that only the thread of the executor takes: once for each wake, and once for
//! all that the queue collects.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

#[derive(Default)]
pub(super) struct Wakes(Mutex<WakesState>);

#[derive(Default)]
struct WakesState {
    /// Of the task that waits for the next item.
    waiting: Option<Waker>,
    /// In the order of the wakes. The queue collects them before it arms the timer of a place once
    /// more, so there are not many more of them than places.
    keys: Vec<usize>,
}

impl Wakes {
    /// The waker for the timer of the place `key`. Made once for each, and used by one item after
    /// the other.
    pub(super) fn waker(self: &Arc<Self>, key: usize) -> Waker {
        Waker::from(Arc::new(PlaceWaker {
            wakes: Arc::clone(self),
            key,
        }))
    }

    /// Calls `f` with each that was woken, the first one first, and forgets them.
    pub(super) fn collect(&self, f: impl FnMut(usize)) {
        let mut state = self.lock();
        if state.keys.is_empty() {
            return;
        }
        let mut keys = mem::take(&mut state.keys);
        drop(state);
        keys.drain(..).for_each(f);
        // For the next ones: `f` wakes nothing.
        self.lock().keys = keys;
    }

    /// Wakes `waker` with the next of them, and no other.
    pub(super) fn watch(&self, waker: &Waker) {
        let is_known = |known: &Waker| known.will_wake(waker);
        if self.lock().waiting.as_ref().is_some_and(is_known) {
            return;
        }
        // Cloning and dropping wakers is user code, which may come back to the queue.
        let waker = waker.clone();
        let replaced = self.lock().waiting.replace(waker);
        drop(replaced);
    }

    /// Forgets all, and gives the memory back.
    pub(super) fn reset(&self) {
        self.lock().keys = Vec::new();
    }

    /// How many wakes it has memory for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.lock().keys.capacity()
    }

    fn append(&self, key: usize) {
        let mut state = self.lock();
        state.keys.push(key);
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, WakesState> {
        // No user code runs under the lock, and nothing panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct PlaceWaker {
    wakes: Arc<Wakes>,
    key: usize,
}

impl Wake for PlaceWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wakes.append(self.key);
    }
}
