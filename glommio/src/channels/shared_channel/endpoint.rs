//! What an end has once it is in its executor: notifications that it puts off, and an adaptive spin.
//!
//! # Notifications are put off
//!
//! ```text
//!   change ──▶ pending + 1 ──▶ does a task wait at the other end, by a plain load, and is it time?
//!                                yes ──▶ flush: wake as many as notifications are pending
//!                                no ───▶ on a list of the reactor, which flushes at the end of the
//!                                        round, and maybe of the poll
//! ```
//!
//! A flush is what [`Waiters`](crate::waiters::Waiters) asks of the thread that changes something: a
//! compare-exchange after the last of several changes. It is time
//!
//! - for a receiver that sleeps, at once. For one that looks again by itself, once as many are pending
//!   as half of the capacity, or when the poll is over. What is told to the two ends for that, and what
//!   the plain load may miss, is in [`waits`](super::waits);
//! - for a sender, once half of the capacity is pending, or when the round is over: half of the items
//!   are still there for the receiver.
//!
//! An end that is on the list is flushed when the round of tasks is over, before the executor sleeps,
//! and when the executor is left. Where no executor runs, an end flushes at each change. An end that
//! goes notifies all.

mod adaptive_spin;
#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::{Cell, OnceCell};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use adaptive_spin::AdaptiveSpin;

use super::standby::TIME_TO_ACT;
use super::waits::{LOOK_AGAIN, Look, Side, Waits};
use crate::channels::spsc_queue::Lines;
use crate::clock;
use crate::executor::executor;
use crate::loom::hint;
use crate::loom::sync::Arc;
use crate::panic::wake_by_ref;
use crate::reactor::{self, Reactor, RoundEnd, TimerEntry};
use crate::timer::sleep;
use crate::wait_queue::WaitKey;

/// See the module.
pub(super) struct Endpoint {
    side: Side,
    /// How many items the channel holds. Half as many changes are worth waking a task for at once.
    capacity: usize,
    /// Made with the first change, or the first wait that needs it.
    notifications: OnceCell<Rc<Notifications>>,
    spin: AdaptiveSpin,
}

impl Endpoint {
    pub(super) fn new(side: Side, capacity: usize) -> Self {
        Endpoint {
            side,
            capacity,
            notifications: OnceCell::new(),
            spin: AdaptiveSpin::default(),
        }
    }

    #[inline]
    fn notifications(&self, lines: &Arc<Lines<Waits>>) -> &Rc<Notifications> {
        match self.notifications.get() {
            Some(notifications) => notifications,
            None => self.new_notifications(lines),
        }
    }

    #[cold]
    fn new_notifications(&self, lines: &Arc<Lines<Waits>>) -> &Rc<Notifications> {
        self.notifications
            .get_or_init(|| Notifications::new(lines, self.side))
    }

    /// Something has changed that one of the tasks at the other end may wait for.
    #[inline]
    pub(super) fn changed(&self, lines: &Arc<Lines<Waits>>) {
        let notifications = self.notifications(lines);
        let pending = notifications.pending.get() + 1;
        notifications.pending.set(pending);
        if !notifications.is_listed.get() && notifications.begin() {
            return;
        }
        if notifications.others().tasks.may_wait()
            && (pending >= self.capacity / 2 || notifications.is_time())
        {
            notifications.flush();
        }
    }

    /// Sends the notifications that are pending.
    pub(super) fn flush(&self) {
        if let Some(notifications) = self.notifications.get() {
            notifications.flush();
        }
    }

    /// One poll of a future that waits among the tasks at this end until `look` finds something,
    /// and [leaves](Self::leave) if it is dropped. `look` must run no user code. While
    /// it spins it is asked only if `is_worth_looking`.
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
        if self.spin.is_of(key) {
            let now = clock::real();
            if self.spin.looks_at(now)
                && is_worth_looking()
                && let Some(found) = look()
            {
                own.tasks.forget(key);
                self.spin.found(now);
                return Poll::Ready(found);
            }
            if self.spin.lasts(now) {
                wake_by_ref(cx.waker());
                return Poll::Pending;
            }
            self.spin.failed();
        } else if key.is_none() {
            if let Some(found) = look() {
                return Poll::Ready(found);
            }
            if self.spin.is_due() && own.tasks.enter_alone(key) {
                self.spin.begin(key);
                wake_by_ref(cx.waker());
                return Poll::Pending;
            }
        }
        let are_others = key.is_none() && own.tasks.may_wait();
        let polled = own.tasks.wait_on(key, cx, look);
        if polled.is_pending() && are_others && reactor::current::is_any() {
            self.notifications(lines).stand_by(self.capacity);
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
            Some(reactor) => self.notifications(lines).look_again(&reactor),
            None => {
                hint::spin_loop();
                wake_by_ref(cx.waker());
            }
        }
    }

    /// Gives up waiting.
    pub(super) fn leave(&self, lines: &Lines<Waits>, key: &mut Option<WaitKey>) {
        if self.spin.is_of(key) {
            self.spin.failed();
        }
        self.side.own(lines).tasks.leave(key);
    }

    /// As if it were on the list of a reactor.
    #[cfg(all(test, loom))]
    pub(super) fn begin_round(&self, lines: &Arc<Lines<Waits>>) {
        self.notifications(lines).put_off(true);
    }

    /// As that reactor does.
    #[cfg(all(test, loom))]
    pub(super) fn end_round(&self) {
        let notifications = self.notifications.get().expect("a round has begun");
        notifications.poll_ended();
        notifications.round_ended();
    }
}

/// What an end and a reactor have to do with each other.
struct Notifications {
    lines: Arc<Lines<Waits>>,
    side: Side,
    /// How many notifications of the other end are put off, at most.
    pending: Cell<usize>,
    /// Whether a reactor is going to flush at the end of a round.
    is_listed: Cell<bool>,
    /// Whether a reactor is going to flush at the end of a poll, too.
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

impl Notifications {
    fn new(lines: &Arc<Lines<Waits>>, side: Side) -> Rc<Self> {
        Rc::new(Notifications {
            lines: Arc::clone(lines),
            side,
            pending: Cell::new(0),
            is_listed: Cell::new(false),
            ends_with_poll: Cell::new(false),
            looks: Cell::default(),
        })
    }

    #[inline]
    fn others(&self) -> &Waits {
        self.side.others(&self.lines)
    }

    /// The first change whose notification is pending. True if it is sent now.
    #[cold]
    fn begin(self: &Rc<Self>) -> bool {
        match reactor::current::try_current() {
            Some(reactor) if !self.is_asleep() => {
                self.put_off(true);
                reactor.call_at_round_end(Rc::<Notifications>::clone(self));
                false
            }
            _ => {
                self.put_off(false);
                self.flush();
                true
            }
        }
    }

    /// Whether a receiver waits at the other end. A receiver that waits while checks are put off
    /// costs its executor timers, so none are for the one item of a request.
    fn is_asleep(&self) -> bool {
        matches!(self.side, Side::Sending) && self.others().tasks.may_wait()
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
            reactor.call_at_poll_end(Rc::<Notifications>::clone(self));
        }
        false
    }

    fn flush(&self) {
        for _ in 0..self.pending.take() {
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
        let now = clock::now();
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

impl Drop for Notifications {
    fn drop(&mut self) {
        if let Some(standby) = self.side.own(&self.lines).standby.get() {
            standby.end();
        }
    }
}

impl RoundEnd for Notifications {
    fn round_ended(&self) {
        self.is_listed.set(false);
        // First: what is sent while tasks are woken begins anew.
        self.others().end();
        self.flush();
    }

    fn poll_ended(&self) {
        self.ends_with_poll.set(false);
        self.flush();
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
