//! Several tasks that wait for the same operation.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use crate::panic;
use crate::reactor::wake;

/// Those who wait: a waker that wakes them all, once. Not bounded but by the tasks that there are.
#[derive(Debug, Default)]
pub(super) struct Waiters(Mutex<Vec<Waker>>);

impl Waiters {
    /// Adds a waker; one that wakes the same task is enough.
    pub(super) fn add(&self, waker: &Waker) {
        let is_known = self.lock().iter().any(|known| known.will_wake(waker));
        if !is_known {
            // Outside of the lock, as it is user code.
            let waker = waker.clone();
            self.lock().push(waker);
        }
    }

    /// Takes a waker out. Whether it was there.
    pub(super) fn remove(&self, waker: &Waker) -> bool {
        let mut waiters = self.lock();
        let at = waiters.iter().position(|known| known.will_wake(waker));
        let removed = at.map(|at| waiters.swap_remove(at));
        drop(waiters);
        let was_there = removed.is_some();
        panic::fenced(|| drop(removed));
        was_there
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        let mut forgotten = mem::take(&mut *self.lock());
        panic::drop_all(|| forgotten.pop());
    }

    /// Wakes all.
    pub(super) fn wake_all(&self) {
        let waiters = mem::take(&mut *self.lock());
        waiters.into_iter().for_each(wake);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}
