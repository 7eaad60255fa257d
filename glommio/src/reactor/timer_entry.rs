//! One deadline in a reactor's timer queue, as timers and sockets hold it.
//!
//! ```text
//!                        arm, or a poll before the deadline
//!   Idle, Near ────────────────────────────────────────────────▶ Armed ◀─┐ rearm, set_waker
//!     ▲  ▲                                                        │ │ └──┘
//!     │  │                     disarm                             │ │
//!     │  └────────────────────────────────────────────────────────┘ │ expiry, or a poll after the deadline
//!     │                                                             ▼
//!     └──────────── expect_at, expect_within, disarm ───────── Expired ──arm, or a poll before the deadline──▶ Armed
//! ```
//!
//! The queue tells no entry of its expiry: it moves the waker out and calls it. An entry that is
//! `Armed` learns of it when it shows its handle, which names nothing then, and is `Expired` from
//! there on.
//!
//! An entry holds a handle straight into the queue and a weak link to the reactor that owns the
//! queue: handles repeat from queue to queue, so a handle is shown to no other. There is no id and
//! no map.

use std::mem;
use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::Reactor;
use super::turn_time::LONG_ROUND;
use crate::clock;
use crate::noted::{Awaited, waiting};
use crate::panic;
use crate::timer_queue::Handle;

/// A place in a reactor's timer queue, which wakes a task at a deadline while it is armed. Dropping
/// it disarms it.
#[derive(Debug)]
pub(crate) struct TimerEntry {
    reactor: Weak<Reactor>,
    state: EntryState,
    /// The last look at a wait before it was found to be in the future; see [`polls`](super::polls).
    slept_after: u32,
}

#[derive(Clone, Copy, Debug)]
enum EntryState {
    /// Not armed. Whether the deadline has passed is judged by when the round began, as far as that
    /// can tell.
    Idle,
    /// Not armed, and the deadline may be near: the clock is read.
    Near,
    /// In the queue under this handle; or expired since, and not looked at yet.
    Armed(Handle),
    /// The queue has handed the waker out, or the deadline was found to be past. The clock is read.
    Expired,
}

impl TimerEntry {
    /// An idle entry of `reactor`.
    pub(crate) fn new(reactor: Weak<Reactor>) -> Self {
        TimerEntry {
            reactor,
            state: EntryState::Idle,
            slept_after: 0,
        }
    }

    /// The deadline that it will be asked about is `deadline`: near unless the round, however long
    /// it has lasted already, is hardly to see it. Nothing changes if it is armed.
    #[inline]
    pub(crate) fn expect_at(&mut self, deadline: Instant) {
        let reactor = self.reactor.upgrade();
        let is_far = reactor.is_some_and(|it| it.turn_time.is_far(deadline));
        self.expect(if is_far {
            EntryState::Idle
        } else {
            EntryState::Near
        });
    }

    /// As [`expect_at`](Self::expect_at), of a deadline that is `wait` from now.
    #[inline]
    pub(crate) fn expect_within(&mut self, wait: Duration) {
        self.expect(if wait > LONG_ROUND {
            EntryState::Idle
        } else {
            EntryState::Near
        });
    }

    #[inline]
    fn expect(&mut self, state: EntryState) {
        if !matches!(self.state, EntryState::Armed(_)) {
            self.state = state;
        }
    }

    /// Whether `deadline` has passed. If not, the entry is armed for it, and wakes `waker`; one
    /// that is armed already stays at its deadline.
    ///
    /// An idle entry may be armed though `deadline` has passed a moment ago: a round that is longer
    /// than rounds should be is taken for a short one, which spares a look at the clock. It
    /// expires when the round ends.
    #[inline]
    pub(crate) fn is_past_or_arm(&mut self, deadline: Instant, waker: &Waker) -> bool {
        let Some(reactor) = self.reactor.upgrade() else {
            return deadline <= clock::now();
        };
        let is_past = self.is_past_or_arm_in(&reactor, deadline, waker);
        if is_past {
            reactor
                .polls
                .has_slept(mem::take(&mut self.slept_after), waker)
        } else {
            self.slept_after = reactor.polls.last_look();
            waiting(|| Awaited::Deadline(deadline));
        }
        is_past
    }

    #[inline]
    fn is_past_or_arm_in(
        &mut self,
        reactor: &Rc<Reactor>,
        deadline: Instant,
        waker: &Waker,
    ) -> bool {
        if let EntryState::Idle = self.state {
            let is_past =
                reactor.turn_time.may_be_past(deadline) && reactor.turn_time.is_past(deadline);
            if is_past {
                self.state = EntryState::Expired;
            } else {
                self.insert(reactor, deadline, waker);
            }
            return is_past;
        }
        if reactor.turn_time.is_past(deadline) {
            self.expire(reactor);
            return true;
        }
        if !self.set_waker_in(reactor, waker) {
            self.insert(reactor, deadline, waker);
        }
        false
    }

    /// Wakes `waker` at `deadline`, instead of what it was armed for before.
    pub(crate) fn arm(&mut self, deadline: Instant, waker: &Waker) {
        let Some(reactor) = self.reactor.upgrade() else {
            return;
        };
        if !self.set_waker_in(&reactor, waker) || !self.rearm_in(&reactor, deadline) {
            self.insert(&reactor, deadline, waker);
        }
    }

    /// Arms it, whether or not the deadline has passed. False if it was armed before, and may have
    /// expired since, or if the executor is gone.
    pub(crate) fn arm_first(&mut self, deadline: Instant, waker: &Waker) -> bool {
        let (EntryState::Idle | EntryState::Near | EntryState::Expired) = self.state else {
            return false;
        };
        let Some(reactor) = self.reactor.upgrade() else {
            return false;
        };
        self.insert(&reactor, deadline, waker);
        self.slept_after = reactor.polls.last_look();
        waiting(|| Awaited::Deadline(deadline));
        true
    }

    /// Moves an armed entry to `deadline`, earlier or later; its waker stays. False if it is not
    /// armed.
    pub(crate) fn rearm(&mut self, deadline: Instant) -> bool {
        let reactor = self.reactor.upgrade();
        reactor.is_some_and(|reactor| self.rearm_in(&reactor, deadline))
    }

    /// Has an armed entry wake `waker`; deadline and order stay. False if it is not armed.
    pub(crate) fn set_waker(&mut self, waker: &Waker) -> bool {
        let reactor = self.reactor.upgrade();
        reactor.is_some_and(|reactor| self.set_waker_in(&reactor, waker))
    }

    /// Whether it is to expire yet.
    pub(crate) fn is_armed(&self) -> bool {
        let EntryState::Armed(handle) = self.state else {
            return false;
        };
        let reactor = self.reactor.upgrade();
        reactor.is_some_and(|it| it.timers.is_armed(handle))
    }

    /// Whether the entry expired for `deadline`, and every task that was woken then has run. True
    /// means that the task it woke did not look at it; false, on a thread that never gets to
    /// the end of its work, nothing.
    pub(crate) fn was_ignored(&self, deadline: Instant) -> bool {
        let reactor = self.reactor.upgrade();
        !self.is_armed() && reactor.is_some_and(|it| deadline <= it.timers.expired_and_run_until())
    }

    /// Takes it out of the queue. False if it was not armed, or has expired.
    pub(crate) fn disarm(&mut self) -> bool {
        if let EntryState::Armed(handle) = mem::replace(&mut self.state, EntryState::Idle)
            && let Some(reactor) = self.reactor.upgrade()
        {
            let waker = reactor.timers.cancel(handle);
            let was_armed = waker.is_some();
            panic::fenced(|| drop(waker));
            return was_armed;
        }
        false
    }

    /// The entry becomes armed, which it is not.
    fn insert(&mut self, reactor: &Rc<Reactor>, deadline: Instant, waker: &Waker) {
        debug_assert!(!self.is_armed(), "the queue would keep the old one");
        // Cloning is user code, as waking and dropping are: nothing is borrowed meanwhile.
        let waker = waker.clone();
        let handle = reactor.timers.insert(deadline, waker);
        reactor.preempt.limit_by_timer(deadline, &reactor.timers);
        self.state = EntryState::Armed(handle);
    }

    fn rearm_in(&mut self, reactor: &Rc<Reactor>, deadline: Instant) -> bool {
        let EntryState::Armed(handle) = self.state else {
            return false;
        };
        let Some(handle) = reactor.timers.rearm(handle, deadline) else {
            self.state = EntryState::Expired;
            return false;
        };
        self.state = EntryState::Armed(handle);
        reactor.preempt.limit_by_timer(deadline, &reactor.timers);
        true
    }

    fn set_waker_in(&mut self, reactor: &Rc<Reactor>, waker: &Waker) -> bool {
        let EntryState::Armed(handle) = self.state else {
            return false;
        };
        let is_armed = match reactor.timers.will_wake(handle, waker) {
            None => false,
            Some(true) => true,
            // Cloning and dropping wakers is user code, which may come back to the timers.
            Some(false) => reactor.timers.replace_waker(handle, waker.clone()).is_ok(),
        };
        if !is_armed {
            self.state = EntryState::Expired;
        }
        is_armed
    }

    /// Its deadline has passed.
    fn expire(&mut self, reactor: &Rc<Reactor>) {
        if let EntryState::Armed(handle) = mem::replace(&mut self.state, EntryState::Expired) {
            // The pass for it may be still to come.
            drop(reactor.timers.cancel(handle));
        }
    }
}

impl Drop for TimerEntry {
    #[inline]
    fn drop(&mut self) {
        // Inlined, it is a look at a byte for one that has expired.
        if let EntryState::Armed(_) = self.state {
            self.disarm();
        }
    }
}
