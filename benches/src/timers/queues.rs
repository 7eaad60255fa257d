//! The queues behind one trait, and what is put into them.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use glommio::timer_queue::{ClassicHandle, ClassicQueue, StagedWheel, TimerHandle, TimingWheel};

/// What a bench asks of a timer queue.
pub trait Queue {
    /// As it appears in ids, tables and legends.
    const NAME: &'static str;
    /// Names an armed timer.
    type Handle: Copy;

    /// An empty queue.
    fn new(epoch: Instant) -> Self;
    /// Arms a timer.
    fn insert(&mut self, deadline: Instant, waker: Waker) -> Self::Handle;
    /// Disarms it and returns its waker.
    fn cancel(&mut self, handle: Self::Handle) -> Option<Waker>;
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
    };
}

queue!(ClassicQueue, ClassicHandle, "classic");
queue!(TimingWheel, TimerHandle, "wheel");
queue!(StagedWheel, TimerHandle, "staged");

/// A waker like a task's: one allocation, counted references.
pub fn waker() -> Waker {
    struct Task;
    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }
    Waker::from(Arc::new(Task))
}

/// So many deadlines between 1 ms and 30 s after `epoch`, in no order, the same ones each time.
pub fn deadlines(epoch: Instant, count: usize) -> Vec<Instant> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next_random = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    (0..count)
        .map(|_| epoch + Duration::from_nanos(1_000_000 + next_random() % 29_999_000_000))
        .collect()
}
