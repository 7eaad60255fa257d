//! What an end has besides, once it is in its executor: checks that it puts off, and patience.
//!
//! # Checks are put off
//!
//! ```text
//!   change ──▶ owed + 1 ──▶ does a task wait at the other end, by a plain load, and is it time?
//!                             yes ──▶ settle: wake as many as are owed a wake-up
//!                             no ───▶ on a list of the reactor, which settles at the end of the
//!                                     round, and maybe of the poll
//! ```
//!
//! Settling is what [`Waiters`](crate::waiters::Waiters) asks of the thread that changes something:
//! a compare-exchange after the last of several changes. It is time
//!
//! - for a receiver that sleeps, at once. For one that looks again by itself, once half of the
//!   capacity is owed, or when the poll is over. What is told to the two ends for that, and what the
//!   plain load may miss, is in [`waits`](super::waits);
//! - for a sender, once half of the capacity is owed, or when the round is over: half of the items
//!   are still there for the receiver.
//!
//! An end that is on the list is settled when the round of tasks is over, before the executor
//! sleeps, and when the executor is left. Where no executor runs, an end settles at each change. An
//! end that goes notifies all.

mod patience;
#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::{Cell, OnceCell};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use patience::Patience;

use super::standby::TIME_TO_ACT;
use super::waits::{LOOK_AGAIN, Look, Side, Waits};
use crate::channels::spsc_queue::Lines;
use crate::executor::executor;
use crate::loom::hint;
use crate::loom::sync::Arc;
use crate::panic::wake_by_ref;
use crate::reactor::{self, Reactor, RoundEnd, TimerEntry};
use crate::timer::sleep;
use crate::wait_queue::WaitKey;

/// See the module.
pub(super) struct Bound {
    side: Side,
    /// How many items the channel holds. Half as many changes are worth waking a task for at once.
    capacity: usize,
    /// Made with the first change, or the first wait that needs it.
    ties: OnceCell<Rc<Ties>>,
    patience: Patience,
}

impl Bound {
    pub(super) fn new(side: Side, capacity: usize) -> Self {
        Bound {
            side,
            capacity,
            ties: OnceCell::new(),
            patience: Patience::default(),
        }
    }

    fn ties(&self, lines: &Arc<Lines<Waits>>) -> &Rc<Ties> {
        self.ties.get_or_init(|| Ties::new(lines, self.side))
    }

    /// Something has changed that one of the tasks at the other end may wait for.
    #[inline]
    pub(super) fn changed(&self, lines: &Arc<Lines<Waits>>) {
        let ties = self.ties(lines);
        let owed = ties.owed.get() + 1;
        ties.owed.set(owed);
        if !ties.is_listed.get() {
            ties.begin();
        }
        if ties.others().tasks.may_wait() && (owed >= self.capacity / 2 || ties.is_time()) {
            ties.settle();
        }
    }

    /// Wakes those at the other end whom this one owes that.
    pub(super) fn settle(&self) {
        if let Some(ties) = self.ties.get() {
            ties.settle();
        }
    }

    /// One poll of a future that waits among the tasks at this end until `look` finds something,
    /// and [leaves](Self::leave) if it is dropped. `look` must run no code of others. While there
    /// is patience it is asked only if `is_worth_looking`.
    #[inline(never)]
    pub(super) fn poll<R>(
        &self,
        lines: &Arc<Lines<Waits>>,
        key: &mut Option<WaitKey>,
        cx: &Context<'_>,
        is_worth_looking: impl Fn() -> bool,
        mut look: impl FnMut() -> Option<R>,
    ) -> Poll<R> {
        let own = self.side.own(lines);
        if self.patience.is_of(key) {
            let now = Instant::now();
            if self.patience.looks_at(now)
                && is_worth_looking()
                && let Some(found) = look()
            {
                own.tasks.forget(key);
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
            if self.patience.is_due() && own.tasks.enter_alone(key) {
                self.patience.begin(key);
                wake_by_ref(cx.waker());
                return Poll::Pending;
            }
        }
        let are_others = key.is_none() && own.tasks.may_wait();
        let polled = own.tasks.wait_on(key, cx, look);
        if polled.is_pending() && are_others && reactor::current::is_any() {
            self.ties(lines).stand_by(self.capacity);
        }
        if polled.is_pending() && matches!(self.side, Side::Receiving) && own.is_put_off() {
            self.look_again(lines, cx);
        }
        polled
    }

    /// A task waits at this end while the other one puts off its checks.
    #[cold]
    fn look_again(&self, lines: &Arc<Lines<Waits>>, cx: &Context<'_>) {
        match reactor::current::try_current() {
            Some(reactor) => self.ties(lines).look_again(&reactor),
            None => {
                hint::spin_loop();
                wake_by_ref(cx.waker());
            }
        }
    }

    /// Gives up waiting.
    pub(super) fn leave(&self, lines: &Lines<Waits>, key: &mut Option<WaitKey>) {
        if self.patience.is_of(key) {
            self.patience.failed();
        }
        self.side.own(lines).tasks.leave(key);
    }

    /// As if it were on the list of a reactor.
    #[cfg(all(test, loom))]
    pub(super) fn begin_round(&self, lines: &Arc<Lines<Waits>>) {
        self.ties(lines).put_off(true);
    }

    /// As that reactor does.
    #[cfg(all(test, loom))]
    pub(super) fn end_round(&self) {
        let ties = self.ties.get().expect("a round has begun");
        ties.poll_ended();
        ties.round_ended();
    }
}

/// What an end and a reactor have to do with each other.
struct Ties {
    lines: Arc<Lines<Waits>>,
    side: Side,
    /// How many wake-ups the end owes the other one, at most.
    owed: Cell<usize>,
    /// Whether a reactor is going to settle that at the end of a round.
    is_listed: Cell<bool>,
    /// Whether a reactor is going to settle it at the end of a poll, too.
    ends_with_poll: Cell<bool>,
    /// When the tasks at this end are going to look again.
    looks: Cell<Option<Box<Looks>>>,
}

/// Two timers after a task began to wait.
struct Looks {
    reactor: Weak<Reactor>,
    begin: Instant,
    waker: Waker,
    timers: [TimerEntry; 2],
}

impl Ties {
    fn new(lines: &Arc<Lines<Waits>>, side: Side) -> Rc<Self> {
        Rc::new(Ties {
            lines: Arc::clone(lines),
            side,
            owed: Cell::new(0),
            is_listed: Cell::new(false),
            ends_with_poll: Cell::new(false),
            looks: Cell::default(),
        })
    }

    #[inline]
    fn others(&self) -> &Waits {
        self.side.others(&self.lines)
    }

    /// The first change since the last round has ended.
    #[cold]
    fn begin(self: &Rc<Self>) {
        match reactor::current::try_current() {
            Some(reactor) => {
                self.put_off(true);
                reactor.call_at_round_end(Rc::<Ties>::clone(self));
            }
            None => {
                self.put_off(false);
                self.settle();
            }
        }
    }

    fn put_off(&self, puts_off: bool) {
        self.is_listed.set(puts_off);
        if let Side::Sending = self.side {
            self.others().begin(puts_off);
        }
    }

    /// Whether tasks at the other end are to be woken for less than a batch.
    #[cold]
    fn is_time(self: &Rc<Self>) -> bool {
        if let Side::Receiving = self.side {
            return false;
        }
        if !self.others().looks_again() {
            return true;
        }
        if !self.ends_with_poll.get() {
            let Some(reactor) = reactor::current::try_current() else {
                return true;
            };
            self.ends_with_poll.set(true);
            reactor.call_at_poll_end(Rc::<Ties>::clone(self));
        }
        false
    }

    fn settle(&self) {
        for _ in 0..self.owed.take() {
            // If none waits now, all changes so far are seen by those who will.
            if !self.others().notify_one() {
                return;
            }
        }
    }

    /// Several tasks wait at this end: has one [stand by](super::standby), if none does.
    fn stand_by(&self, capacity: usize) {
        let own = &self.side.own(&self.lines).standby;
        if own.get().is_some() {
            return;
        }
        let task = stand_by(Arc::clone(&self.lines), self.side, capacity);
        let queue = executor().current_task_queue();
        if let Ok(task) = executor().spawn_local_into(task, queue) {
            task.detach();
            // What is sent before this can be seen is found by the first look.
            own.get_or_init(Box::default).call();
        }
    }

    /// Has the tasks at this end look again, twice.
    fn look_again(&self, reactor: &Rc<Reactor>) {
        let now = Instant::now();
        let looks = self.looks.take();
        let same = looks.filter(|it| it.reactor.as_ptr() == Rc::as_ptr(reactor));
        let mut looks = same.unwrap_or_else(|| Box::new(Looks::new(&self.lines, reactor, now)));
        looks.begin_at(now);
        self.looks.set(Some(looks));
        // When the timers run: they take it back.
        self.side.own(&self.lines).will_look_again();
    }
}

impl Looks {
    fn new(lines: &Arc<Lines<Waits>>, reactor: &Rc<Reactor>, now: Instant) -> Self {
        let reactor = Rc::downgrade(reactor);
        let timers = [(); 2].map(|()| TimerEntry::new(Weak::clone(&reactor)));
        Looks {
            reactor,
            begin: now,
            waker: Look::waker(lines),
            timers,
        }
    }

    fn begin_at(&mut self, now: Instant) {
        let Looks {
            begin,
            waker,
            timers: [first, second],
            ..
        } = self;
        // What was seen to wait before that is looked for in time.
        if first.is_armed() && now < *begin + LOOK_AGAIN / 2 {
            return;
        }
        *begin = now;
        first.arm(now + LOOK_AGAIN, waker);
        second.arm(now + 2 * LOOK_AGAIN, waker);
    }
}

impl Drop for Ties {
    fn drop(&mut self) {
        if let Some(standby) = self.side.own(&self.lines).standby.get() {
            standby.end();
        }
    }
}

impl RoundEnd for Ties {
    fn round_ended(&self) {
        self.is_listed.set(false);
        // First: what is sent while tasks are woken begins anew.
        self.others().end();
        self.settle();
    }

    fn poll_ended(&self) {
        self.ends_with_poll.set(false);
        self.settle();
    }
}

/// Notifies others if those that were notified do not take what they waited for.
async fn stand_by(lines: Arc<Lines<Waits>>, side: Side, capacity: usize) {
    let waits = side.own(&lines);
    let Some(standby) = waits.standby.get() else {
        return;
    };
    while standby.is_called().await {
        while waits.tasks.may_wait() {
            sleep(TIME_TO_ACT).await;
            let available = match side {
                Side::Sending => capacity.saturating_sub(lines.len()),
                Side::Receiving => lines.len(),
            };
            if available == 0 {
                break;
            }
            for _ in 0..available {
                if !waits.notify_one() {
                    break;
                }
            }
        }
    }
}
