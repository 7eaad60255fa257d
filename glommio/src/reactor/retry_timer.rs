//! The timer by which pools of blocking threads ask the system for threads again.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::Duration;

use super::timer_entry::TimerEntry;
use super::{Reactor, current};
use crate::blocking::RetryTimer;
use crate::clock;

/// An entry among the timers of the reactor that has the pools.
pub(super) struct PoolRetryTimer {
    reactor: Weak<Reactor>,
    entry: RefCell<TimerEntry>,
    waker: Waker,
}

impl PoolRetryTimer {
    pub(super) fn shared(reactor: &Weak<Reactor>, waker: Waker) -> Rc<dyn RetryTimer> {
        Rc::new(PoolRetryTimer {
            reactor: Weak::clone(reactor),
            entry: RefCell::new(TimerEntry::new(Weak::clone(reactor))),
            waker,
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
        let mut entry = self.entry.borrow_mut();
        if !entry.is_armed() {
            entry.arm(clock::now() + wait, &self.waker);
        }
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}
