//! The queues behind two traits: what every keeper of timers does, and what a timer queue does
//! besides.

use std::task::Waker;
use std::time::Instant;

use slab::Slab;
use staged_wheel::{ClassicHandle, ClassicQueue, StagedWheel, TimerHandle};

/// What a bench asks of whatever keeps timers.
pub trait Queue: 'static {
    /// As it appears in tables and legends.
    const NAME: &'static str;
    /// Names an armed timer.
    type Handle;

    /// The time at which a queue may begin.
    fn epoch() -> Instant {
        Instant::now()
    }

    /// An empty queue.
    fn new(epoch: Instant) -> Self;
    /// Arms a timer.
    fn insert(&mut self, deadline: Instant, waker: Waker) -> Self::Handle;
    /// Disarms it and returns its waker.
    fn cancel(&mut self, handle: Self::Handle) -> Option<Waker>;

    /// Has wakers at hand for so many cancels, where the queue drops those it was given. Benches
    /// call it outside of what they time.
    fn lay_in(&mut self, _cancels: usize) {}
}

/// What a bench asks of a timer queue.
pub trait TimerQueue: Queue {
    /// Whether it fires the timers that are due and no others, so that a bench can insist on it.
    const IS_EXACT: bool = false;
    /// Whether it can be asked when to poll next.
    const TELLS_NEXT: bool = true;
    /// Whether a timer may be cancelled shortly before it is due, also if it has fired early.
    const CANCELS_FIRED: bool = true;

    /// Gives an armed timer another deadline.
    #[inline]
    fn rearm(&mut self, handle: Self::Handle, deadline: Instant) -> Self::Handle {
        let waker = self.cancel(handle).expect("armed");
        self.insert(deadline, waker)
    }
    /// Gives back the handle of a timer that has fired, as a program does that cancels each of its
    /// timers.
    #[inline]
    fn release(&mut self, handle: Self::Handle) {
        self.cancel(handle);
    }
    /// Moves the wakers of up to `budget` due timers to `expired`. True if more are due. Queues that
    /// know no budget move all of them.
    fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<Waker>) -> bool;
    /// When to poll next.
    fn next_expiry(&mut self) -> Option<Instant>;

    /// Brings the clock forward, if the queue looks at one of its own. Benches call it before
    /// [`expire`](Self::expire), outside of what they time.
    fn advance(&mut self, _now: Instant) {}
}

macro_rules! queue {
    ($queue:ident, $handle:ident, $name:literal) => {
        impl Queue for $queue<Waker> {
            const NAME: &'static str = $name;
            type Handle = $handle;

            fn new(epoch: Instant) -> Self {
                $queue::new(epoch)
            }

            #[inline]
            fn insert(&mut self, deadline: Instant, waker: Waker) -> $handle {
                self.insert(deadline, waker)
            }

            #[inline]
            fn cancel(&mut self, handle: $handle) -> Option<Waker> {
                self.cancel(handle)
            }
        }

        impl TimerQueue for $queue<Waker> {
            const IS_EXACT: bool = true;

            #[inline]
            fn rearm(&mut self, handle: $handle, deadline: Instant) -> $handle {
                assert!(self.rearm(handle, deadline), "armed");
                handle
            }

            #[inline]
            fn release(&mut self, handle: $handle) {
                assert!(self.cancel(handle).is_none(), "fired");
            }

            #[inline]
            fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<Waker>) -> bool {
                self.expire(now, budget, expired)
            }

            #[inline]
            fn next_expiry(&mut self) -> Option<Instant> {
                self.next_expiry()
            }
        }
    };
}

queue!(ClassicQueue, ClassicHandle, "classic");
queue!(StagedWheel, TimerHandle, "staged");

/// A slab of deadlines and wakers without any order: what handles alone cost, and no timer queue
/// can do without.
#[derive(Debug)]
pub struct Floor(Slab<(Instant, Waker)>);

impl Queue for Floor {
    const NAME: &'static str = "slab floor";
    type Handle = usize;

    fn new(_epoch: Instant) -> Self {
        Floor(Slab::new())
    }

    #[inline]
    fn insert(&mut self, deadline: Instant, waker: Waker) -> usize {
        self.0.insert((deadline, waker))
    }

    #[inline]
    fn cancel(&mut self, handle: usize) -> Option<Waker> {
        let (_, waker) = self.0.try_remove(handle)?;
        Some(waker)
    }
}
