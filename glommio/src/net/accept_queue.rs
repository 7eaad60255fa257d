//! Connections on their way from a listener to whoever accepts.
//!
//! ```text
//!   listener ──order in flight──▶ queue of descriptors ──▶ accept future / poll
//!                    ▲                     │ one comes in: wake the oldest waiter
//!                    └── while some wait ──┘
//! ```
//!
//! One operation is in flight per listener, however many wait. It belongs to the queue and not to a
//! future, so a connection that completes after a future was dropped goes to the next one; it is
//! closed if the listener itself is gone.
//!
//! Where the kernel can (5.19), the order is for all connections from now on: a multishot operation, which
//! a busy server submits once. Elsewhere it is for one connection, and repeated while somebody waits.
//!
//! ```text
//!             somebody waits, nothing unclaimed
//!   Idle ───────────────────────────────────────▶ Many ──┐ a connection
//!    ▲ ▲        last completion: error, or the     │ ▲───┘
//!    │ └───────  kernel had no room for more ──────┤
//!    │                                             │ a connection for nobody,
//!    └────── last completion ───── Stopping ◀──────┘ or one too many unclaimed
//! ```
//!
//! The kernel then accepts without being asked, so it has to be stopped at times: by a connection that
//! comes while nobody waits for one, and by as many as [`MOST_UNCLAIMED`] that wait to be claimed. A
//! program that has stopped accepting thus gets hold of one connection, or one batch, that it does not
//! want, as it would with the order for one; the others stay in the backlog, which is what holds clients
//! off, and which another process may share. Stopping when the last waiter leaves, sooner, would cost those
//! who wait for a connection or for something else, over and over, two submissions each time. What the
//! kernel accepts before it hears that it shall stop comes on top, so neither number is exact; the
//! room for completions, four times the depth of the ring, bounds that.
//!
//! An error, such as `EMFILE`, ends the order. It goes to one waiter; the next is for those who go on
//! waiting and for whoever comes after. An order that stands goes by the limit of descriptors that held
//! when it was submitted.
//!
//! Two kinds of waiters. A future has a place in line; if it is dropped between its wake-up and its
//! next poll, it passes the wake-up on. A caller of `poll_accept` leaves nothing but a waker, and may
//! never come back: all such wakers are woken for each connection, beside the oldest future.
//!
//! A listener in non-blocking mode makes the accept operation fail with `EAGAIN` instead of waiting.
//! Then a poll operation waits in its place. No `accept4(2)` is tried before the ring is asked: on a
//! listener in blocking mode it would block, unless it were certain that nobody else accepts.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use crate::panic::{self, Fenced};
use crate::reactor::{Op, Operation, Reactor, Sink, executor_is_gone, wake};
use crate::ring::{Feature, Outcome};
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
                pollers_woken: false,
                order: Order::Idle,
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
        state.pollers_woken = false;
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
        let (order, unclaimed, pollers): (_, _, Vec<_>) = {
            let mut state = self.queue.state.borrow_mut();
            state.is_closed = true;
            (
                std::mem::take(&mut state.order),
                std::mem::take(&mut state.accepted),
                state.pollers.drain(..).map(Fenced::new).collect(),
            )
        };
        drop((order, unclaimed, pollers));
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
                panic::fenced(|| drop(waker));
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
    /// Completed and not claimed. With orders for one, bounded by the waiters there have been at one time,
    /// since nothing is put in flight without one; with the others, see the module.
    accepted: VecDeque<io::Result<OwnedFd>>,
    futures: WaitQueue,
    /// Who called `poll_accept`, each once; emptied at each completion.
    pollers: Vec<Waker>,
    /// They were woken, and nobody has called since.
    pollers_woken: bool,
    order: Order,
    is_closed: bool,
}

/// What the kernel is asked to do.
#[derive(Debug, Default)]
#[expect(
    dead_code,
    reason = "operations are held, since dropping one gives it up"
)]
enum Order {
    #[default]
    Idle,
    /// To accept one connection, or to tell when there is one.
    One(Operation),
    /// To accept all that come.
    Many(Operation),
    /// To stop that; until it has, its completions are not to be taken for those of another order.
    Stopping,
}

/// So many unclaimed connections stop the kernel from accepting more.
const MOST_UNCLAIMED: usize = 64;

impl State {
    /// Whether somebody waits who has to be told.
    fn has_waiting(&self) -> bool {
        self.futures.has_waiting() || !self.pollers.is_empty()
    }

    /// Whether somebody waits, or was woken and is about to look.
    fn has_claimant(&self) -> bool {
        !self.futures.is_empty() || !self.pollers.is_empty() || self.pollers_woken
    }

    /// Has the kernel stop accepting all that come. What is returned is to be dropped.
    fn stop(&mut self) -> Option<Order> {
        // An order stands until its last completion, so one has completed and can be given up: the
        // kernel has it, and there will be a last completion.
        matches!(self.order, Order::Many(_))
            .then(|| std::mem::replace(&mut self.order, Order::Stopping))
    }
}

impl AcceptQueue {
    /// Has the kernel accept, unless it is at it.
    fn accept_next<T>(&self, state: &mut State) -> Poll<io::Result<T>> {
        let listener = self.listener;
        self.start(state, |this, reactor| {
            if reactor.has(Feature::AcceptMulti) {
                Order::Many(reactor.submit_to(Op::AcceptMany { listener }, this))
            } else {
                Order::One(reactor.submit_to(Op::Accept { listener }, this))
            }
        })
    }

    /// Waits until there is a connection to accept.
    fn await_next(&self, state: &mut State) {
        let readable = Op::Poll {
            fd: self.listener,
            events: libc::POLLIN,
        };
        let started: Poll<io::Result<()>> = self.start(state, |this, reactor| {
            Order::One(reactor.submit_to(readable, Rc::new(Readable(this))))
        });
        debug_assert!(
            started.is_pending(),
            "called by the reactor, which is there"
        );
    }

    fn start<T>(
        &self,
        state: &mut State,
        order: impl FnOnce(Rc<AcceptQueue>, &Rc<Reactor>) -> Order,
    ) -> Poll<io::Result<T>> {
        let Some((this, reactor)) = self.this.upgrade().zip(self.reactor.upgrade()) else {
            return Poll::Ready(Err(executor_is_gone()));
        };
        if let Order::Idle = state.order {
            state.order = order(this, &reactor);
        }
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
        let is_enough = !state.has_claimant() || state.accepted.len() >= MOST_UNCLAIMED;
        let stopped = if is_enough { state.stop() } else { None };
        let oldest = state.futures.notify_oldest();
        let pollers = std::mem::take(&mut state.pollers);
        state.pollers_woken |= !pollers.is_empty();
        self.go_on(&mut state);
        drop(state);
        drop(stopped);
        oldest.into_iter().chain(pollers).for_each(wake);
    }

    /// Accepts more if somebody waits for it.
    fn go_on(&self, state: &mut State) {
        if !state.is_closed && state.has_waiting() {
            let started: Poll<io::Result<()>> = self.accept_next(state);
            debug_assert!(
                started.is_pending(),
                "called by the reactor, which is there"
            );
        }
    }

    /// The order has been carried out, or has failed.
    fn take_completed(&self) {
        let completed = std::mem::take(&mut self.state.borrow_mut().order);
        drop(completed);
    }
}

/// Takes the results of `Op::Accept` and `Op::AcceptMany`, and of no other operation.
impl Sink for AcceptQueue {
    fn complete(&self, outcome: Outcome) {
        if !outcome.has_more() {
            self.take_completed();
        }
        let result = outcome.raw;
        if result >= 0 {
            #[allow(unsafe_code, reason = "a descriptor comes out of the ring as a number")]
            // SAFETY: what these operations complete with, unless negative, is a descriptor that the
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
