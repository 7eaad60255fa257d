//! The tasks that wait at one end of a local channel.
//!
//! ```text
//!   a value ──▶ wake the oldest ──▶ it looks ──▶ it has the value, or waits again
//!                    ▲                │
//!                    │                └─ not by the end of the round, and others wait
//!                    └──────────────────────────────────────┘
//! ```
//!
//! For each value (at the other end: for each place that becomes free) the task that has waited
//! longest is woken. It may never look: it was polling the channel beside something else, say in a
//! `select!`, which is done, and has kept the stream or the future. Nothing tells of that. So if
//! others wait behind, the line looks at the end of the round of tasks, in which those that were woken
//! have run: for each that was told and has not looked, the next one is told. A task that is only
//! late, since its queue has few shares or the round was cut short, may then find its value gone, and
//! waits on in its old place. Each wake-up is passed on once from each that does not look, so what it
//! costs is one wake-up for each of these.
//!
//! Without an executor there are no rounds, and all are woken. The one that was told first is still
//! the one that is woken first.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use crate::reactor::{RoundEnd, current, wake};
use crate::wait_queue::{PollWaker, Removed, WaitKey, WaitQueue};

/// See the module. It takes memory when a task waits.
#[derive(Default)]
pub(super) struct Line {
    waiters: OnceCell<Rc<Waiters>>,
}

struct Waiters {
    this: Weak<Waiters>,
    /// With the number of the look before which each was told, or [`UNWATCHED`].
    queue: RefCell<WaitQueue<u64>>,
    /// Looks at the end of a round so far.
    looks: Cell<u64>,
    /// How many were told since the last look, and have neither looked nor left.
    told: Cell<usize>,
    /// Whether a reactor is going to have the line look.
    is_listed: Cell<bool>,
}

/// The number for one that no other waits behind.
const UNWATCHED: u64 = u64::MAX;

impl Line {
    /// Wakes the task that has waited longest, after something has changed that one can use.
    #[inline]
    pub(super) fn notify(&self) {
        if let Some(waiters) = self.waiters.get() {
            waiters.notify();
        }
    }

    /// Wakes all that wait now.
    pub(super) fn notify_all(&self) {
        if let Some(waiters) = self.waiters.get() {
            waiters.notify_up_to(usize::MAX);
        }
    }

    /// Has a future wait; see [`WaitQueue::wait`].
    #[inline]
    pub(super) fn wait(&self, key: &mut Option<WaitKey>, waker: &mut PollWaker<'_>) {
        let waiters = self.waiters.get_or_init(Waiters::new);
        match key {
            None => _ = waiters.queue.borrow_mut().wait(key, waker, 0),
            Some(_) => waiters.wait_on(key, waker),
        }
    }

    /// A future whose poll is done waits no longer.
    #[inline]
    pub(super) fn finish(&self, key: &mut Option<WaitKey>, waker: &mut PollWaker<'_>) {
        if key.is_some()
            && let Some(waiters) = self.waiters.get()
        {
            let told = waiters.queue.borrow_mut().finish(key, waker);
            waiters.has_looked(told);
        }
    }

    /// A future is dropped. If it was told of something that `is_there` yet, the next one is.
    #[cold]
    pub(super) fn leave(&self, key: &mut Option<WaitKey>, is_there: impl FnOnce() -> bool) {
        let Some(waiters) = self.waiters.get() else {
            return;
        };
        let left = waiters.queue.borrow_mut().leave(key);
        if let Some(Removed::Notified(told)) = left {
            waiters.has_looked(Some(told));
            if is_there() {
                waiters.notify();
            }
        }
    }
}

impl Waiters {
    fn new() -> Rc<Self> {
        Rc::new_cyclic(|this| Waiters {
            this: this.clone(),
            queue: RefCell::default(),
            looks: Cell::new(0),
            told: Cell::new(0),
            is_listed: Cell::new(false),
        })
    }

    /// For a future that has waited before.
    fn wait_on(&self, key: &mut Option<WaitKey>, waker: &mut PollWaker<'_>) {
        let mut queue = self.queue.borrow_mut();
        let told = key.as_ref().and_then(|key| queue.notified_with(key));
        if queue.wait(key, waker, 0) {
            drop(queue);
            self.has_looked(told);
        }
    }

    #[inline]
    fn notify(&self) {
        let mut queue = self.queue.borrow_mut();
        match queue.waiting() {
            0 => {}
            // With no other there is none to be told instead: who comes later finds the value.
            1 => {
                let waker = queue.notify_oldest_with(UNWATCHED);
                drop(queue);
                waker.into_iter().for_each(wake);
            }
            _ => {
                drop(queue);
                self.notify_watched();
            }
        }
    }

    /// For one that others wait behind.
    #[inline(never)]
    fn notify_watched(&self) {
        self.notify_oldest();
        self.look_later();
    }

    fn notify_oldest(&self) {
        let mut queue = self.queue.borrow_mut();
        let is_watched = queue.waiting() > 1;
        let waker = queue.notify_oldest_with(if is_watched {
            self.looks.get()
        } else {
            UNWATCHED
        });
        if is_watched {
            self.told.update(|told| told + 1);
        }
        drop(queue);
        waker.into_iter().for_each(wake);
    }

    fn notify_up_to(&self, count: usize) {
        for _ in 0..count.min(self.waiting()) {
            self.notify_oldest();
        }
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.queue.borrow().waiting()
    }

    /// One that was told before that look has done its part.
    #[inline]
    fn has_looked(&self, told: Option<u64>) {
        if told == Some(self.looks.get()) {
            self.told.update(|told| told - 1);
        }
    }

    /// After one was told: others may wait for the same.
    #[inline]
    fn look_later(&self) {
        if self.waiting() > 0 && !self.is_listed.get() {
            self.list();
        }
    }

    #[cold]
    fn list(&self) {
        let Some((this, reactor)) = self.this.upgrade().zip(current::try_current()) else {
            return self.notify_up_to(usize::MAX);
        };
        self.is_listed.set(true);
        reactor.call_at_round_end(this);
    }
}

impl RoundEnd for Waiters {
    fn round_ended(&self) {
        self.is_listed.set(false);
        self.looks.update(|looks| looks + 1);
        let told = self.told.take();
        if told > 0 {
            self.notify_up_to(told);
            self.look_later();
        }
    }
}
