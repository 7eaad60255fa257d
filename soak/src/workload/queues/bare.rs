//! What both timer queues can do.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use staged_wheel::{ClassicHandle, ClassicQueue, StagedWheel, TimerHandle};

/// A timer queue as the trial sees it.
pub(super) trait BareQueue {
    type Handle: Copy;

    fn new(epoch: Instant) -> Self;
    fn insert(&mut self, deadline: Instant, payload: Payload) -> Self::Handle;
    fn cancel(&mut self, handle: Self::Handle) -> Option<Payload>;
    fn rearm(&mut self, handle: Self::Handle, deadline: Instant) -> bool;
    fn get_mut(&mut self, handle: Self::Handle) -> Option<&mut Payload>;
    fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<Payload>) -> bool;
    fn next_expiry(&mut self) -> Option<Instant>;
    fn len(&self) -> usize;
}

macro_rules! bare_queue {
    ($queue:ident, $handle:ident) => {
        impl BareQueue for $queue<Payload> {
            type Handle = $handle;

            fn new(epoch: Instant) -> Self {
                $queue::new(epoch)
            }

            fn insert(&mut self, deadline: Instant, payload: Payload) -> $handle {
                $queue::insert(self, deadline, payload)
            }

            fn cancel(&mut self, handle: $handle) -> Option<Payload> {
                $queue::cancel(self, handle)
            }

            fn rearm(&mut self, handle: $handle, deadline: Instant) -> bool {
                $queue::rearm(self, handle, deadline)
            }

            fn get_mut(&mut self, handle: $handle) -> Option<&mut Payload> {
                $queue::get_mut(self, handle)
            }

            fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<Payload>) -> bool {
                $queue::expire(self, now, budget, expired)
            }

            fn next_expiry(&mut self) -> Option<Instant> {
                $queue::next_expiry(self)
            }

            fn len(&self) -> usize {
                $queue::len(self)
            }
        }
    };
}

bare_queue!(ClassicQueue, ClassicHandle);
bare_queue!(StagedWheel, TimerHandle);

/// What a queue holds for a timer. It is counted as long as it lives.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) id: u64,
    live: Rc<Cell<usize>>,
}

impl Payload {
    pub(super) fn new(id: u64, live: &Rc<Cell<usize>>) -> Self {
        live.set(live.get() + 1);
        Payload {
            id,
            live: Rc::clone(live),
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}
