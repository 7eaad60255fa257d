//! Blocking calls whose results may be awaited on any thread.

#![forbid(unsafe_code)]

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{ExecutorProxy, current};
use crate::panic;

impl ExecutorProxy {
    /// Runs `func` on one of the executor's blocking threads, as [`spawn_blocking`](Self::spawn_blocking) does, with a
    /// future that may be awaited on any thread and under any runtime, also when this executor is gone.
    ///
    /// The call is handed over at once, not at the first poll. If 4096 blocking calls are under way, it is handed over
    /// when the future is polled and there is a place.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread. A panic of `func` comes out where the future is awaited. The
    /// future panics, too, if the executor is dropped before `func` has begun to run.
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
        let mut call = current::expect().reactor().blocking().call(func);
        // The first poll hands it over. The thread may be that quick: then the outcome, a panic included, waits for the
        // future to be awaited.
        let mut cx = Context::from_waker(Waker::noop());
        let mut quick = Quick(match panic::catch(|| Pin::new(&mut call).poll(&mut cx)) {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(outcome)) => Some(Ok(outcome)),
            Err(payload) => Some(Err(payload)),
        });
        async move {
            let outcome = match quick.0.take() {
                None => call.await,
                Some(Ok(outcome)) => outcome,
                Some(Err(payload)) => resume_unwind(payload),
            };
            outcome.unwrap_or_else(|error| panic!("a blocking call cannot be made: {error}"))
        }
    }
}

/// An outcome that came at once. As in the pool, one that is not taken does no harm when it is dropped.
struct Quick<R>(Option<Result<R, panic::Payload>>);

impl<R> Drop for Quick<R> {
    fn drop(&mut self) {
        if let Some(unclaimed) = self.0.take() {
            panic::contain(
                "dropping the unclaimed outcome of a blocking call panicked",
                || match unclaimed {
                    Ok(value) => drop(value),
                    Err(payload) => panic::discard(payload),
                },
            );
        }
    }
}
