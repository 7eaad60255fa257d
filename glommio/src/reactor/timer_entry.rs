//! One deadline in a reactor's timer queue, as timers and sockets hold it.
//!
//! An alarm is a handle straight into the queue and a weak link to the reactor that owns the queue:
//! handles repeat from queue to queue, so a handle is shown to no other. There is no id and no map.

use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::Reactor;
use super::turn_time::ROUND;
use crate::audit::SetTimer;
use crate::panic;
use crate::planted::planted;
use crate::timer_queue::Handle;

/// A deadline that wakes a task, or an idle place for one. Dropping it takes the deadline back.
#[derive(Debug)]
pub(crate) struct Alarm {
    reactor: Weak<Reactor>,
    handle: Option<Handle>,
    audited: SetTimer,
}

impl Alarm {
    /// An idle alarm of `reactor`.
    pub(crate) fn new(reactor: Weak<Reactor>) -> Self {
        Alarm {
            reactor,
            handle: None,
            audited: SetTimer::default(),
        }
    }

    /// It will be asked about a deadline that may be near: it looks at the clock then, as if it had been set
    /// before.
    #[inline]
    pub(crate) fn expect_soon(&mut self) {
        self.handle.get_or_insert(Handle::NONE);
    }

    /// The same if `wait` from now is near: the end of a round that lasts may come later.
    #[inline]
    pub(crate) fn expect_in(&mut self, wait: Duration) {
        if self.handle.is_none() && wait < ROUND {
            self.expect_soon();
        }
    }

    /// Wakes `waker` at `deadline` unless that has passed already: then true, and nothing is set. An
    /// alarm that is set stays at its deadline.
    ///
    /// One that has not been set before may be set though `deadline` has passed a moment ago: a round that
    /// is longer than rounds should be is taken for a short one, which spares a look at the clock. It goes
    /// off when the round ends. Not if the deadline was [expected soon](Self::expect_soon).
    #[inline]
    pub(crate) fn is_past_or_set(&mut self, deadline: Instant, waker: &Waker) -> bool {
        let Some(reactor) = self.reactor.upgrade() else {
            return deadline <= Instant::now();
        };
        let Some(handle) = self.handle else {
            let is_past =
                reactor.turn_time.may_be_past(deadline) && reactor.turn_time.is_past(deadline);
            if !is_past {
                self.arm(&reactor, deadline, waker);
            }
            return is_past;
        };
        if reactor.turn_time.is_past(deadline) {
            // The handle names nothing from here on, if it did, and says that the alarm was set once: asked
            // again, the answer is the same.
            let waker = reactor.timers.borrow_mut().cancel(handle);
            self.audited.found_due(waker.is_some(), &reactor.audit);
            drop(waker);
            return true;
        }
        if !self.watch(waker) {
            self.audited.found_early(deadline);
            self.arm(&reactor, deadline, waker);
        }
        false
    }

    /// Wakes `waker` at `deadline`, instead of what was set before.
    pub(crate) fn set(&mut self, deadline: Instant, waker: &Waker) {
        if self.watch(waker) && self.postpone(deadline) {
            return;
        }
        if let Some(reactor) = self.reactor.upgrade() {
            self.arm(&reactor, deadline, waker);
        }
    }

    fn arm(&mut self, reactor: &Reactor, deadline: Instant, waker: &Waker) {
        // Cloning is code of others, as waking and dropping are: nothing is borrowed meanwhile.
        let waker = waker.clone();
        let handle = reactor.timers.borrow_mut().insert(deadline, waker);
        reactor.limit_by_timer(deadline);
        self.audited.set(deadline, &reactor.audit);
        self.handle = Some(handle);
    }

    /// Moves a set alarm to `deadline`, earlier or later; its waker stays. False if it is not set.
    pub(crate) fn postpone(&mut self, deadline: Instant) -> bool {
        let Some((reactor, handle)) = self.armed() else {
            return false;
        };
        {
            let mut timers = reactor.timers.borrow_mut();
            if !timers.rearm(handle, deadline) {
                return false;
            }
            if let Some(moved) = timers.resettle(handle) {
                self.handle = Some(moved);
            }
        }
        self.audited.set(deadline, &reactor.audit);
        reactor.limit_by_timer(deadline);
        true
    }

    /// Has a set alarm wake `waker`; deadline and order stay. False if it is not set.
    pub(crate) fn watch(&mut self, waker: &Waker) -> bool {
        let Some((reactor, handle)) = self.armed() else {
            return false;
        };
        match reactor.timers.borrow_mut().get_mut(handle) {
            None => return false,
            Some(known) if known.will_wake(waker) => return true,
            Some(_) => {}
        }
        // Cloning and dropping wakers may run code that comes back to the timers.
        let waker = waker.clone();
        let replaced = match reactor.timers.borrow_mut().get_mut(handle) {
            None => return false,
            Some(known) => std::mem::replace(known, waker),
        };
        drop(replaced);
        true
    }

    /// The queue, and what the alarm was last called there; it may have gone off since.
    #[inline]
    fn armed(&self) -> Option<(Rc<Reactor>, Handle)> {
        let handle = self.handle?;
        Some((self.reactor.upgrade()?, handle))
    }

    /// Whether the deadline is still to come.
    pub(crate) fn is_set(&self) -> bool {
        self.armed().is_some_and(|(reactor, handle)| {
            let mut timers = reactor.timers.borrow_mut();
            timers.get_mut(handle).is_some()
        })
    }

    /// Whether the alarm went off for `deadline`, which has passed, and everybody who was woken then
    /// has run. True means that whoever waited did not come; false, on a thread that never gets to
    /// the end of its work, nothing.
    pub(crate) fn was_ignored(&self, deadline: Instant) -> bool {
        !self.is_set()
            && self
                .reactor
                .upgrade()
                .is_some_and(|reactor| deadline <= reactor.heeded_until.get())
    }

    /// Takes the deadline back.
    pub(crate) fn unset(&mut self) {
        if let Some(handle) = self.handle.take()
            && !planted!("deaf_cancel", one in 50)
            && let Some(reactor) = self.reactor.upgrade()
        {
            let waker = reactor.timers.borrow_mut().cancel(handle);
            panic::fenced(|| drop(waker));
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.unset();
    }
}

/// `now + wait`, or an instant so far off (584 years) that the queues treat it as never.
pub(crate) fn deadline_after(now: Instant, wait: Duration) -> Instant {
    const NEVER: Duration = Duration::from_nanos(u64::MAX);
    now.checked_add(wait.min(NEVER))
        .expect("a monotonic clock that counts from boot has room for 584 years")
}

impl Reactor {
    /// Timers that are set now.
    #[cfg(test)]
    pub(crate) fn live_timers(&self) -> usize {
        self.timers.borrow().len()
    }
}
