//! The timer by which the blocking pool asks the system for a first thread again.

use std::cell::RefCell;
use std::rc::Weak;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use super::{Reactor, TimerEntry, current};
use crate::blocking::RetryTimer;

/// An entry among the timers of the reactor whose blocking pool it is for.
pub(super) struct PoolRetryTimer {
    reactor: Weak<Reactor>,
    entry: RefCell<TimerEntry>,
}

impl PoolRetryTimer {
    pub(super) fn new(reactor: Weak<Reactor>) -> Self {
        PoolRetryTimer {
            entry: RefCell::new(TimerEntry::new(reactor.clone())),
            reactor,
        }
    }
}

impl RetryTimer for PoolRetryTimer {
    fn is_in_round(&self) -> bool {
        current::try_current().is_some_and(|current| {
            self.reactor.as_ptr() == &raw const *current && current.turn_time.is_known()
        })
    }

    fn retry_after(&self, wait: Duration) {
        let waker = Waker::from(Arc::new(Retry));
        self.entry.borrow_mut().arm(Instant::now() + wait, &waker);
    }
}

/// Woken by the timers of the pool's reactor, which is current then.
struct Retry;

impl Wake for Retry {
    fn wake(self: Arc<Self>) {
        if let Some(reactor) = current::try_current() {
            reactor.blocking.retry();
        }
    }
}
