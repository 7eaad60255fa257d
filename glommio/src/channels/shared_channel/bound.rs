//! What an end has besides, once it is in its executor: checks that it puts off, and patience.
//!
//! # Checks are put off
//!
//! ```text
//!   change ──▶ owed + 1 ──▶ does a task wait at the other end, by a plain load, and is it time?
//!                             yes ──▶ settle: wake as many as are owed a wake-up
//!                             no ───▶ on a list of the reactor, which settles at the end of the
//!                                     poll or of the round
//! ```
//!
//! Settling is what [`Waiters`] asks of the thread that changes something: a compare-exchange after
//! the last of several changes. The plain load sees every task but one that begins to wait at the
//! same moment, within the time that a store takes to be seen. For that one nothing is lost as long
//! as settling is sure to come. An end that is on the list is settled when the round of tasks is
//! over, before the executor sleeps, and when the executor is left. Where no executor runs, an end
//! settles at each change. An end that goes notifies all.
//!
//! It is time once half of the capacity is owed. On one processor, or a busy one, a task that is
//! woken for the first of many items takes that one and falls asleep again. So
//!
//! - a receiver is woken at once for the first item of a poll, which may be long; for the others
//!   that the same poll sends, when it is over;
//! - a sender is woken when the round is over: half of the items are still there for the receiver.
//!
//! # Patience
//!
//! Where both ends are awake, on two processors, one of them catches up with the other all the
//! time. To sleep then, and be woken, costs both more than many items do. So a task that finds
//! nothing may look again for [`PATIENCE`], every [`BETWEEN_LOOKS`] and with other tasks in
//! between, before it waits. If that is [`QUICK`] the next wait does so too. If it is slow once,
//! too: the other end may just have been woken. If it is slow again, or in vain, a number of waits
//! go without, which doubles each time, from 1 to 4095. A new channel begins with 15, so that one
//! which is seldom used does not try.
//!
//! A task that looks again has its place among those that wait, as if it had been notified. So they
//! stay in order.

#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::channels::spsc_queue::Lines;
use crate::loom::sync::Arc;
use crate::panic::wake_by_ref;
use crate::reactor::{self, RoundEnd};
use crate::wait_queue::WaitKey;
use crate::waiters::Waiters;

/// How long a task looks again and again before it waits: longer than it takes to wake another
/// processor, also where that is virtual.
const PATIENCE: Duration = Duration::from_micros(50);

/// How long it leaves the cache lines of the other end alone in between, so that there is more than
/// one item to find.
const BETWEEN_LOOKS: Duration = Duration::from_micros(2);

/// What is found so soon has cost less than falling asleep and being woken.
const QUICK: Duration = Duration::from_micros(10);

const MAX_PAUSE: u16 = 4095;

/// Which end it is.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Sending,
    Receiving,
}

/// See the module.
pub(super) struct Bound {
    side: Side,
    /// So many changes are worth waking a task for at once.
    batch: usize,
    /// Made with the first change.
    debt: OnceCell<Rc<Debt>>,
    patience: Patience,
}

impl Bound {
    pub(super) fn new(side: Side, batch: usize) -> Self {
        Bound {
            side,
            batch,
            debt: OnceCell::new(),
            patience: Patience::default(),
        }
    }

    /// Something has changed that one of the tasks at the other end may wait for.
    #[inline]
    pub(super) fn changed(&self, lines: &Arc<Lines<Waiters>>) {
        let debt = self.debt.get_or_init(|| Debt::new(lines, self.side));
        let owed = debt.owed.get() + 1;
        debt.owed.set(owed);
        if !debt.others().may_wait() {
            if !debt.is_listed.get() {
                debt.put_off();
            }
        } else if owed >= self.batch {
            debt.settle();
        } else {
            debt.others_wait();
        }
    }

    /// Wakes those at the other end whom this one owes that.
    pub(super) fn settle(&self) {
        if let Some(debt) = self.debt.get() {
            debt.settle();
        }
    }

    /// One poll of a future that waits among `own`, the tasks at this end, until `look` finds
    /// something, and [leaves](Self::leave) if it is dropped. `look` must run no code of others.
    /// While there is patience it is asked only if `is_worth_looking`.
    #[inline(never)]
    pub(super) fn poll<R>(
        &self,
        own: &Waiters,
        key: &mut Option<WaitKey>,
        cx: &Context<'_>,
        is_worth_looking: impl Fn() -> bool,
        mut look: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        if self.patience.is_of(key) {
            let now = Instant::now();
            if self.patience.looks_at(now)
                && is_worth_looking()
                && let Some(found) = look()
            {
                own.forget(key);
                self.patience.found(now);
                return Poll::Ready(found);
            }
            if self.patience.lasts(now) {
                wake_by_ref(cx.waker());
                return Poll::Pending;
            }
            self.patience.failed();
        } else if key.is_none() {
            if let Some(found) = look() {
                return Poll::Ready(found);
            }
            if self.patience.is_due() && own.enter_alone(key) {
                self.patience.begin(key);
                wake_by_ref(cx.waker());
                return Poll::Pending;
            }
        }
        own.wait_on(key, cx, look)
    }

    /// Gives up waiting.
    pub(super) fn leave(&self, own: &Waiters, key: &mut Option<WaitKey>) {
        if self.patience.is_of(key) {
            self.patience.failed();
        }
        own.leave(key);
    }

    /// As if it were on the list of a reactor.
    #[cfg(all(test, loom))]
    pub(super) fn begin_round(&self, lines: &Arc<Lines<Waiters>>) {
        let debt = self.debt.get_or_init(|| Debt::new(lines, self.side));
        debt.is_listed.set(true);
        debt.has_woken.set(true);
    }

    /// As that reactor does.
    #[cfg(all(test, loom))]
    pub(super) fn end_round(&self) {
        let debt = self.debt.get().expect("a round has begun");
        debt.poll_ended();
        debt.round_ended();
    }
}

/// How many wake-ups an end owes the other one, at most.
struct Debt {
    lines: Arc<Lines<Waiters>>,
    side: Side,
    owed: Cell<usize>,
    /// Whether a reactor is going to settle it at the end of a round.
    is_listed: Cell<bool>,
    /// Whether a reactor is going to settle it at the end of a poll, which has woken a task.
    has_woken: Cell<bool>,
}

impl Debt {
    fn new(lines: &Arc<Lines<Waiters>>, side: Side) -> Rc<Self> {
        Rc::new(Debt {
            lines: Arc::clone(lines),
            side,
            owed: Cell::new(0),
            is_listed: Cell::new(false),
            has_woken: Cell::new(false),
        })
    }

    /// The tasks at the other end.
    #[inline]
    fn others(&self) -> &Waiters {
        match self.side {
            Side::Sending => &self.lines.producer.beside,
            Side::Receiving => &self.lines.consumer.beside,
        }
    }

    fn put_off(self: &Rc<Self>) {
        match reactor::current::try_current() {
            Some(reactor) => {
                self.is_listed.set(true);
                let debt = Rc::clone(self);
                reactor.call_at_round_end(debt);
            }
            None => self.settle(),
        }
    }

    /// Tasks wait at the other end, for less than a batch.
    #[cold]
    fn others_wait(self: &Rc<Self>) {
        match self.side {
            Side::Sending if !self.has_woken.get() => {
                self.settle();
                if let Some(reactor) = reactor::current::try_current() {
                    self.has_woken.set(true);
                    reactor.call_at_poll_end(Rc::<Debt>::clone(self));
                }
            }
            // The end of the poll comes.
            Side::Sending => {}
            Side::Receiving if self.is_listed.get() => {}
            Side::Receiving => self.put_off(),
        }
    }

    fn settle(&self) {
        for _ in 0..self.owed.take() {
            // If none waits now, all changes so far are seen by those who will.
            if !self.others().notify_one() {
                return;
            }
        }
    }
}

impl RoundEnd for Debt {
    fn round_ended(&self) {
        self.is_listed.set(false);
        self.settle();
    }

    fn poll_ended(&self) {
        self.has_woken.set(false);
        self.settle();
    }
}

/// Whether to look again, and until when.
struct Patience {
    /// So many waits are begun without.
    pause: Cell<u16>,
    /// That after the next failure; one less than a power of two.
    next_pause: Cell<u16>,
    /// Whether the last time was slow.
    was_slow: Cell<bool>,
    /// The one task that has patience now.
    now: Cell<Option<Patient>>,
}

#[derive(Clone, Copy)]
struct Patient {
    /// Its place among those that wait.
    id: usize,
    end: Instant,
    next_look: Instant,
}

impl Patience {
    /// Whether a wait that begins now is to look again. Not outside of executors, whose loops may
    /// be slow.
    fn is_due(&self) -> bool {
        let pause = self.pause.get();
        self.pause.set(pause.saturating_sub(1));
        pause == 0 && reactor::current::is_any()
    }

    fn begin(&self, key: &Option<WaitKey>) {
        let now = Instant::now();
        let patient = |key: &WaitKey| Patient {
            id: key.id(),
            end: now + PATIENCE,
            next_look: now + BETWEEN_LOOKS,
        };
        self.now.set(key.as_ref().map(patient));
    }

    /// Whether the one that has patience is at this place.
    #[inline]
    fn is_of(&self, key: &Option<WaitKey>) -> bool {
        let patient = self.now.get().map(|it| it.id);
        patient.is_some() && patient == key.as_ref().map(WaitKey::id)
    }

    /// Whether it is time to look again.
    fn looks_at(&self, now: Instant) -> bool {
        let Some(mut patient) = self.now.get() else {
            return false;
        };
        let is_time = now >= patient.next_look;
        if is_time {
            patient.next_look = now + BETWEEN_LOOKS;
            self.now.set(Some(patient));
        }
        is_time
    }

    fn lasts(&self, now: Instant) -> bool {
        self.now.get().is_some_and(|patient| now < patient.end)
    }

    /// The one that has patience has found something.
    fn found(&self, now: Instant) {
        let Some(Patient { end, .. }) = self.now.take() else {
            return;
        };
        if end.saturating_duration_since(now) >= PATIENCE - QUICK {
            self.was_slow.set(false);
            self.next_pause.set(1);
        } else if self.was_slow.replace(true) {
            self.failed();
        }
    }

    /// The one that has patience, if there is one, waits or goes.
    fn failed(&self) {
        self.now.set(None);
        self.was_slow.set(false);
        let pause = self.next_pause.get();
        self.pause.set(pause);
        self.next_pause.set((pause << 1 | 1).min(MAX_PAUSE));
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            pause: Cell::new(15),
            next_pause: Cell::new(15),
            was_slow: Cell::new(false),
            now: Cell::new(None),
        }
    }
}
