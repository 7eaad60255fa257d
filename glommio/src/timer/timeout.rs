//! A limit on how long a future may take.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use super::Timer;
use crate::error::{GlommioError, Result};
use crate::reactor::budget;

/// Awaits `f` for at most `dur`, counted from the first poll of the returned future.
///
/// For a future whose output is a `Result` of this crate, which this returns.
/// [`future::timeout`](crate::future::timeout) takes any future.
///
/// `f` is polled first each time: a result that is there at the deadline wins. Errors of `f` pass
/// through unchanged.
///
/// # Errors
///
/// [`GlommioError::TimedOut`] with `dur` if `f` took longer. `f` has been dropped then.
///
/// # Panics
///
/// Panics when it is first polled if no executor is running on this thread.
///
/// # Cancel safety
///
/// As `f`.
///
/// # Examples
///
/// ```
/// use glommio::{GlommioError, timer::{sleep, timeout}};
/// use std::time::Duration;
///
/// glommio::LocalExecutor::default().run(async {
///     let limit = Duration::from_millis(1);
///     let late = timeout(limit, async {
///         sleep(Duration::from_secs(3600)).await;
///         Ok(())
///     });
///     assert!(matches!(late.await, Err(GlommioError::TimedOut(limited)) if limited == limit));
/// });
/// ```
pub async fn timeout<F, T>(dur: Duration, f: F) -> Result<T, ()>
where
    F: Future<Output = Result<T, ()>>,
{
    limit(Timer::new(dur), pin!(f))
        .await
        .unwrap_or(Err(GlommioError::TimedOut(dur)))
}

/// Awaits `future` until `timer` is done: `None` then.
pub(crate) async fn limit<F: Future>(
    mut timer: Timer,
    mut future: Pin<&mut F>,
) -> Option<F::Output> {
    poll_fn(|cx| {
        // Asked before the future, which may take all there is in each poll.
        let has_leave = budget::has_leave();
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        timer.poll_with_leave(cx, has_leave).map(|_deadline| None)
    })
    .await
}
