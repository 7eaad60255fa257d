//! Who has a lock, and who waits for it.
//!
//! Invariant: if futures wait, the oldest of them cannot be admitted. So each change that may break
//! it, an access that ends and a wait that ends, is followed by [`serve`](Order::serve). An access
//! is counted from the moment it is given to a waiting future, which may be before that future is
//! polled and makes a guard of it.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

use crate::error::{GlommioError, ResourceType, Result};
use crate::noted::{Holder, waits_for};
use crate::reactor::wake;
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_first};

/// See the module.
#[derive(Debug)]
pub(super) struct Order {
    /// How many read, or [`WRITTEN`].
    accesses: Cell<isize>,
    /// How many among them are no guards yet.
    unclaimed: Cell<usize>,
    stage: Cell<Stage>,
    /// With what each wants; of the notified ones, what it was given, if it was not the end.
    waiters: RefCell<WaitQueue<Option<Access>>>,
    holder: Holder,
}

const WRITTEN: isize = -1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Open, and no future waits.
    Free,
    /// Open, and futures wait.
    Awaited,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Order {
    /// That of a lock that is free.
    pub(super) fn new() -> Self {
        Order {
            accesses: Cell::new(0),
            unclaimed: Cell::new(0),
            stage: Cell::new(Stage::Free),
            waiters: RefCell::new(WaitQueue::new()),
            holder: Holder::of("read-write lock"),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.stage.get() == Stage::Closed
    }

    /// Gives the access if that is possible and no future waits. A [`Hold`] is to end it.
    #[inline]
    pub(super) fn take_now(&self, access: Access) -> bool {
        self.stage.get() == Stage::Free && self.admit(access)
    }

    /// Gives the access if none is in the way that was given before.
    #[inline]
    fn admit(&self, access: Access) -> bool {
        let accesses = self.accesses.get();
        let is_possible = match access {
            Access::Read => accesses >= 0,
            Access::Write => accesses == 0,
        };
        if is_possible {
            self.accesses.set(match access {
                Access::Read => accesses + 1,
                Access::Write => WRITTEN,
            });
        }
        is_possible
    }

    /// Ends an access.
    #[inline]
    fn release(&self) {
        let accesses = self.accesses.get();
        self.accesses.set(match accesses {
            WRITTEN => 0,
            readers => readers - 1,
        });
    }

    pub(super) fn is_held(&self) -> bool {
        self.accesses.get().unsigned_abs() > self.unclaimed.get()
    }

    pub(super) fn check_open(&self) -> Result<(), ()> {
        match self.stage.get() {
            Stage::Closed => Err(GlommioError::Closed(ResourceType::RwLock)),
            _ => Ok(()),
        }
    }

    /// Admits waiters, one borrow for each: what is woken may come back in.
    #[cold]
    fn serve(&self) {
        std::iter::from_fn(|| self.serve_oldest()).for_each(wake);
    }

    /// Admits the oldest waiter, if that is possible; it is to be woken.
    fn serve_oldest(&self) -> Option<Waker> {
        let mut waiters = self.waiters.borrow_mut();
        let access = (*waiters.oldest()?)?;
        if !self.admit(access) {
            return None;
        }
        self.unclaimed.update(|accesses| accesses + 1);
        let oldest = waiters.notify_oldest();
        self.note(waiters.waiting());
        oldest
    }

    /// Takes the entry of a future away. What it was given ends.
    fn leave(&self, key: &mut Option<WaitKey>) -> Option<Removed<Option<Access>>> {
        let mut waiters = self.waiters.borrow_mut();
        let left = waiters.leave(key);
        self.note(waiters.waiting());
        if let Some(Removed::Notified(Some(_))) = left {
            self.unclaimed.update(|accesses| accesses - 1);
            self.release();
        }
        left
    }

    /// One poll of a future that could not be admitted at once, or was woken. Once it is done, a
    /// [`Hold`] is to end the access.
    pub(super) fn poll_admission(
        &self,
        access: Access,
        key: &mut Option<WaitKey>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), ()>> {
        poll_first(cx, key.is_none(), |waker| {
            if let Err(closed) = self.check_open() {
                if let Some(Removed::Waiting(known)) = self.leave(key) {
                    waker.drop_later(known);
                }
                return Poll::Ready(Err(closed));
            }
            let mut waiters = self.waiters.borrow_mut();
            let was_told = key.as_ref().map(|key| waiters.is_notified(key));
            match was_told {
                Some(true) => self.unclaimed.update(|accesses| accesses - 1),
                None if waiters.waiting() == 0 && self.admit(access) => {}
                _ => {
                    waiters.wait(key, waker, Some(access));
                    self.note(waiters.waiting());
                    return waits_for(Poll::Pending, || self.holder.awaited());
                }
            }
            waiters.finish(key, waker);
            Poll::Ready(Ok(()))
        })
    }

    /// A future waits no longer.
    #[cold]
    pub(super) fn give_up(&self, key: &mut Option<WaitKey>) {
        let left = self.leave(key);
        // Readers behind a writer that gives up, or those next behind an access that ends.
        self.serve();
        drop(left);
    }

    /// Notes that so many futures wait now.
    fn note(&self, waiting: usize) {
        if self.stage.get() != Stage::Closed {
            self.stage.set(match waiting {
                0 => Stage::Free,
                _ => Stage::Awaited,
            });
        }
    }

    pub(super) fn close(&self) {
        self.stage.set(Stage::Closed);
        let waiting = self.waiters.borrow().waiting();
        let close_oldest = || {
            let mut waiters = self.waiters.borrow_mut();
            *waiters.oldest()? = None;
            waiters.notify_oldest()
        };
        std::iter::from_fn(close_oldest)
            .take(waiting)
            .for_each(wake);
    }
}

/// An access, which ends when this is dropped.
pub(super) struct Hold<'a> {
    order: &'a Order,
}

impl<'a> Hold<'a> {
    /// That of an access that was given.
    #[inline]
    pub(super) fn new(order: &'a Order) -> Self {
        order.holder.taken();
        Hold { order }
    }
}

impl Drop for Hold<'_> {
    #[inline]
    fn drop(&mut self) {
        self.order.holder.given_back();
        self.order.release();
        if self.order.stage.get() == Stage::Awaited {
            self.order.serve();
        }
    }
}
