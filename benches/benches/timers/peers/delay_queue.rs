//! tokio-util's `DelayQueue`, on tokio's clock stopped and moved by hand.
//!
//! It waits with one `Sleep` of the runtime's timer. [`TimerQueue::advance`] moves the clock and
//! lets the runtime fire that one, outside of what is timed; each new `Sleep` that a poll makes is
//! the queue's own cost.

use std::mem;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use crate::queues::{Queue, TimerQueue};

/// The queue.
pub struct Delays(DelayQueue<Waker>);

/// The runtime of this process, and when its clock began.
fn runtime() -> &'static (Runtime, time::Instant) {
    static RUNTIME: OnceLock<(Runtime, time::Instant)> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without I/O asks the system for nothing");
        let start = runtime.block_on(async { time::Instant::now() });
        (runtime, start)
    })
}

thread_local! {
    /// The thread is in the runtime from the first queue on, and for good.
    static ENTERED: () = mem::forget(runtime().0.enter());
}

fn advance_to(now: time::Instant) {
    let step = now.saturating_duration_since(time::Instant::now());
    if !step.is_zero() {
        runtime().0.block_on(time::advance(step));
    }
}

impl Queue for Delays {
    const NAME: &'static str = "DelayQueue 0.7";
    type Handle = Key;

    /// A whole number of milliseconds after the runtime began, whose timer counts in those:
    /// otherwise the rounding of both would add up.
    fn epoch() -> Instant {
        // The queue asks for the current runtime wherever it makes a `Sleep`.
        ENTERED.with(|()| ());
        let (_, start) = runtime();
        let elapsed_ms = start.elapsed().as_nanos().div_ceil(1_000_000) as u64;
        advance_to(*start + Duration::from_millis(elapsed_ms));
        time::Instant::now().into_std()
    }

    fn new(_epoch: Instant) -> Self {
        Delays(DelayQueue::new())
    }

    #[inline]
    fn insert(&mut self, deadline: Instant, waker: Waker) -> Key {
        self.0.insert_at(waker, time::Instant::from_std(deadline))
    }

    #[inline]
    fn cancel(&mut self, handle: Key) -> Option<Waker> {
        let removed = self.0.try_remove(&handle)?;
        Some(removed.into_inner())
    }
}

impl TimerQueue for Delays {
    #[inline]
    fn rearm(&mut self, handle: Key, deadline: Instant) -> Key {
        self.0.reset_at(&handle, time::Instant::from_std(deadline));
        handle
    }

    /// Nothing: a key names whatever has the place now, so a program has to forget the keys of what
    /// has fired.
    #[inline]
    fn release(&mut self, _handle: Key) {}

    #[inline]
    fn expire(&mut self, _now: Instant, _budget: usize, expired: &mut Vec<Waker>) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(timer)) = self.0.poll_expired(&mut context) {
            expired.push(timer.into_inner());
        }
        false
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        let first = self.0.peek()?;
        Some(self.0.deadline(&first).into_std())
    }

    fn advance(&mut self, now: Instant) {
        advance_to(time::Instant::from_std(now));
    }
}
