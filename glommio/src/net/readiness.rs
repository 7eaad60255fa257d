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
//!
//! Where waits are frequent, a standing [`Watch`] takes the place of one operation for each wait.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::os::fd::RawFd;
use std::pin::Pin;
use std::rc::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use super::time_limit::TimeLimit;
use super::watch::Watch;
use crate::reactor::{OpHandle, PollOnce, Reactor, executor_is_gone};
use crate::ring::Feature;

/// One direction of a socket: who waits for it, and for how long.
#[derive(Debug)]
pub(super) struct Readiness {
    reactor: Weak<Reactor>,
    direction: Direction,
    news: Source,
    /// How often one poll operation after the other has completed, up to a point.
    waits: u8,
    hunch: Hunch,
    /// In a cell because timeouts are set through shared references, also while somebody waits.
    limit: RefCell<TimeLimit>,
    timed_out: fn() -> io::Error,
}

/// Where the news that a socket is ready comes from.
#[derive(Debug)]
enum Source {
    /// From an operation that completes when it is ready, and is over then.
    Poll(Option<OpHandle<PollOnce>>),
    Watch(Watch),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Readiness {
    /// For any number of waits, without a time limit for now. `timed_out` makes the error for those that
    /// took too long.
    pub(super) fn new(
        reactor: Weak<Reactor>,
        direction: Direction,
        timed_out: fn() -> io::Error,
    ) -> Self {
        Readiness {
            reactor,
            direction,
            news: Source::Poll(None),
            waits: 0,
            hunch: Hunch::new(),
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
        let waiting = match &self.news {
            Source::Poll(operation) => operation.as_ref().and_then(OpHandle::waiting),
            Source::Watch(watch) => watch.waiting(),
        };
        let mut limit = self.limit.borrow_mut();
        let ended = limit.set_length(length, &self.reactor, waiting);
        drop(limit);
        drop(ended);
    }

    /// Whether a [watch](Self::watch) would pay: so many waits will hardly have been the last.
    pub(super) fn is_waited_for_often(&self) -> bool {
        self.waits == OFTEN && matches!(self.news, Source::Poll(None))
    }

    /// Whether the kernel can watch.
    pub(super) fn can_watch(&self) -> bool {
        let reactor = self.reactor.upgrade();
        reactor.is_some_and(|it| it.has(Feature::PollMulti))
    }

    /// From here on, one standing operation tells of everything that comes. Whoever polls has to know
    /// then when a socket is empty.
    pub(super) fn watch(&mut self) {
        self.news = Source::Watch(Watch::new(self.reactor.clone()));
    }

    /// Never to be watched.
    pub(super) fn do_not_watch(&mut self) {
        self.waits = NEVER;
    }

    /// Gives up what is in flight.
    pub(super) fn give_up(&mut self) {
        self.news = Source::Poll(None);
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
        let mut is_ready = match &self.news {
            Source::Poll(operation) => operation.is_none() && !is_empty,
            Source::Watch(watch) if is_empty && watch.is_quiet() => {
                if let Some(done) = self.follow_hunch(&mut attempt) {
                    return self.end(done);
                }
                false
            }
            Source::Watch(_) => true,
        };
        loop {
            if is_ready {
                if let Source::Watch(watch) = &self.news {
                    watch.clear_news();
                }
                if let Some(done) = outcome(&mut attempt) {
                    return self.end(done);
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
            // What has come is there, whether or not the reactor has heard of it.
            let done = outcome(&mut attempt);
            return self.end(done.unwrap_or_else(|| Err((self.timed_out)())));
        }
    }

    /// The socket was empty; but the kernel has completions that nobody has looked at yet, and one of
    /// them may be for this socket. That is so if the answer to a message comes while it is sent, as
    /// on a shared CPU: then an attempt saves a turn.
    fn follow_hunch<T>(
        &mut self,
        attempt: &mut impl FnMut() -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        let has_completions = || self.reactor.upgrade().is_some_and(|it| it.work_pending());
        if !has_completions() || !self.hunch.is_worth_a_try() {
            return None;
        }
        let done = outcome(attempt);
        self.hunch.note(done.is_some());
        done
    }

    fn end<T>(&mut self, done: io::Result<T>) -> Poll<io::Result<T>> {
        self.limit.get_mut().stop();
        Poll::Ready(done)
    }

    fn poll_ready(&mut self, fd: RawFd, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.news {
            Source::Watch(watch) if watch.has_news() => Poll::Ready(Ok(())),
            Source::Watch(watch) => match watch.wait(fd, cx.waker()) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
            Source::Poll(_) => self.poll_once(fd, cx),
        }
    }

    fn poll_once(&mut self, fd: RawFd, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Source::Poll(operation) = &mut self.news else {
            unreachable!("asked only where there is no watch");
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
        if self.waits < OFTEN {
            self.waits += 1;
        }
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

/// Waits after which more are to be expected. Few connections live on after that to be closed soon.
const OFTEN: u8 = 8;
const NEVER: u8 = OFTEN + 1;

/// Whether attempts against the odds have been worth it of late. A success spares more than a failure
/// costs, so one in three will do. After those that were not, more and more occasions go by.
#[derive(Debug)]
struct Hunch {
    /// Failures that it can bear.
    credit: u8,
    to_skip: u8,
    last_skipped: u8,
}

impl Hunch {
    fn new() -> Self {
        Hunch {
            credit: 2,
            to_skip: 0,
            last_skipped: 0,
        }
    }

    fn is_worth_a_try(&mut self) -> bool {
        if self.to_skip == 0 {
            return true;
        }
        self.to_skip -= 1;
        false
    }

    fn note(&mut self, was_right: bool) {
        if was_right {
            self.credit = (self.credit + 2).min(8);
            self.last_skipped = 0;
        } else if self.credit > 0 {
            self.credit -= 1;
        } else {
            self.last_skipped = self.last_skipped.saturating_mul(2).saturating_add(1);
            self.to_skip = self.last_skipped;
        }
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
        self.read.give_up();
        self.write.give_up();
        if let Some(reactor) = self.read.reactor.upgrade() {
            reactor.cancel_now();
        }
    }
}
