//! A multishot poll of a stream that is read often.
//!
//! ```text
//!            one operation, in flight from read to read
//!   kernel ──────────── data arrived ────────────▶ `has_events`, wake the waiting task
//! ```
//!
//! A poll operation for each wait costs a submission each time. A multishot poll is one operation
//! that completes whenever data arrives. It reports changes only: if a system call found the socket
//! empty *after* the last events were cleared, and no event followed, the socket is still empty.
//! Data that was there before the poll began counts as an event.
//!
//! Events cost time even if no task waits for them. So the poll of a socket that is not read ends,
//! until a task waits again.

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
use crate::tuning;

/// Reports when a socket becomes readable.
#[derive(Debug)]
pub(super) struct MultishotPoll {
    events: Rc<ReadinessEvents>,
    reactor: Weak<Reactor>,
}

/// Events after which a receive does not wait, as a rule.
const ENDS: u32 = (libc::POLLERR | libc::POLLHUP | libc::POLLRDHUP) as u32;

/// The events of the socket, and the task that waits for them.
#[derive(Debug, Default)]
struct ReadinessEvents {
    /// Events since this was last cleared.
    count: Cell<u32>,
    /// There has been an error, or an end of one direction.
    has_ended: Cell<bool>,
    is_awaited: Cell<bool>,
    /// The waker of the last wait. Kept from wait to wait, since it is nearly always the same.
    waker: RefCell<Option<Waker>>,
    failed: Cell<Option<i32>>,
    in_flight: RefCell<Option<Rc<EventSink>>>,
}

/// One operation, and where its events go.
#[derive(Debug)]
struct EventSink {
    events: Weak<ReadinessEvents>,
    operation: RefCell<Option<SinkHandle>>,
}

impl MultishotPoll {
    pub(super) fn new(reactor: Weak<Reactor>) -> Self {
        MultishotPoll {
            events: Rc::default(),
            reactor,
        }
    }

    /// Whether there were events since they were last [cleared](Self::clear_events).
    pub(super) fn has_events(&self) -> bool {
        self.events.count.get() > 0
    }

    /// Whether a socket that was found empty still is, as far as is known.
    ///
    /// An end or an error may come in the same event as the last bytes. Those are received, the
    /// socket holds no more of them, and the end is still to be reported: from then on the
    /// socket is always tried.
    pub(super) fn is_quiet(&self) -> bool {
        !self.has_events() && !self.events.has_ended.get()
    }

    /// To be called before the system call that receives.
    pub(super) fn clear_events(&self) {
        self.events.count.set(0);
    }

    /// Has `waker` woken by the next event.
    ///
    /// # Errors
    ///
    /// What the operation failed with, unless that was an ordinary end.
    pub(super) fn wait(&self, fd: RawFd, waker: &Waker) -> io::Result<()> {
        let reactor = self.reactor.upgrade().ok_or_else(executor_is_gone)?;
        if let Some(errno) = self.events.failed.take() {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if !self.events.knows(waker) {
            // Cloned and dropped with nothing borrowed: both run user code.
            let replaced = self.events.waker.replace(Some(waker.clone()));
            drop(replaced);
        }
        self.events.is_awaited.set(true);
        if self.events.in_flight.borrow().is_none() {
            self.begin(fd, &reactor);
        }
        Ok(())
    }

    /// The waker of the wait under way.
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
        let sink = Rc::new(EventSink {
            events: Rc::downgrade(&self.events),
            operation: RefCell::new(None),
        });
        // Errors and hang-ups of both sides are always reported.
        let events = libc::POLLIN | libc::POLLRDHUP;
        let operation = reactor.submit_to(PollMany { fd, events }, sink.clone());
        *sink.operation.borrow_mut() = Some(operation);
        *self.events.in_flight.borrow_mut() = Some(sink);
    }
}

impl Drop for MultishotPoll {
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

    /// Cancels the operation.
    fn end(&self) {
        let sink = self.in_flight.borrow_mut().take();
        if let Some(sink) = sink {
            let operation = sink.operation.borrow_mut().take();
            drop(operation);
        }
    }
}

impl Sink for EventSink {
    type Item = io::Result<u32>;

    fn complete(&self, ready: io::Result<u32>, has_more: bool) {
        let Some(events) = self.events.upgrade() else {
            return;
        };
        // The events of a cancelled operation are ignored: the next begins with what is there.
        if self.operation.borrow().is_none() {
            return;
        }
        match ready.map_err(|error| error.raw_os_error()) {
            Ok(mask) => {
                if mask & ENDS != 0 {
                    events.has_ended.set(true);
                }
            }
            Err(Some(libc::EINTR | libc::ECANCELED | libc::EAGAIN) | None) => {}
            Err(Some(errno)) => events.failed.set(Some(errno)),
        }
        events.count.set(events.count.get().saturating_add(1));
        if !has_more || events.count.get() > tuning::get().max_unread {
            events.end();
        }
        if events.is_awaited.replace(false)
            && let Some(waker) = events.waker.take()
        {
            wake_by_ref(&waker);
            // Unless another task has begun to wait meanwhile.
            let other = events.waker.replace(Some(waker));
            if other.is_some() {
                let waker = events.waker.replace(other);
                drop(waker);
            }
        }
    }
}
