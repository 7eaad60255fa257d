//! Blocking calls whose results may be awaited on any thread.
//!
//! A task of the executor hands the call to the pool, which makes it wait its turn if the pool is
//! full. The result goes from the pool's thread straight to the future, and needs no executor.

#![forbid(unsafe_code)]

use std::future::Future;

use super::spawn::Start;
use super::{ExecutorProxy, current};
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
        let (call, sent) = core.reactor().blocking().call_apart(func);
        // Polled at once, which hands the call over, or waits for room in the pool.
        let task = core.task_of(call.hand_over());
        core.start(task, TaskQueueHandle::default(), Start::AtOnce);
        sent
    }
}
