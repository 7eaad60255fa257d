//! A limit on how long a future may take.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;

use super::Timer;
use crate::clock;
use crate::error::{GlommioError, Result};
use crate::reactor::budget;

/// As [`future::timeout`](crate::future::timeout), of a future whose output is a `Result` of this crate:
/// this returns it, and errors of `f` pass through unchanged.
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
pub fn timeout<F, T>(dur: Duration, f: F) -> impl Future<Output = Result<T, ()>>
where
    F: Future<Output = Result<T, ()>>,
{
    let output =
        |limited: Limited<_>| limited.unwrap_or_else(|dur| Err(GlommioError::TimedOut(dur)));
    Timeout::new(f, Limit::After(dur), output)
}

/// An output, or how long there was for it.
pub(crate) type Limited<T> = std::result::Result<T, Duration>;

pin_project! {
    /// Not an `async fn`: that has its parameters twice, and the future may be large.
    pub(crate) struct Timeout<F, O> {
        #[pin]
        future: Option<F>,
        limit: Limit,
        output: O,
    }
}

pub(crate) enum Limit {
    /// From the first poll on.
    After(Duration),
    At(Instant),
    Armed(Timer, Duration),
}

impl<F, O> Timeout<F, O> {
    pub(crate) fn new(future: F, limit: Limit, output: O) -> Self {
        Timeout {
            future: Some(future),
            limit,
            output,
        }
    }
}

impl<F, O, T> Future for Timeout<F, O>
where
    F: Future,
    O: FnMut(Limited<F::Output>) -> T,
{
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut this = self.project();
        let armed = match *this.limit {
            Limit::After(dur) => Some((Timer::new(dur), dur)),
            Limit::At(deadline) => {
                let dur = deadline.saturating_duration_since(clock::now());
                Some((Timer::at(deadline), dur))
            }
            Limit::Armed(..) => None,
        };
        if let Some((timer, dur)) = armed {
            *this.limit = Limit::Armed(timer, dur);
        }
        let Limit::Armed(timer, dur) = this.limit else {
            unreachable!("it is armed above")
        };
        let future = this.future.as_mut().as_pin_mut();
        let future = future.expect("it is not polled after its end");
        // Asked before the future, which may take all there is in each poll.
        let has_leave = budget::has_leave();
        let limited = match future.poll(cx) {
            Poll::Ready(output) => Ok(output),
            Poll::Pending => {
                ready!(timer.poll_with_leave(cx, has_leave));
                Err(*dur)
            }
        };
        this.future.set(None);
        Poll::Ready((this.output)(limited))
    }
}
