//! The clock behind hyper's timeouts.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fragile::Fragile;
use glommio::timer::Timer;
use hyper::rt::Sleep;

/// The clock behind hyper's timeouts, such as `header_read_timeout` and `keep_alive_interval`: each
/// is a timer of the executor. To be used on threads that run one.
///
/// A timeout that is set again, as for each request of a connection, moves its timer and takes no
/// memory.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use glommio_hyper::GlommioTimer;
///
/// let mut http = hyper::server::conn::http1::Builder::new();
/// http.timer(GlommioTimer)
///     .header_read_timeout(Duration::from_secs(10));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct GlommioTimer;

impl hyper::rt::Timer for GlommioTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(GlommioSleep {
            timer: Fragile::new(Timer::new(duration)),
        })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(GlommioSleep {
            timer: Fragile::new(Timer::at(deadline)),
        })
    }

    /// By the clock of the executor, so that deadlines of hyper go by a paused or simulated one, too.
    fn now(&self) -> Instant {
        glommio::time::now()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<GlommioSleep>() {
            Some(sleep) => {
                let timer = sleep.get_mut().timer.get_mut();
                timer.reset_at(new_deadline);
            }
            // Another timer's.
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

/// A timer for hyper.
///
/// hyper wants it to be `Send` and `Sync`, for runtimes that move tasks between threads. Ours never
/// do, and our timers are neither: the wrapper is, and panics if the timer is touched on another
/// thread after all.
#[derive(Debug)]
struct GlommioSleep {
    timer: Fragile<Timer>,
}

impl Future for GlommioSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(self.timer.get_mut()).poll(cx).map(drop)
    }
}

impl Sleep for GlommioSleep {}
