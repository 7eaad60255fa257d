//! bitwheel: 64-slot gears of fixed capacity without cascades, what does not fit in a tree.
//!
//! A cancel judges by the deadline whether the timer has fired. Cancelling one that fired early is
//! undefined behaviour there, so benches cancel only what cannot have.

use std::task::Waker;
use std::time::Instant;

use bitwheel::timer::{PreciseWheelWithFailover, Timer, TimerHandle};

use crate::queues::{Queue, TimerQueue};

/// The preset with a resolution of a millisecond, and the tree, since a timeout must not be
/// refused.
pub struct Wheel(Box<PreciseWheelWithFailover<Payload>>);

/// Empty once it has fired.
pub struct Payload(Option<Waker>);

impl Timer for Payload {
    type Context = Vec<Waker>;

    #[inline]
    fn fire(&mut self, expired: &mut Vec<Waker>) {
        expired.extend(self.0.take());
    }
}

impl Queue for Wheel {
    const NAME: &'static str = "bitwheel 0.6";
    type Handle = TimerHandle;

    fn new(epoch: Instant) -> Self {
        Wheel(PreciseWheelWithFailover::boxed_with_epoch(epoch))
    }

    #[inline]
    fn insert(&mut self, deadline: Instant, waker: Waker) -> TimerHandle {
        self.0.insert(deadline, Payload(Some(waker)))
    }

    #[inline]
    fn cancel(&mut self, handle: TimerHandle) -> Option<Waker> {
        self.0.cancel(handle)?.0
    }
}

impl TimerQueue for Wheel {
    const CANCELS_FIRED: bool = false;

    #[inline]
    fn expire(&mut self, now: Instant, _budget: usize, expired: &mut Vec<Waker>) -> bool {
        self.0.poll(now, expired);
        false
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        self.0.peek_next_fire()
    }
}
