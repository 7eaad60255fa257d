//! nexus-timer: a wheel that hands out handles which must be given back, polled with its own upkeep; and a queue of one
//! duration, a list in the order of arming, which takes no deadlines and is measured in the rows of that one duration
//! alone.

use std::mem::ManuallyDrop;
use std::task::Waker;
use std::time::Instant;

use nexus_timer::{TimeoutQueue, TimerHandle};

use crate::measure::expiry::TIMEOUT;
use crate::queues::{Queue, TimerQueue};

/// With the tick of a millisecond that is its default.
pub struct Wheel(nexus_timer::Wheel<Waker>);

impl Queue for Wheel {
    const NAME: &'static str = "nexus-timer 1.5";
    /// Dropping a handle is an error that debug builds panic over, even at the end of a bench.
    type Handle = ManuallyDrop<TimerHandle<Waker>>;

    fn new(epoch: Instant) -> Self {
        const CHUNK: usize = 4096;
        Wheel(nexus_timer::Wheel::unbounded(CHUNK, epoch))
    }

    #[inline]
    fn insert(&mut self, deadline: Instant, waker: Waker) -> Self::Handle {
        ManuallyDrop::new(self.0.schedule(deadline, waker))
    }

    #[inline]
    fn cancel(&mut self, handle: Self::Handle) -> Option<Waker> {
        self.0.cancel(ManuallyDrop::into_inner(handle))
    }
}

impl TimerQueue for Wheel {
    #[inline]
    fn rearm(&mut self, handle: Self::Handle, deadline: Instant) -> Self::Handle {
        ManuallyDrop::new(
            self.0
                .reschedule(ManuallyDrop::into_inner(handle), deadline),
        )
    }

    #[inline]
    fn expire(&mut self, now: Instant, _budget: usize, expired: &mut Vec<Waker>) -> bool {
        self.0.poll_and_rebalance(now, expired);
        false
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        self.0.next_deadline()
    }
}

/// With the tick of a millisecond that is its default.
pub struct Timeouts(TimeoutQueue<Waker>);

impl Queue for Timeouts {
    const NAME: &'static str = "TimeoutQueue 1.5";
    /// As those of the wheel.
    type Handle = ManuallyDrop<TimerHandle<Waker>>;

    fn new(epoch: Instant) -> Self {
        const CHUNK: usize = 4096;
        Timeouts(TimeoutQueue::unbounded(TIMEOUT, CHUNK, epoch))
    }

    /// The deadline is [`TIMEOUT`] after the present.
    #[inline]
    fn insert(&mut self, deadline: Instant, waker: Waker) -> Self::Handle {
        ManuallyDrop::new(self.0.schedule(deadline - TIMEOUT, waker))
    }

    #[inline]
    fn cancel(&mut self, handle: Self::Handle) -> Option<Waker> {
        self.0.cancel(ManuallyDrop::into_inner(handle))
    }
}

impl TimerQueue for Timeouts {
    #[inline]
    fn expire(&mut self, now: Instant, _budget: usize, expired: &mut Vec<Waker>) -> bool {
        self.0.poll(now, expired);
        false
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        self.0.next_deadline()
    }
}
