//! Blocking calls whose results may be awaited on any thread.
//!
//! A task of the executor hands the call to the pool, which makes it wait its turn if the pool is
//! full. The result goes from the pool's thread straight to the future, and needs no executor.

#![forbid(unsafe_code)]

use std::future::Future;
use std::mem;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;

use super::spawn::Start;
use super::{ExecutorProxy, current};
use crate::panic::{self, Payload, wake};
use crate::shares::TaskQueueHandle;

impl ExecutorProxy {
    /// Runs `func` on one of the executor's blocking threads, as
    /// [`spawn_blocking`](Self::spawn_blocking) does, with a future that may be awaited on any
    /// thread and under any runtime, also when this executor is gone.
    ///
    /// The call is handed over at once, not at the first poll.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread. A panic of `func` comes out where the
    /// future is awaited. The future panics, too, if the executor is dropped before `func` has
    /// begun to run.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the work, and drops the result when it is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutor, executor};
    ///
    /// let answer = LocalExecutor::default().run(async {
    ///     let sum = executor().spawn_blocking_send(|| (1..=4).sum::<u32>());
    ///     // To a thread that runs no executor.
    ///     let thread = std::thread::spawn(|| futures_lite::future::block_on(sum));
    ///     executor().spawn_blocking(|| thread.join()).await
    /// });
    /// assert_eq!(answer.unwrap(), 10);
    /// ```
    pub fn spawn_blocking_send<F, R>(&self, func: F) -> impl Future<Output = R> + Send + use<F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let core = current::expect();
        let slot = Arc::new(Slot {
            outcome: Mutex::new(Outcome::None),
            waker: AtomicWaker::new(),
        });
        let answer = Answer(Arc::clone(&slot));
        let call = core.reactor().blocking().call(move || {
            let outcome = match panic::catch(func) {
                Ok(value) => Outcome::Value(value),
                Err(payload) => Outcome::Panic(payload),
            };
            *answer.0.lock() = outcome;
        });
        // Polled at once, which hands the call over. An error is that of a call that was dropped.
        let hand_over = async move { drop(call.await) };
        let task = core.task_of(hand_over);
        core.start(task, TaskQueueHandle::default(), Start::AtOnce);
        SentCall { slot }
    }
}

/// The future of a call.
struct SentCall<R> {
    slot: Arc<Slot<R>>,
}

struct Slot<R> {
    outcome: Mutex<Outcome<R>>,
    waker: AtomicWaker,
}

enum Outcome<R> {
    /// Not known yet, or taken.
    None,
    Value(R),
    Panic(Payload),
    /// The call was dropped before its turn.
    Discarded,
}

impl<R> Future for SentCall<R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        self.slot.waker.register(cx.waker());
        let outcome = mem::replace(&mut *self.slot.lock(), Outcome::None);
        match outcome {
            Outcome::None => Poll::Pending,
            Outcome::Value(value) => Poll::Ready(value),
            Outcome::Panic(payload) => resume_unwind(payload),
            Outcome::Discarded => panic!(
                "a blocking call cannot be made: its executor was dropped before it began, or has no thread for it"
            ),
        }
    }
}

/// The end of the slot that the call has. However the call ends, the future is woken.
struct Answer<R>(Arc<Slot<R>>);

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        let mut outcome = self.0.lock();
        if let Outcome::None = *outcome {
            *outcome = Outcome::Discarded;
        }
        drop(outcome);
        if let Some(waker) = self.0.waker.take() {
            wake(waker);
        }
    }
}

impl<R> Slot<R> {
    fn lock(&self) -> MutexGuard<'_, Outcome<R>> {
        // No code of others runs under the lock.
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome was not taken. On which thread it is dropped is up to chance, so it harms neither.
impl<R> Drop for Slot<R> {
    fn drop(&mut self) {
        let outcome = mem::replace(&mut *self.lock(), Outcome::None);
        panic::contain(
            "dropping the unclaimed outcome of a blocking call panicked",
            || drop(outcome),
        );
    }
}
