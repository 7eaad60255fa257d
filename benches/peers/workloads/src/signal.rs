//! Flags that a task waits for, from std parts alone: one that any thread may raise, and one for the tasks of
//! a single thread.
//!
//! No runtime's own channel is involved: what is measured with them is the cost of `Waker::wake`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// One waiter, any number of raisers; raising twice before the waiter looked counts once.
#[derive(Debug, Default)]
pub struct Signal {
    is_raised: AtomicBool,
    waiter: Mutex<Option<Waker>>,
}

impl Signal {
    /// Raises the flag and wakes the waiter.
    pub fn raise(&self) {
        self.is_raised.store(true, Ordering::SeqCst);
        // Taken out first: a wake may be a system call, and the woken thread wants the lock soon after.
        let waiter = self
            .waiter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waker) = waiter {
            waker.wake();
        }
    }

    /// Waits until the flag is up, and lowers it.
    pub async fn wait(&self) {
        poll_fn(|context| {
            if self.is_raised.swap(false, Ordering::SeqCst) {
                return Poll::Ready(());
            }
            *self.waiter.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(context.waker().clone());
            // Raised between the first look and the registration: no wake would come.
            if self.is_raised.swap(false, Ordering::SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// As [`Signal`], within one thread.
#[derive(Debug, Default)]
pub struct LocalSignal {
    is_raised: Cell<bool>,
    waiter: RefCell<Option<Waker>>,
}

impl LocalSignal {
    /// Raises the flag and wakes the waiter.
    pub fn raise(&self) {
        self.is_raised.set(true);
        let waiter = self.waiter.take();
        if let Some(waker) = waiter {
            waker.wake();
        }
    }

    /// Waits until the flag is up, and lowers it.
    pub async fn wait(&self) {
        poll_fn(|context| {
            if self.is_raised.take() {
                return Poll::Ready(());
            }
            self.waiter.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}
