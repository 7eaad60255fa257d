//! Connections on their way from a listener to whoever accepts.
//!
//! ```text
//!   listener ──Accept in flight──▶ queue of descriptors ──▶ accept future / poll
//!                    ▲                     │ one comes in: wake the oldest waiter
//!                    └── while some wait ──┘
//! ```
//!
//! One accept operation is in flight per listener, however many wait. It belongs to the queue and not
//! to a future, so a connection that completes after a future was dropped goes to the next one; it is
//! closed if the listener itself is gone.
//!
//! Two kinds of waiters. A future has a place in line; if it is dropped between its wake-up and its
//! next poll, it passes the wake-up on. A caller of `poll_accept` leaves nothing but a waker, and may
//! never come back: all such wakers are woken for each connection, beside the oldest future.
//!
//! A listener in non-blocking mode makes the accept operation fail with `EAGAIN` instead of waiting.
//! Then a poll operation waits in its place.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use crate::reactor::{Op, Operation, Reactor, Sink, executor_is_gone, wake};
use crate::ring::Outcome;
use crate::wait_queue::{Removed, WaitKey, WaitQueue};

/// The accepting side of a listener. To be dropped before its descriptor.
#[derive(Debug)]
pub(super) struct Acceptor {
    queue: Rc<AcceptQueue>,
}

impl Acceptor {
    pub(super) fn new(reactor: Weak<Reactor>, listener: RawFd) -> Self {
        let queue = Rc::new_cyclic(|this| AcceptQueue {
            this: this.clone(),
            reactor,
            listener,
            state: RefCell::new(State {
                accepted: VecDeque::new(),
                futures: WaitQueue::new(),
                pollers: Vec::new(),
                in_flight: None,
                is_closed: false,
            }),
        });
        Acceptor { queue }
    }

    /// The next connection, or what `accept(2)` failed with.
    pub(super) fn accept(&self) -> Accept<'_> {
        Accept {
            queue: &self.queue,
            place: None,
        }
    }

    /// The same for a task that keeps no future.
    pub(super) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<OwnedFd>> {
        // Cloned and dropped with nothing borrowed: both are code of others.
        let waker = cx.waker().clone();
        let mut state = self.queue.state.borrow_mut();
        if let Some(result) = state.accepted.pop_front() {
            return Poll::Ready(result);
        }
        if !state.pollers.iter().any(|it| it.will_wake(&waker)) {
            state.pollers.push(waker);
        }
        self.queue.accept_next(&mut state)
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        let (in_flight, unclaimed, pollers) = {
            let mut state = self.queue.state.borrow_mut();
            state.is_closed = true;
            (
                state.in_flight.take(),
                std::mem::take(&mut state.accepted),
                std::mem::take(&mut state.pollers),
            )
        };
        drop((in_flight, unclaimed, pollers));
        // The kernel would go on listening until it hears of the cancellation.
        if let Some(reactor) = self.queue.reactor.upgrade() {
            reactor.cancel_now();
        }
    }
}

/// A future connection.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub(super) struct Accept<'a> {
    queue: &'a AcceptQueue,
    /// Its place among the waiters, from the first poll on that found nothing.
    place: Option<WaitKey>,
}

impl Future for Accept<'_> {
    type Output = io::Result<OwnedFd>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Cloned and dropped with nothing borrowed: both are code of others.
        let waker = cx.waker().clone();
        let mut state = self.queue.state.borrow_mut();
        let place = self.place.take();
        let left;
        let polled = if let Some(result) = state.accepted.pop_front() {
            left = place.map(|place| state.futures.remove(place));
            Poll::Ready(result)
        } else {
            let place = match place {
                // Somebody was quicker: to the end of the line.
                Some(place) if state.futures.is_notified(&place) => {
                    state.futures.remove(place);
                    None
                }
                place => place,
            };
            let place = match place {
                Some(place) => {
                    left = Some(Removed::Waiting(state.futures.watch(&place, waker)));
                    place
                }
                None => {
                    left = None;
                    state.futures.push(waker)
                }
            };
            self.place = Some(place);
            self.queue.accept_next(&mut state)
        };
        drop(state);
        drop(left);
        polled
    }
}

impl Drop for Accept<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else {
            return;
        };
        let mut state = self.queue.state.borrow_mut();
        let next = match state.futures.remove(place) {
            Removed::Waiting(waker) => {
                drop(state);
                drop(waker);
                return;
            }
            Removed::Notified if state.accepted.is_empty() => None,
            Removed::Notified => state.futures.notify_oldest(),
        };
        drop(state);
        next.into_iter().for_each(wake);
    }
}

#[derive(Debug)]
struct AcceptQueue {
    this: Weak<AcceptQueue>,
    reactor: Weak<Reactor>,
    listener: RawFd,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Completed and not claimed: bounded by the waiters there have been at one time, since nothing is
    /// put in flight without one.
    accepted: VecDeque<io::Result<OwnedFd>>,
    futures: WaitQueue,
    /// Who called `poll_accept`, each once; emptied at each completion.
    pollers: Vec<Waker>,
    in_flight: Option<Operation>,
    is_closed: bool,
}

impl AcceptQueue {
    /// Has the kernel accept a connection, unless it is at it.
    fn accept_next<T>(&self, state: &mut State) -> Poll<io::Result<T>> {
        let listener = self.listener;
        self.start(state, Op::Accept { listener }, |this| this)
    }

    /// Waits until there is a connection to accept.
    fn await_next(&self, state: &mut State) {
        let readable = Op::Poll {
            fd: self.listener,
            events: libc::POLLIN,
        };
        let started: Poll<io::Result<()>> =
            self.start(state, readable, |this| Rc::new(Readable(this)));
        debug_assert!(
            started.is_pending(),
            "called by the reactor, which is there"
        );
    }

    fn start<T, S: Sink + 'static>(
        &self,
        state: &mut State,
        op: Op,
        sink: impl FnOnce(Rc<AcceptQueue>) -> Rc<S>,
    ) -> Poll<io::Result<T>> {
        if state.in_flight.is_some() {
            return Poll::Pending;
        }
        let Some((this, reactor)) = self.this.upgrade().zip(self.reactor.upgrade()) else {
            return Poll::Ready(Err(executor_is_gone()));
        };
        state.in_flight = Some(reactor.submit_to(op, sink(this)));
        Poll::Pending
    }

    /// Hands over a result, and goes on if more are wanted.
    fn deliver(&self, result: io::Result<OwnedFd>) {
        let mut state = self.state.borrow_mut();
        let nobody_waits = state.futures.is_empty() && state.pollers.is_empty();
        // A connection waits for the next who asks. An error would be stale by then.
        if state.is_closed || (nobody_waits && result.is_err()) {
            drop(state);
            drop(result);
            return;
        }
        state.accepted.push_back(result);
        let oldest = state.futures.notify_oldest();
        let pollers = std::mem::take(&mut state.pollers);
        self.go_on(&mut state);
        drop(state);
        oldest.into_iter().chain(pollers).for_each(wake);
    }

    /// Accepts once more if somebody waits for it.
    fn go_on(&self, state: &mut State) {
        if !state.is_closed && (state.futures.has_waiting() || !state.pollers.is_empty()) {
            let started: Poll<io::Result<()>> = self.accept_next(state);
            debug_assert!(
                started.is_pending(),
                "called by the reactor, which is there"
            );
        }
    }

    /// The operation in flight has completed.
    fn take_completed(&self) {
        let completed = self.state.borrow_mut().in_flight.take();
        drop(completed);
    }
}

/// Takes the results of `Op::Accept`, and of no other operation.
impl Sink for AcceptQueue {
    fn complete(&self, outcome: Outcome) {
        self.take_completed();
        let result = outcome.raw;
        if result >= 0 {
            #[allow(unsafe_code, reason = "a descriptor comes out of the ring as a number")]
            // SAFETY: what `Op::Accept` completes with, unless negative, is a descriptor that the
            // kernel has just opened for it; and each completion is given to its sink alone, once.
            let connection = unsafe { OwnedFd::from_raw_fd(result) };
            return self.deliver(Ok(connection));
        }
        let error = io::Error::from_raw_os_error(-result);
        let mut state = self.state.borrow_mut();
        match error.raw_os_error() {
            Some(libc::EAGAIN) if !state.is_closed => self.await_next(&mut state),
            Some(libc::EINTR | libc::ECANCELED) => self.go_on(&mut state),
            _ => {
                drop(state);
                self.deliver(Err(error));
            }
        }
    }
}

/// Takes the results of the `Op::Poll` that stands in for an accept that does not wait.
struct Readable(Rc<AcceptQueue>);

impl Sink for Readable {
    fn complete(&self, outcome: Outcome) {
        self.0.take_completed();
        match -outcome.raw {
            errno
                if errno <= 0 || matches!(errno, libc::EINTR | libc::ECANCELED | libc::EAGAIN) =>
            {
                let mut state = self.0.state.borrow_mut();
                self.0.go_on(&mut state);
            }
            errno => self.0.deliver(Err(io::Error::from_raw_os_error(errno))),
        }
    }
}
