//! The cooperative budget as users see it.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::reactor::budget;

/// Counts as one operation that succeeded at once in the cooperative budget of the running task.
///
/// Operations of this crate count by themselves: a task in which they succeed again and again
/// without waiting gives the thread back when its slice is over, a timer is due or another thread
/// woke a task. With this, a loop over futures of your own takes part. It costs a nanosecond or two,
/// as [`need_preempt`](crate::ExecutorProxy::need_preempt) is asked in one call of 32. Returns at
/// once outside an executor.
///
/// # Cancel safety
///
/// Nothing is lost when it is dropped.
///
/// # Examples
///
/// ```
/// use glommio::{consume_budget, future::timeout};
/// use std::time::Duration;
///
/// glommio::LocalExecutor::default().run(async {
///     let endless = async {
///         loop {
///             consume_budget().await;
///         }
///     };
///     let limited: Result<(), _> = timeout(Duration::from_millis(1), endless).await;
///     assert!(limited.is_err(), "the time limit had its turn");
/// });
/// ```
pub async fn consume_budget() {
    budget::consume().await;
}

/// Exempts `future` from the cooperative budget: what it polls is never pending only because the
/// slice of the task is over.
///
/// For code that must not be suspended while data is ready, and that calls
/// [`yield_if_needed`](crate::yield_if_needed) itself. While one poll of `future` lasts, nothing else
/// runs on the executor: no other task, no timer, no time limit around `future`.
///
/// # Cancel safety
///
/// As `future`.
///
/// # Examples
///
/// ```
/// use glommio::{channels::local_channel, unconstrained};
///
/// glommio::LocalExecutor::default().run(async {
///     let (sender, receiver) = local_channel::new_unbounded();
///     (0..1000).for_each(|number| sender.try_send(number).unwrap());
///     drop(sender);
///     // All that is queued, in one poll.
///     let sum = unconstrained(async {
///         let mut sum = 0;
///         while let Some(number) = receiver.recv().await {
///             sum += number;
///         }
///         sum
///     });
///     assert_eq!(sum.await, 499_500);
/// });
/// ```
pub fn unconstrained<F: Future>(future: F) -> Unconstrained<F> {
    Unconstrained { future }
}

pin_project! {
    /// A future without a cooperative budget; see [`unconstrained`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Unconstrained<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        budget::unlimited(|| self.project().future.poll(cx))
    }
}
