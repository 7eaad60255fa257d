//! Waiting until a socket is ready in one direction.
//!
//! ```text
//!             attempt ──done──▶ result
//!              ▲   │ would block
//!        ready │   ▼
//!            poll operation in flight ──time limit over──▶ one more attempt, then `TimedOut`
//! ```
//!
//! An operation is put in flight when an attempt would have blocked, and kept from poll to poll,
//! also when the future that polled is dropped: the next one goes on with it. It carries no data,
//! so nothing is lost with it. Error and hang-up of the peer count as ready, and the attempt
//! reports them.
//!
//! Where waits are frequent, a [`MultishotPoll`] takes the place of one operation for each wait.
//!
//! A socket that is always ready would keep the thread, so the [budget] of the task is asked before
//! each attempt. What it refuses has done nothing: no data was taken, a wait under way goes on, and
//! so does its time limit. A wait whose time is over ends all the same, since that happens once.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::RawFd;
use std::pin::Pin;
use std::rc::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use super::multishot_poll::MultishotPoll;
use super::time_limit::TimeLimit;
use crate::reactor::{OpHandle, PollOnce, Reactor, budget, executor_is_gone};
use crate::ring::Feature;
use crate::sys::door::is_tried_at_once;
use crate::tuning;

/// One direction of a socket: the wait for it, and its time limit.
#[derive(Debug)]
pub(super) struct Readiness {
    reactor: Weak<Reactor>,
    direction: Direction,
    source: Source,
    /// How often one poll operation after the other has completed, up to a point.
    waits: u8,
    /// In a cell because timeouts are set through shared references, also while a task waits.
    limit: RefCell<TimeLimit>,
    timed_out: fn() -> io::Error,
}

/// The operation that reports when a socket is ready.
#[derive(Debug)]
enum Source {
    /// One that completes once.
    Poll(Option<OpHandle<PollOnce>>),
    Multishot(MultishotPoll),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Readiness {
    /// For any number of waits, without a time limit for now. `timed_out` makes the error for those
    /// that took too long.
    pub(super) fn new(
        reactor: Weak<Reactor>,
        direction: Direction,
        timed_out: fn() -> io::Error,
    ) -> Self {
        Readiness {
            reactor,
            direction,
            source: Source::Poll(None),
            waits: 0,
            limit: RefCell::new(TimeLimit::new()),
            timed_out,
        }
    }

    /// For one wait, of no longer than `limit`.
    pub(super) fn of_one_wait(
        reactor: Weak<Reactor>,
        direction: Direction,
        limit: Option<Duration>,
        timed_out: fn() -> io::Error,
    ) -> Self {
        Readiness {
            limit: RefCell::new(TimeLimit::of_one_wait(limit)),
            ..Readiness::new(reactor, direction, timed_out)
        }
    }

    pub(super) fn time_limit(&self) -> Option<Duration> {
        self.limit.borrow().length()
    }

    /// Also for a wait under way, whose time starts now.
    pub(super) fn set_time_limit(&self, length: Option<Duration>) {
        let waiting = match &self.source {
            Source::Poll(operation) => operation.as_ref().and_then(OpHandle::waiting),
            Source::Multishot(poll) => poll.waiting(),
        };
        let mut limit = self.limit.borrow_mut();
        let ended = limit.set_length(length, &self.reactor, waiting);
        drop(limit);
        drop(ended);
    }

    /// Whether a [multishot poll](Self::use_multishot_poll) would pay: so many waits will hardly
    /// have been the last.
    pub(super) fn is_waited_for_often(&self) -> bool {
        self.waits == tuning::get().often
            && (1..NEVER).contains(&self.waits)
            && matches!(self.source, Source::Poll(None))
    }

    /// From here on, one operation reports all data that arrives, if the kernel has such and the socket
    /// `is_suitable`: for TCP alone. The caller of `poll_io` then has to [tell](Self::note_received)
    /// what it has received. Otherwise waits keep one operation each.
    #[cold]
    pub(super) fn use_multishot_poll(&mut self, is_suitable: impl FnOnce() -> bool) {
        let reactor = self.reactor.upgrade();
        if reactor.is_some_and(|it| it.has(Feature::PollMulti)) && is_suitable() {
            self.source = Source::Multishot(MultishotPoll::new(self.reactor.clone()));
        } else {
            self.waits = NEVER;
        }
    }

    /// Takes note that a receive has got something: less than it asked for if it `is_short`.
    /// Returns whether the socket is taken for empty.
    pub(super) fn note_received(&self, fd: RawFd, is_short: bool) -> bool {
        if let Source::Multishot(poll) = &self.source {
            poll.note_data();
            return is_short && poll.note_end_of_data(fd);
        }
        is_short
    }

    /// Cancels what is in flight.
    pub(super) fn give_up(&mut self) {
        self.source = Source::Poll(None);
    }

    /// Calls `attempt` until it does not give `WouldBlock`, waiting before each further time. With
    /// `is_empty` it waits before the first, too.
    pub(super) fn poll_io<T>(
        &mut self,
        fd: RawFd,
        cx: &mut Context<'_>,
        is_empty: bool,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        if budget::poll_leave(cx).is_pending() {
            return if self.limit.get_mut().is_over_if_waiting(&self.reactor, cx) {
                self.end_late(&mut attempt)
            } else {
                Poll::Pending
            };
        }
        let mut is_ready = match &self.source {
            Source::Poll(operation) => {
                operation.is_none() && !is_empty && is_tried_at_once(fd, self.direction.events())
            }
            Source::Multishot(poll) => !is_empty || !poll.is_quiet(),
        };
        loop {
            if is_ready {
                if let Source::Multishot(poll) = &self.source {
                    poll.clear_events();
                }
                if let Some(done) = outcome(&mut attempt) {
                    return self.end(done);
                }
                if let Source::Multishot(poll) = &self.source {
                    poll.note_end_of_data(fd);
                }
            }
            match self.poll_ready(fd, cx) {
                Poll::Ready(Ok(())) => {
                    is_ready = true;
                    continue;
                }
                Poll::Ready(Err(error)) => return self.end(Err(error)),
                Poll::Pending => {}
            }
            if !self.limit.get_mut().is_over(&self.reactor, cx) {
                return Poll::Pending;
            }
            return self.end_late(&mut attempt);
        }
    }

    /// The time is over. What has come is there, whether or not the reactor has reaped its
    /// completion.
    fn end_late<T>(&mut self, attempt: &mut impl FnMut() -> io::Result<T>) -> Poll<io::Result<T>> {
        let done = outcome(attempt);
        self.end(done.unwrap_or_else(|| Err((self.timed_out)())))
    }

    fn end<T>(&mut self, done: io::Result<T>) -> Poll<io::Result<T>> {
        self.limit.get_mut().stop();
        // Also if it failed: loops that go on after errors would keep the thread as well.
        budget::spend();
        Poll::Ready(done)
    }

    fn poll_ready(&mut self, fd: RawFd, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.source {
            Source::Multishot(poll) if poll.has_events() => Poll::Ready(Ok(())),
            Source::Multishot(poll) => match poll.wait(fd, cx.waker()) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
            Source::Poll(_) => self.poll_once(fd, cx),
        }
    }

    fn poll_once(&mut self, fd: RawFd, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Source::Poll(operation) = &mut self.source else {
            unreachable!("called only without a multishot poll");
        };
        if operation.is_none() {
            let Some(reactor) = self.reactor.upgrade() else {
                return Poll::Ready(Err(executor_is_gone()));
            };
            let events = self.direction.events();
            *operation = Some(reactor.submit(PollOnce { fd, events }));
        }
        let in_flight = operation.as_mut().expect("put there just now");
        let ready = std::task::ready!(Pin::new(in_flight).poll(cx));
        *operation = None;
        if self.waits < tuning::get().often {
            self.waits += 1;
        }
        Poll::Ready(match ready {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // The state is unknown then; the next attempt finds it out.
                Some(libc::EINTR | libc::ECANCELED | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        })
    }
}

/// A count of waits that is never taken for often.
const NEVER: u8 = u8::MAX;

/// What an attempt that did not block came to.
pub(super) fn outcome<T>(attempt: &mut impl FnMut() -> io::Result<T>) -> Option<io::Result<T>> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            done => return Some(done),
        }
    }
}

/// As [`outcome`], of an operation that begins: with leave of the task's budget, and counted there.
pub(super) async fn outcome_at_once<T>(
    attempt: &mut impl FnMut() -> io::Result<T>,
) -> Option<io::Result<T>> {
    poll_fn(|cx| budget::poll_leave(cx)).await;
    outcome(attempt).inspect(|_| budget::spend())
}

impl Direction {
    pub(super) fn events(self) -> libc::c_short {
        match self {
            Direction::Read => libc::POLLIN,
            Direction::Write => libc::POLLOUT,
        }
    }
}

/// Both directions of a stream.
///
/// The kernel holds the socket open for as long as an operation on it is in flight: closed then, it
/// would send its FIN only when the cancellation is handed over, which may be long after if the
/// task goes on computing. So dropping this hands it over at once. It is to be dropped before the
/// descriptor.
#[derive(Debug)]
pub(super) struct Directions {
    pub(super) read: Readiness,
    pub(super) write: Readiness,
}

impl Directions {
    pub(super) fn new(reactor: Weak<Reactor>, timed_out: fn() -> io::Error) -> Self {
        Directions {
            read: Readiness::new(reactor.clone(), Direction::Read, timed_out),
            write: Readiness::new(reactor, Direction::Write, timed_out),
        }
    }
}

impl Drop for Directions {
    fn drop(&mut self) {
        self.read.give_up();
        self.write.give_up();
        if let Some(reactor) = self.read.reactor.upgrade() {
            reactor.cancel_now();
        }
    }
}
