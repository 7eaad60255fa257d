//! The timer by which a pool of blocking threads asks the system for a thread again.

use std::cell::RefCell;
use std::rc::Weak;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use super::timer_entry::TimerEntry;
use super::{Reactor, current};
use crate::blocking::{BlockingPool, RetryTimer};
use crate::clock;

/// An entry among the timers of the reactor that has the pool.
pub(super) struct PoolRetryTimer {
    reactor: Weak<Reactor>,
    entry: RefCell<TimerEntry>,
    pool: PoolOf,
}

type PoolOf = fn(&Reactor) -> &BlockingPool;

impl PoolRetryTimer {
    pub(super) fn boxed(reactor: &Weak<Reactor>, pool: PoolOf) -> Box<dyn RetryTimer> {
        Box::new(PoolRetryTimer {
            reactor: Weak::clone(reactor),
            entry: RefCell::new(TimerEntry::new(Weak::clone(reactor))),
            pool,
        })
    }
}

impl RetryTimer for PoolRetryTimer {
    fn is_in_round(&self) -> bool {
        current::try_current().is_some_and(|current| {
            self.reactor.as_ptr() == &raw const *current && current.turn_time.is_known()
        })
    }

    fn retry_after(&self, wait: Duration) {
        let waker = Waker::from(Arc::new(Retry(self.pool)));
        self.entry.borrow_mut().arm(clock::now() + wait, &waker);
    }
}

/// Woken by the timers of the pool's reactor, which is current then.
struct Retry(PoolOf);

impl Wake for Retry {
    fn wake(self: Arc<Self>) {
        if let Some(reactor) = current::try_current() {
            (self.0)(&reactor).retry();
        }
    }
}
