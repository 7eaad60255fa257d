//! slab-wheel: four levels over milliseconds, handles of a slab.

use std::task::Waker;
use std::time::Instant;

use slab_wheel::{Key, Millis, TimingWheel};

use crate::queues::{Queue, TimerQueue};

/// With the layout for event loops that it comes with, and memory that
/// is used for each poll again.
pub struct Wheel {
    queue: TimingWheel<Waker, Millis>,
    drained: Vec<(Key, Waker)>,
}

impl Queue for Wheel {
    const NAME: &'static str = "slab-wheel 0.0.1";
    type Handle = Key;

    fn new(epoch: Instant) -> Self {
        Wheel {
            queue: TimingWheel::starting_at(epoch),
            drained: Vec::new(),
        }
    }

    #[inline]
    fn insert(&mut self, deadline: Instant, waker: Waker) -> Key {
        self.queue.insert(deadline, waker)
    }

    #[inline]
    fn cancel(&mut self, handle: Key) -> Option<Waker> {
        self.queue.remove(handle)
    }
}

impl TimerQueue for Wheel {
    #[inline]
    fn expire(&mut self, now: Instant, _budget: usize, expired: &mut Vec<Waker>) -> bool {
        self.queue.advance_to(now);
        self.queue.drain_expired_into(&mut self.drained);
        expired.extend(self.drained.drain(..).map(|(_, waker)| waker));
        false
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        self.queue.next_expiry()
    }
}
