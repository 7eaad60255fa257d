//! glommio-ng: the wheel of its reactor, which is public.
//!
//! It takes the waker and does not return it on cancel, and it has no public question for the next
//! expiry.

use std::task::Waker;
use std::time::Instant;

use glommio_ng::timer::staged_wheel::StagedWheel;

use super::spare::Spare;
use crate::queues::{Queue, TimerQueue};

/// The staged wheel.
pub struct Wheel {
    queue: StagedWheel,
    spare: Spare,
}

impl Queue for Wheel {
    const NAME: &'static str = "glommio-ng 0.12";
    type Handle = u64;

    fn new(epoch: Instant) -> Self {
        Wheel {
            queue: StagedWheel::new_at(epoch),
            spare: Spare::new(),
        }
    }

    #[inline]
    fn insert(&mut self, deadline: Instant, waker: Waker) -> u64 {
        self.queue.insert(deadline, waker)
    }

    #[inline]
    fn cancel(&mut self, handle: u64) -> Option<Waker> {
        self.queue.remove(handle).then(|| self.spare.take())
    }

    fn lay_in(&mut self, cancels: usize) {
        self.spare.lay_in(cancels);
    }
}

impl TimerQueue for Wheel {
    const TELLS_NEXT: bool = false;

    #[inline]
    fn release(&mut self, handle: u64) {
        self.queue.remove(handle);
    }

    #[inline]
    fn expire(&mut self, now: Instant, _budget: usize, expired: &mut Vec<Waker>) -> bool {
        self.queue.advance_to(now);
        expired.extend(self.queue.drain_expired().map(|(_, waker)| waker));
        false
    }

    fn next_expiry(&mut self) -> Option<Instant> {
        None
    }
}
