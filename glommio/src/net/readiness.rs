//! Waiting until a socket is ready in one direction.
//!
//! ```text
//!             attempt ──done──▶ result
//!              ▲   │ would block
//!        ready │   ▼
//!            poll operation in flight ──time limit over──▶ one more attempt, then `TimedOut`
//! ```
//!
//! An operation is put in flight when an attempt would have blocked, and kept from poll to poll, also
//! when the future that polled is dropped: the next one goes on with it. It carries no data, so
//! nothing is lost with it. Error and hang-up of the peer count as ready, and the attempt reports
//! them.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::io;
use std::os::fd::RawFd;
use std::rc::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use super::time_limit::TimeLimit;
use crate::reactor::{Op, Operation, Reactor, executor_is_gone};

/// One direction of a socket: who waits for it, and for how long.
#[derive(Debug)]
pub(super) struct Readiness {
    reactor: Weak<Reactor>,
    direction: Direction,
    operation: Option<Operation>,
    /// In a cell because timeouts are set through shared references, also while somebody waits.
    limit: RefCell<TimeLimit>,
    timed_out: fn() -> io::Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Readiness {
    /// Without a time limit. `timed_out` makes the error for waits that took too long.
    pub(super) fn new(
        reactor: Weak<Reactor>,
        direction: Direction,
        timed_out: fn() -> io::Error,
    ) -> Self {
        Readiness {
            reactor,
            direction,
            operation: None,
            limit: RefCell::new(TimeLimit::new(None)),
            timed_out,
        }
    }

    pub(super) fn time_limit(&self) -> Option<Duration> {
        self.limit.borrow().length()
    }

    /// Also for a wait under way, whose time starts now.
    pub(super) fn set_time_limit(&self, length: Option<Duration>) {
        let waiting = self.operation.as_ref().and_then(Operation::waiting);
        let mut limit = self.limit.borrow_mut();
        let ended = limit.set_length(length, &self.reactor, waiting);
        drop(limit);
        drop(ended);
    }

    /// Calls `attempt` until it does not give `WouldBlock`, waiting before each further time. With
    /// `wait_first` it waits before the first, too.
    pub(super) fn poll_io<T>(
        &mut self,
        fd: RawFd,
        cx: &mut Context<'_>,
        wait_first: bool,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let mut is_ready = self.operation.is_none() && !wait_first;
        loop {
            if is_ready && let Some(done) = outcome(&mut attempt) {
                return self.end(done);
            }
            match self.poll_ready(fd, cx) {
                Poll::Ready(Ok(())) => is_ready = true,
                Poll::Ready(Err(error)) => return self.end(Err(error)),
                Poll::Pending if self.limit.get_mut().is_over(&self.reactor, cx) => {
                    let done = outcome(&mut attempt).unwrap_or_else(|| Err((self.timed_out)()));
                    return self.end(done);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn end<T>(&mut self, done: io::Result<T>) -> Poll<io::Result<T>> {
        self.limit.get_mut().stop();
        Poll::Ready(done)
    }

    fn poll_ready(&mut self, fd: RawFd, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.operation.is_none() {
            let Some(reactor) = self.reactor.upgrade() else {
                return Poll::Ready(Err(executor_is_gone()));
            };
            let events = self.direction.events();
            self.operation = Some(reactor.submit(Op::Poll { fd, events }));
        }
        let operation = self.operation.as_mut().expect("put there just now");
        let ready = std::task::ready!(operation.poll_op(cx));
        self.operation = None;
        Poll::Ready(match ready {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // Nothing is known then: the next attempt tells.
                Some(libc::EINTR | libc::ECANCELED | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        })
    }
}

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

impl Direction {
    fn events(self) -> libc::c_short {
        match self {
            Direction::Read => libc::POLLIN,
            Direction::Write => libc::POLLOUT,
        }
    }
}

/// Both directions of a stream.
///
/// The kernel holds the socket open for as long as an operation on it is in flight: closed then, it
/// would send its FIN only when the cancellation is handed over, which may be long after if the task
/// goes on computing. So dropping this hands it over at once. It is to be dropped before the
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
        self.read.operation = None;
        self.write.operation = None;
        if let Some(reactor) = self.read.reactor.upgrade() {
            reactor.cancel_now();
        }
    }
}
