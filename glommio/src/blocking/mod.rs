//! Threads for calls that block, started when they are needed.
//!
//! ```text
//!   BlockingCall ──first poll──▶ queue ──▶ pool thread: f()
//!        ▲                                    │
//!        └──── slot, task woken ◀─────────────┘
//! ```
//!
//! A result travels in a slot of its own, and the task is woken through its ordinary waker, so the
//! executor needs no special path: a foreign wake ends a sleep and raises `need_preempt`. A panic
//! in the closure is carried to where the call is awaited. A call that is discarded, since the pool
//! closes, says so in its slot: nothing waits forever.
//!
//! If the system has no thread to give, calls are queued all the same, and the executor tries again
//! ([`RetryTimer`]). A call fails where there is no thread yet and the executor does not run, or it would
//! not come.

#![forbid(unsafe_code)]

mod call;
mod pool;
mod state;
#[cfg(test)]
mod tests;
mod threads;

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use call::{BlockingCall, SentCall};
use pool::Pool;
pub(crate) use pool::RetryTimer;
use state::{Growth, Threads};
pub(crate) use state::{MAX_BLOCKING_CALLS, PoolSettings};

use crate::panic::FirstPanic;
#[cfg(feature = "metrics")]
use crate::stats::{PoolCounts, SharedCounts};

/// Blocking threads of one executor.
pub(crate) struct BlockingPool(Rc<Pool>);

impl BlockingPool {
    /// A pool without threads yet, which will have one for each mask of the settings.
    pub(crate) fn new(settings: PoolSettings, retry_timer: Rc<dyn RetryTimer>) -> Self {
        BlockingPool(Rc::new(Pool::new(Threads::fixed(settings), retry_timer)))
    }

    /// As [`new`](Self::new), of one thread, and more, with the one mask of the settings, when calls
    /// wait for too long: so calls may wait for each other.
    pub(crate) fn elastic(settings: PoolSettings, retry_timer: Rc<dyn RetryTimer>) -> Self {
        let threads = Threads::elastic(settings, Growth::USUAL);
        BlockingPool(Rc::new(Pool::new(threads, retry_timer)))
    }

    /// A call of `f` on one of the threads, handed over when the future is first polled. It fails
    /// if the pool is closed before `f` runs, or has no thread and the executor does not run to ask
    /// for one again.
    pub(crate) fn call<F, R>(&self, f: F) -> BlockingCall<F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        BlockingCall::new(Rc::clone(&self.0), f, true)
    }

    /// A call of `f` whose end nothing waits for. If the pool is closed, or too much waits for its threads,
    /// `f` is dropped.
    pub(crate) fn begin(&self, f: impl FnOnce() + Send + 'static) {
        let call = pin!(self.call(f));
        let _ = call.poll(&mut Context::from_waker(Waker::noop()));
    }

    /// As [`call`](Self::call), in two futures: the first is polled on this thread and
    /// [hands over](BlockingCall::hand_over) the call, the second may be awaited on any thread. It
    /// panics if the call is dropped before a thread has begun it.
    pub(crate) fn call_apart<F, R>(&self, f: F) -> (BlockingCall<F, R>, SentCall<F, R>)
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        BlockingCall::new_apart(Rc::clone(&self.0), f)
    }

    /// As [`call`](Self::call), of an `f` that is left out, and dropped on the spot, if the call is
    /// dropped before a thread has begun it. For all that is not a user's own: what was given up
    /// must not take effect long after, nor keep a file open until a thread comes to it.
    pub(crate) fn ask<F, R>(&self, f: F) -> BlockingCall<F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        BlockingCall::new(Rc::clone(&self.0), f, false)
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn counts(&self) -> SharedCounts<PoolCounts> {
        self.0.shared.counts.clone()
    }

    /// Whether a thread makes a call, or soon will. Not before the task that waits for a call has
    /// been woken does the call count no more.
    #[cfg(feature = "simulation")]
    pub(crate) fn is_busy(&self) -> bool {
        !self.0.is_retrying.get() && self.0.shared.lock().outstanding > 0
    }

    /// Discards what has not started; running calls finish in the background, and their results are
    /// discarded. Keeps the first panic of a destructor in `panics`.
    pub(crate) fn close(&self, panics: &mut FirstPanic) {
        self.0.close(panics);
    }

    /// Asks the system for threads again, as [`RetryTimer`] has it.
    pub(crate) fn retry(&self) {
        self.0.retry();
    }
}
