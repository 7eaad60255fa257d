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
//!
//! # When a TCP socket is empty
//!
//! A receive that gets less than it asked for has taken everything, as users of edge-triggered
//! polls know (`epoll(7)`), but for two cases. What is left then was there before the receive, and
//! its event may have been cleared, so that none follows:
//!
//! - *The end of the stream, or an error.* Both wake polls without saying what has happened, or with
//!   `POLLERR`, so the kernel looks at the socket: the event has `POLLRDHUP`, `POLLERR` or
//!   `POLLHUP`, whatever else has come by then. From there on the socket is not taken for empty.
//! - *Urgent data*, where a receive stops short of the mark. An event has `POLLPRI` then if the
//!   kernel has looked. But if it stands for one wake alone, which data is, its bits are those of
//!   the wake: `POLLPRI` in any case, and `POLLRDBAND`, which no look at a TCP socket gives. So
//!   events are counted. Urgent data wakes once when it arrives, and, as any data, once when it is
//!   next in line. Data that was not there at the last receive has an event that was not cleared
//!   by then (with the usual `SO_RCVLOWAT`). So if each receive that got something has cleared one event at most, and the others
//!   none, either one more event is to come, or the mark has been passed. Where there were more
//!   events, `poll(2)` tells whether there is urgent data: it does from the first wake until the
//!   mark is passed. Once there was, the socket is not taken for empty any more.
//!
//! That merged wakes have the kernel look is so since Linux 6.1. TLS of the kernel, which returns
//! record by record, wakes for each when the one before it is received.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::RawFd;
use std::rc::{Rc, Weak};
use std::task::Waker;

use crate::noted::{Awaited, waiting};
use crate::panic::{self, wake_by_ref};
use crate::reactor::{PollMany, Reactor, Sink, SinkHandle, executor_is_gone};
use crate::sys::socket::has_urgent_data;
use crate::tuning;

/// Reports when a socket becomes readable.
#[derive(Debug)]
pub(super) struct MultishotPoll {
    events: Rc<ReadinessEvents>,
    reactor: Weak<Reactor>,
}

/// Events after which a receive does not wait, as a rule.
const ENDS: u32 = (libc::POLLERR | libc::POLLHUP | libc::POLLRDHUP) as u32;

/// Urgent data, if the other is not there.
const URGENT: u32 = libc::POLLPRI as u32;
const WAKE_OF_DATA: u32 = libc::POLLRDBAND as u32;

/// The events of the socket, and the task that waits for them.
#[derive(Debug, Default)]
struct ReadinessEvents {
    /// Events since this was last cleared.
    count: Cell<u32>,
    /// Events that were cleared since the socket was last found empty, and whether a receive has
    /// got something since.
    cleared: Cell<u32>,
    has_received: Cell<bool>,
    /// There has been an error, an end of one direction, or urgent data: the socket is never taken
    /// for empty.
    is_unsure: Cell<bool>,
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
        !self.has_events() && !self.events.is_unsure.get()
    }

    /// To be called before the system call that receives.
    pub(super) fn clear_events(&self) {
        let events = &self.events;
        let cleared = events.cleared.get().saturating_add(events.count.take());
        events.cleared.set(cleared);
    }

    /// Takes note that a receive has got something.
    pub(super) fn note_data(&self) {
        self.events.has_received.set(true);
    }

    /// Takes note that a receive has got less than it asked for, or nothing since that would have
    /// blocked. Returns whether the socket is empty, as the module has it.
    pub(super) fn note_end_of_data(&self, fd: RawFd) -> bool {
        let events = &self.events;
        let explained = u32::from(events.has_received.take());
        if events.cleared.take() > explained && has_urgent_data(fd) {
            events.is_unsure.set(true);
        }
        !events.is_unsure.get()
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
        waiting(|| Awaited::Data(fd));
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
        let events = libc::POLLIN | libc::POLLRDHUP | libc::POLLPRI | libc::POLLRDBAND;
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
                let has_urgent_data = mask & (URGENT | WAKE_OF_DATA) == URGENT;
                if mask & ENDS != 0 || has_urgent_data {
                    events.is_unsure.set(true);
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
