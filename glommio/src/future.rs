//! Limits on the time that any future may take.
//!
//! ```
//! use glommio::{GlommioError, future::timeout};
//! use std::{future::pending, time::Duration};
//!
//! glommio::LocalExecutor::default().run(async {
//!     let answer = timeout(Duration::from_millis(1), pending::<()>()).await;
//!     assert!(matches!(answer, Err(GlommioError::TimedOut(_))));
//! });
//! ```
//!
//! The future is dropped when the time is over. *Cancel safety* in the documentation of an operation
//! says what that means for it.
//!
//! | function | takes | for so long, or until |
//! |---|---|---|
//! | [`future::timeout`](timeout) | any future | a duration |
//! | [`future::timeout_at`](timeout_at) | any future | a moment |
//! | [`timer::timeout`](crate::timer::timeout), also [`try_timeout`](crate::timer::try_timeout) | a future of a `Result` of this crate, which is passed on | a duration |
//!
//! They are the same otherwise: an output that is there at the deadline wins, and the error is
//! [`GlommioError::TimedOut`].

#![forbid(unsafe_code)]

use std::future::Future;
use std::time::{Duration, Instant};

use crate::error::{GlommioError, Result};
use crate::timer::{Limit, Limited, Timeout};

/// Awaits `future` for at most `dur`, counted from the first poll of the returned future.
///
/// `future` is polled first each time: an output that is there at the deadline wins.
///
/// # Errors
///
/// [`GlommioError::TimedOut`] with `dur` if `future` took longer. It has been dropped then.
///
/// # Panics
///
/// Panics when it is first polled if no executor is running on this thread.
///
/// # Cancel safety
///
/// As `future`.
///
/// # Examples
///
/// ```
/// use glommio::{GlommioError, future::{timeout, timeout_at}, timer::sleep};
/// use std::time::{Duration, Instant};
///
/// glommio::LocalExecutor::default().run(async {
///     let limit = Duration::from_millis(1);
///     assert_eq!(timeout(limit, async { 42 }).await.ok(), Some(42));
///     let late = timeout(limit, sleep(Duration::from_secs(3600)));
///     assert!(matches!(late.await, Err(GlommioError::TimedOut(limited)) if limited == limit));
///
///     // One deadline for several steps.
///     let deadline = Instant::now() + limit;
///     assert!(timeout_at(deadline, async {}).await.is_ok());
///     assert!(timeout_at(deadline, sleep(Duration::from_secs(3600))).await.is_err());
/// });
/// ```
pub fn timeout<F, T>(dur: Duration, future: F) -> impl Future<Output = Result<T, ()>>
where
    F: Future<Output = T>,
{
    Timeout::new(future, Limit::After(dur), in_time)
}

/// As [`timeout`], until `deadline`: [`GlommioError::TimedOut`] has the time from the first poll to it. If
/// it is past, `future` is polled once.
pub fn timeout_at<F, T>(deadline: Instant, future: F) -> impl Future<Output = Result<T, ()>>
where
    F: Future<Output = T>,
{
    Timeout::new(future, Limit::At(deadline), in_time)
}

fn in_time<T>(limited: Limited<T>) -> Result<T, ()> {
    limited.map_err(GlommioError::TimedOut)
}
