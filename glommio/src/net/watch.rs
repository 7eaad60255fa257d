//! A multishot poll of a stream that is read often.
//!
//! ```text
//!            PollMany, in flight from read to read
//!   kernel ──────────── data came ────────────▶ `has_events`, wake the task that waits
//! ```
//!
//! Asking anew for each wait whether a socket is readable costs a submission each time. A watch is one
//! operation that completes whenever something comes. It tells of changes only: a reader that finds the
//! socket empty by a system call *after* it has cleared the events, and is told of no other, knows that
//! it is empty still. What was there before the watch began counts as an event.
//!
//! Events that no task waits for cost time all the same. So a watch over a socket whose owner does not
//! come to read ends, until a task waits again.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::RawFd;
use std::rc::{Rc, Weak};
use std::task::Waker;

use crate::panic::{self, wake_by_ref};
use crate::reactor::{PollMany, Reactor, Sink, SinkHandle, executor_is_gone};

/// Tells of a socket becoming readable.
#[derive(Debug)]
pub(super) struct Watch {
    events: Rc<ReadinessEvents>,
    reactor: Weak<Reactor>,
}

/// Events that may pile up before they are taken to be of no interest.
const MAX_UNREAD: u32 = 4;

/// Events after which a receive does not wait, as a rule.
const ENDS: u32 = (libc::POLLERR | libc::POLLHUP | libc::POLLRDHUP) as u32;

/// What was told of the socket, and to which task it is to be told.
#[derive(Debug, Default)]
struct ReadinessEvents {
    /// So many have come since they were last cleared.
    count: Cell<u32>,
    /// There has been an error, or an end of one direction.
    has_ended: Cell<bool>,
    is_awaited: Cell<bool>,
    /// The task that waited last. Kept from wait to wait, since it is nearly always the same.
    waker: RefCell<Option<Waker>>,
    failed: Cell<Option<i32>>,
    in_flight: RefCell<Option<Rc<Watcher>>>,
}

/// One operation, and where its completions go.
#[derive(Debug)]
struct Watcher {
    events: Weak<ReadinessEvents>,
    operation: RefCell<Option<SinkHandle>>,
}

impl Watch {
    pub(super) fn new(reactor: Weak<Reactor>) -> Self {
        Watch {
            events: Rc::default(),
            reactor,
        }
    }

    /// Whether something has come since events were last [cleared](Self::clear_events).
    pub(super) fn has_events(&self) -> bool {
        self.events.count.get() > 0
    }

    /// Whether a socket that was found empty still is, as far as is known.
    ///
    /// An end or an error may come in the same event as the last bytes. Those are received, the
    /// socket holds no more of them, and it has yet something to say: from then on it is always asked.
    pub(super) fn is_quiet(&self) -> bool {
        !self.has_events() && !self.events.has_ended.get()
    }

    /// To be called before the system call that looks for what has come.
    pub(super) fn clear_events(&self) {
        self.events.count.set(0);
    }

    /// Has `waker` woken by the next event.
    ///
    /// # Errors
    ///
    /// What the watch ended with, unless that was an ordinary end.
    pub(super) fn wait(&self, fd: RawFd, waker: &Waker) -> io::Result<()> {
        let reactor = self.reactor.upgrade().ok_or_else(executor_is_gone)?;
        if let Some(errno) = self.events.failed.take() {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if !self.events.knows(waker) {
            // Cloned and dropped with nothing borrowed: both are code of others.
            let replaced = self.events.waker.replace(Some(waker.clone()));
            drop(replaced);
        }
        self.events.is_awaited.set(true);
        if self.events.in_flight.borrow().is_none() {
            self.begin(fd, &reactor);
        }
        Ok(())
    }

    /// The waker of the task that waits, if nothing has come.
    pub(super) fn waiting(&self) -> Option<Waker> {
        if !self.events.is_awaited.get() {
            return None;
        }
        let waker = self.events.waker.take()?;
        let clone = waker.clone();
        self.events.waker.replace(Some(waker));
        Some(clone)
    }

    fn begin(&self, fd: RawFd, reactor: &Rc<Reactor>) {
        let watcher = Rc::new(Watcher {
            events: Rc::downgrade(&self.events),
            operation: RefCell::new(None),
        });
        // Errors and hang-ups of both sides are told of unasked.
        let events = libc::POLLIN | libc::POLLRDHUP;
        let operation = reactor.submit_to(PollMany { fd, events }, watcher.clone());
        *watcher.operation.borrow_mut() = Some(operation);
        *self.events.in_flight.borrow_mut() = Some(watcher);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.events.end();
        let waker = self.events.waker.take();
        panic::fenced(|| drop(waker));
    }
}

impl ReadinessEvents {
    fn knows(&self, waker: &Waker) -> bool {
        let known = self.waker.borrow();
        known.as_ref().is_some_and(|known| known.will_wake(waker))
    }

    /// Gives the operation up.
    fn end(&self) {
        let watcher = self.in_flight.borrow_mut().take();
        if let Some(watcher) = watcher {
            let operation = watcher.operation.borrow_mut().take();
            drop(operation);
        }
    }
}

impl Sink for Watcher {
    type Item = io::Result<u32>;

    fn complete(&self, ready: io::Result<u32>, has_more: bool) {
        let Some(events) = self.events.upgrade() else {
            return;
        };
        // One that was given up has nothing to say: the next begins with what is there.
        if self.operation.borrow().is_none() {
            return;
        }
        match ready.map_err(|error| error.raw_os_error()) {
            Ok(ready) => {
                if ready & ENDS != 0 {
                    events.has_ended.set(true);
                }
            }
            Err(Some(libc::EINTR | libc::ECANCELED | libc::EAGAIN) | None) => {}
            Err(Some(errno)) => events.failed.set(Some(errno)),
        }
        events.count.set(events.count.get().saturating_add(1));
        if !has_more || events.count.get() > MAX_UNREAD {
            events.end();
        }
        if events.is_awaited.replace(false)
            && let Some(waker) = events.waker.take()
        {
            wake_by_ref(&waker);
            // Unless another task waits since.
            let other = events.waker.replace(Some(waker));
            if other.is_some() {
                let waker = events.waker.replace(other);
                drop(waker);
            }
        }
    }
}
