//! Connections on their way from a listener to the accepts that wait for them.
//!
//! ```text
//!   listener ──accept in flight─▶ queue of descriptors ──▶ accept future / poll
//!                    ▲                     │ one comes in: wake the oldest future, and all pollers
//!                    └── while some wait ──┘
//! ```
//!
//! One operation is in flight per listener, however many wait. It belongs to the queue and not to a
//! future, so a connection that completes after a future was dropped goes to the next one; it is
//! closed if the listener itself is gone.
//!
//! A connection in the queue is out of reach for the next owner of the listener's bare descriptor
//! and for other processes that share it, and no longer counts against the backlog. So the kernel
//! accepts on demand only:
//!
//! - An operation is in flight while an accept waits. When a round of tasks ends and none waits,
//!   the operation is cancelled before the kernel gets to act on it. A loop that accepts waits
//!   again in the round in which it got a connection, so its operation stays in flight from one
//!   connection to the next.
//! - An operation is for one connection, unless accepts come back for more: one waits in the round
//!   in which a connection was claimed, or beside one that gets a connection. Then, where the
//!   kernel can (5.19), it is for all connections from now on: a multishot operation, which a busy
//!   server submits once, and which takes what there is in the backlog at a time.
//!
//! ```text
//!                an accept waits              none waits at the end of a round
//!        ┌────────────────────────▶ One ─────────────────┐
//!        │                          Many ────────────────┤
//!      Idle ◀──last completion───── Readable ────────────┼──▶ Cancelled
//!        ▲                                               │        │
//!        └───────────────── last completion ─────────────┴────────┘
//! ```
//!
//! The kernel takes a descriptor for a connection before it looks for one: out of descriptors,
//! accepting fails although no client is there, and a loop that accepts again would spin. After
//! such an error a poll operation (`Readable`) waits for a client; only if accepting fails again
//! then, the error is given to an accept that waits. A listener in non-blocking mode is treated
//! alike: there accepting fails with `EAGAIN` instead of waiting. No `accept4(2)` is tried before
//! the ring is asked: on a listener in blocking mode it would block, unless it were certain that no
//! other process accepts.
//!
//! An error goes to one accept that waited when it came, and otherwise to none: a later accept asks
//! anew. An operation in flight goes by the limit of descriptors that held when it was submitted.
//!
//! Of several accepts that wait for connections of one socket, in different rings, the kernel wakes one for
//! each connection (`poll_exclusive`), and if that is being cancelled, none: the connection then waits for the next one. Who
//! knows the others has to tell them when an operation ends that was cancelled: they [ask
//! again](Acceptor::ask_again).
//!
//! Two kinds of waiters. A future has a place in line; if it is dropped between its wake-up and its
//! next poll, it passes the wake-up on, and if it is kept and not polled in the round in which it was
//! woken, the next one is woken, too. A caller of `poll_accept` leaves only a waker, and may
//! never poll again: all such wakers are woken for each connection, beside the oldest future.

mod stop;
#[cfg(test)]
mod tests;

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use socket2::{Domain, Type};

use crate::panic::{self, Fenced, wake};
use crate::reactor::{
    AcceptMany, AcceptOne, PollOnce, Reactor, RoundEnd, Sink, SinkHandle, budget, executor_is_gone,
};
use crate::ring::Feature;
use crate::sys::socket::Socket;
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_waiting};

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
            when_cancelled: OnceCell::new(),
            state: RefCell::new(AcceptQueueState {
                accepted: VecDeque::new(),
                failed: None,
                futures: WaitQueue::new(),
                pollers: Vec::new(),
                pollers_told: false,
                accept: AcceptState::Idle,
                polls_first: false,
                claimed_in: None,
                one_by_one: false,
                looks_at_round_end: false,
                end: End::Open,
            }),
        });
        Acceptor { queue }
    }

    /// Has `tell` called whenever an operation has ended that was cancelled, also when this is dropped.
    /// To be called once.
    pub(super) fn when_cancelled(&self, tell: impl Fn() + 'static) {
        let is_first = self.queue.when_cancelled.set(Box::new(tell)).is_ok();
        debug_assert!(is_first);
    }

    /// The operation in flight may have been passed over: another takes its place, which looks at the
    /// backlog first.
    pub(super) fn ask_again(&self) {
        let mut state = self.queue.state.borrow_mut();
        if matches!(state.accept, AcceptState::One(_) | AcceptState::Many(_)) {
            state.cancel();
            self.queue.go_on(&mut state, false);
        }
    }

    /// From here on no more connections leave the backlog than accepts wait for.
    pub(super) fn accept_one_by_one(&self) {
        self.queue.state.borrow_mut().one_by_one = true;
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
        ready!(budget::poll_leave(cx));
        // Cloned and dropped with nothing borrowed: both are user code.
        let waker = cx.waker().clone();
        let mut state = self.queue.state.borrow_mut();
        // The caller may be another task, or the same one long after.
        let was_told = std::mem::take(&mut state.pollers_told);
        let gets_error = was_told && state.failed.as_ref().is_some_and(still_holds);
        if let Some(result) = self.queue.claim(&mut state, gets_error) {
            budget::spend();
            return Poll::Ready(result);
        }
        if !state.pollers.iter().any(|it| it.will_wake(&waker)) {
            state.pollers.push(waker);
        }
        self.queue.start(&mut state, false)
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        let ended: (_, _, Vec<_>) = {
            let mut state = self.queue.state.borrow_mut();
            state.cancel();
            (
                std::mem::replace(&mut state.end, End::Closed),
                std::mem::take(&mut state.accepted),
                state.pollers.drain(..).map(Fenced::new).collect(),
            )
        };
        // The kernel keeps listening until the cancellation is submitted.
        if let Some(reactor) = self.queue.reactor.upgrade() {
            reactor.cancel_now();
        }
        drop(ended);
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
        // A notified future that is refused stays notified, and keeps its place.
        ready!(budget::poll_leave(cx));
        let Accept { queue, place } = &mut *self;
        poll_waiting(cx, |waker| {
            let mut state = queue.state.borrow_mut();
            let is_notified = |place| state.futures.is_notified(place);
            let was_told = place.as_ref().is_some_and(is_notified);
            if let Some(result) = queue.claim(&mut state, was_told) {
                budget::spend();
                state.futures.finish(place, waker);
                queue.look_at_round_end(&mut state);
                return Poll::Ready(result);
            }
            if !state.futures.wait(place, waker, ()) {
                return Poll::Pending;
            }
            queue.start(&mut state, false)
        })
    }
}

impl Drop for Accept<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.borrow_mut();
        let left = state.futures.leave(&mut self.place);
        let mut next = None;
        match &left {
            None => return,
            Some(Removed::Waiting(_)) => {}
            Some(Removed::Notified(())) if state.accepted.is_empty() => state.failed = None,
            Some(Removed::Notified(())) => next = state.futures.notify_oldest(),
        }
        self.queue.look_at_round_end(&mut state);
        drop(state);
        panic::fenced(|| drop(left));
        next.into_iter().for_each(wake);
    }
}

struct AcceptQueue {
    this: Weak<AcceptQueue>,
    reactor: Weak<Reactor>,
    listener: RawFd,
    when_cancelled: OnceCell<Box<dyn Fn()>>,
    state: RefCell<AcceptQueueState>,
}

#[derive(Debug)]
struct AcceptQueueState {
    /// Completed and not claimed. What is put in flight is for accepts that wait; beyond these, no
    /// more comes in than the kernel has accepted in one round, which the size of the
    /// completion queue bounds.
    accepted: VecDeque<OwnedFd>,
    /// What accepting failed with last, if nothing has come in since: for a future that was woken
    /// then, or for a caller of `poll_accept`.
    failed: Option<io::Error>,
    futures: WaitQueue,
    /// The wakers of callers of `poll_accept`, each once; emptied at each completion.
    pollers: Vec<Waker>,
    /// They were woken for an error, and none has called since.
    pollers_told: bool,
    accept: AcceptState,
    /// Accepting failed for want of a descriptor, or because it would have had to wait: the next
    /// operation polls for a connection.
    polls_first: bool,
    /// The round in which a connection was last claimed, by its beginning.
    claimed_in: Option<Instant>,
    /// No operation is for more than one connection.
    one_by_one: bool,
    /// It will be seen at the end of the round whether an accept waits.
    looks_at_round_end: bool,
    end: End,
}

/// What is in flight for the listener.
#[derive(Debug, Default)]
enum AcceptState {
    #[default]
    Idle,
    /// A poll for a connection.
    Readable(SinkHandle),
    /// An accept of one connection.
    One(SinkHandle),
    /// A multishot accept.
    Many(SinkHandle),
    /// An operation that was cancelled; until its last completion, no other is submitted.
    Cancelled,
}

/// Whether connections are still accepted.
#[derive(Debug)]
enum End {
    Open,
    /// Connections are kept and no more are asked for. Woken when nothing is in flight.
    Stopping(Option<Waker>),
    Closed,
}

impl AcceptQueueState {
    fn has_waiting(&self) -> bool {
        self.futures.waiting() > 0 || !self.pollers.is_empty()
    }

    /// For how many connections that are not claimed there is another future.
    fn left_to_others(&self) -> usize {
        self.accepted.len().min(self.futures.waiting())
    }

    /// Cancels what is in flight.
    fn cancel(&mut self) {
        self.accept = match std::mem::take(&mut self.accept) {
            AcceptState::Readable(operation)
            | AcceptState::One(operation)
            | AcceptState::Many(operation) => match operation.cancel() {
                true => AcceptState::Cancelled,
                false => AcceptState::Idle,
            },
            accept @ (AcceptState::Idle | AcceptState::Cancelled) => accept,
        };
    }
}

impl AcceptQueue {
    /// A connection, if there is one; else the error, for a caller that `gets_error`.
    fn claim(&self, state: &mut AcceptQueueState, gets_error: bool) -> Option<io::Result<OwnedFd>> {
        let Some(connection) = state.accepted.pop_front() else {
            return state.failed.take_if(|_| gets_error).map(Err);
        };
        state.claimed_in = self.reactor.upgrade().map(|it| it.round_start());
        Some(Ok(connection))
    }

    /// Has something in flight for an accept that waits. A connection that `is_there` need not be
    /// waited for.
    fn start<T>(&self, state: &mut AcceptQueueState, is_there: bool) -> Poll<io::Result<T>> {
        let Some((this, reactor)) = self.this.upgrade().zip(self.reactor.upgrade()) else {
            return Poll::Ready(Err(executor_is_gone()));
        };
        if let (AcceptState::Idle, End::Open) = (&state.accept, &state.end) {
            state.accept = if state.polls_first && !is_there {
                let readable = PollOnce {
                    fd: self.listener,
                    events: libc::POLLIN,
                };
                AcceptState::Readable(reactor.submit_to(readable, Rc::new(Readable(this))))
            } else {
                accept_next(state, this, &reactor)
            };
        }
        Poll::Pending
    }

    /// Goes on if an accept still waits.
    fn go_on(&self, state: &mut AcceptQueueState, is_there: bool) {
        if state.has_waiting() {
            let started: Poll<io::Result<()>> = self.start(state, is_there);
            debug_assert!(
                started.is_pending(),
                "called by the reactor, which is there"
            );
        }
    }

    /// Has the operation cancelled at the end of the round, if no accept waits then; or futures that
    /// wait woken for connections that others were woken for and have left.
    fn look_at_round_end(&self, state: &mut AcceptQueueState) {
        let is_in_flight = !matches!(state.accept, AcceptState::Idle | AcceptState::Cancelled);
        let concerns = match state.has_waiting() {
            true => state.left_to_others() > 0,
            false => is_in_flight,
        };
        if state.looks_at_round_end || !concerns {
            return;
        }
        if let Some((this, reactor)) = self.this.upgrade().zip(self.reactor.upgrade()) {
            state.looks_at_round_end = true;
            reactor.call_at_round_end(this);
        }
    }

    /// Hands over a result, and goes on if more are wanted.
    fn deliver(&self, result: io::Result<OwnedFd>) {
        let mut state = self.state.borrow_mut();
        match result {
            // The listener is closed; or no accept has waited for the error, and the next one asks
            // anew.
            result
                if matches!(state.end, End::Closed)
                    || (result.is_err() && !state.has_waiting()) =>
            {
                drop(state);
                drop(result);
                return;
            }
            Ok(connection) => {
                state.accepted.push_back(connection);
                state.failed = None;
                state.polls_first = false;
            }
            Err(error) => {
                state.failed = Some(error);
                state.pollers_told = !state.pollers.is_empty();
            }
        }
        let oldest = state.futures.notify_oldest();
        let pollers = std::mem::take(&mut state.pollers);
        self.go_on(&mut state, false);
        self.look_at_round_end(&mut state);
        drop(state);
        oldest.into_iter().chain(pollers).for_each(wake);
    }

    /// The operation has completed, has failed, or was cancelled. Whether it had been cancelled.
    fn take_completed(&self) -> bool {
        let completed = std::mem::take(&mut self.state.borrow_mut().accept);
        matches!(completed, AcceptState::Cancelled)
    }

    /// Nothing may be in flight any more.
    fn tell_stopped(&self) {
        let mut state = self.state.borrow_mut();
        let AcceptQueueState { accept, end, .. } = &mut *state;
        if let (AcceptState::Idle, End::Stopping(waker)) = (accept, end) {
            let waker = waker.take();
            drop(state);
            waker.into_iter().for_each(wake);
        }
    }

    fn take(&self, accepted: io::Result<OwnedFd>) {
        let error = match accepted {
            Ok(connection) => return self.deliver(Ok(connection)),
            Err(error) => error,
        };
        let mut state = self.state.borrow_mut();
        match error.raw_os_error() {
            Some(libc::EINTR | libc::ECANCELED) => {}
            Some(libc::EAGAIN) => state.polls_first = true,
            // There need be no client.
            _ if is_shortage(&error) && !state.polls_first => state.polls_first = true,
            _ => {
                drop(state);
                return self.deliver(Err(error));
            }
        }
        self.go_on(&mut state, false);
    }
}

/// Has one connection accepted, or all that come, if accepts come back for more.
fn accept_next(
    state: &AcceptQueueState,
    queue: Rc<AcceptQueue>,
    reactor: &Rc<Reactor>,
) -> AcceptState {
    let listener = queue.listener;
    let come_back = !state.accepted.is_empty() || state.claimed_in == Some(reactor.round_start());
    if come_back && !state.one_by_one && reactor.has(Feature::AcceptMulti) {
        AcceptState::Many(reactor.submit_to(AcceptMany { listener }, queue))
    } else {
        AcceptState::One(reactor.submit_to(AcceptOne { listener }, queue))
    }
}

/// Whether accepting failed for want of a descriptor, of the process or of the system.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Whether accepting would fail again, as far as can be told.
fn still_holds(error: &io::Error) -> bool {
    !is_shortage(error)
        || Socket::new(Domain::UNIX, Type::STREAM, None).is_err_and(|error| is_shortage(&error))
}

/// Takes the results of [`AcceptOne`] and [`AcceptMany`].
impl Sink for AcceptQueue {
    type Item = io::Result<OwnedFd>;

    fn complete(&self, accepted: io::Result<OwnedFd>, has_more: bool) {
        let was_cancelled = !has_more && self.take_completed();
        self.take(accepted);
        self.tell_stopped();
        if was_cancelled && let Some(tell) = self.when_cancelled.get() {
            tell();
        }
    }
}

impl fmt::Debug for AcceptQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptQueue")
            .field("listener", &self.listener)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Takes the result of the [`PollOnce`] that waits for a connection.
struct Readable(Rc<AcceptQueue>);

impl Sink for Readable {
    type Item = io::Result<u32>;

    fn complete(&self, ready: io::Result<u32>, _has_more: bool) {
        let queue = &self.0;
        queue.take_completed();
        match ready.map_err(|error| error.raw_os_error()) {
            Ok(_) => queue.go_on(&mut queue.state.borrow_mut(), true),
            // Nothing is known then: it is asked anew.
            Err(Some(libc::EINTR | libc::ECANCELED | libc::EAGAIN) | None) => {
                queue.go_on(&mut queue.state.borrow_mut(), false);
            }
            Err(Some(errno)) => queue.deliver(Err(io::Error::from_raw_os_error(errno))),
        }
        queue.tell_stopped();
    }
}

impl RoundEnd for AcceptQueue {
    fn round_ended(&self) {
        let mut state = self.state.borrow_mut();
        state.looks_at_round_end = false;
        if !state.has_waiting() {
            state.cancel();
        }
        let others: Vec<_> = (0..state.left_to_others())
            .filter_map(|_| state.futures.notify_oldest())
            .collect();
        self.look_at_round_end(&mut state);
        drop(state);
        others.into_iter().for_each(wake);
    }
}
