//! nexus-timer's queue of one duration: a list in the order of arming.
//!
//! It takes no deadlines, so it is measured in the rows of that one duration alone, and neither its
//! exactness nor anything else is observed.

use std::mem::ManuallyDrop;
use std::task::Waker;
use std::time::Instant;

use nexus_timer::{TimeoutQueue, TimerHandle};

use crate::cases::Case;
use crate::columns::Column;
use crate::measure::fixed::{self, TIMEOUT};
use crate::queues::{Queue, TimerQueue};

/// With the tick of a millisecond that is its default.
pub struct Timeouts(TimeoutQueue<Waker>);

/// Its column.
pub fn column() -> Column {
    Column {
        name: Timeouts::NAME,
        is_ours: false,
        run: |case| match case {
            Case::Fixed { timers } => fixed::run::<Timeouts>(timers),
            _ => Vec::new(),
        },
        observe: None,
    }
}

impl Queue for Timeouts {
    const NAME: &'static str = "TimeoutQueue 1.5";
    /// As those of the [wheel](super::nexus).
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
