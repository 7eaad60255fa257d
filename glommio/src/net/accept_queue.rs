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
//!   the operation is cancelled before the kernel gets to act on it.
//! - An operation is for one connection: it leaves the queue of those that wait for the socket with the wake
//!   that it takes, and comes back behind the others. A multishot accept stays at the head and takes all
//!   wakes, also while its thread computes: others that share the socket would hear of no client.
//!
//! ```text
//!                an accept waits              none waits at the end of a round
//!        ┌────────────────────────▶ One ─────────────────┐
//!      Idle ◀─────completion─────── Readable ────────────┼──▶ Cancelled
//!        ▲                                               │        │
//!        └──────────────────── completion ───────────────┴────────┘
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
//! Of several accepts that wait for connections of one socket, in different rings and processes, the kernel wakes one for
//! each connection (`poll_exclusive`). If that is being cancelled, or does not come back for a connection whose own wake
//! went to a thread that computes, it wakes none: the connection waits for the next one. So an accept that was cancelled while the
//! backlog is readable [wakes all others](AcceptQueue::pass_on), and so does a listener with [`Siblings`] that has
//! stopped asking.
//!
//! Two kinds of waiters. A future has a place in line; if it is dropped between its wake-up and its
//! next poll, it passes the wake-up on, and if it is kept and not polled in the round in which it was
//! woken, the next one is woken, too. A caller of `poll_accept` leaves only a waker, and may
//! never poll again: all such wakers are woken for each connection, beside the oldest future. One of
//! `poll_client`, which takes no connection, does the same; if only such callers wait, `Readable` is in flight.

mod stop;
#[cfg(test)]
mod tests;

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};

use socket2::{Domain, Type};

use crate::noted::{Awaited, waits_for};
use crate::panic::{self, Fenced, wake};
use crate::reactor::{
    AcceptOne, PollOnce, Reactor, RoundEnd, Sink, SinkHandle, budget, executor_is_gone,
};
use crate::sys::socket::{Socket, is_readable, wake_accepts};
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_waiting};

/// The accepting side of a listener. To be dropped before its descriptor.
#[derive(Debug)]
pub(super) struct Acceptor {
    queue: Rc<AcceptQueue>,
}

/// Other listeners of the same socket.
pub(super) trait Siblings {
    /// Takes what this one has accepted and nothing here will claim.
    fn adopt(&self, connection: OwnedFd);
}

impl Acceptor {
    pub(super) fn new(reactor: Weak<Reactor>, listener: RawFd) -> Self {
        let queue = Rc::new_cyclic(|this| AcceptQueue {
            this: this.clone(),
            reactor,
            listener,
            siblings: OnceCell::new(),
            state: RefCell::new(AcceptQueueState {
                accepted: VecDeque::new(),
                failed: None,
                futures: WaitQueue::new(),
                pollers: Vec::new(),
                pollers_told: false,
                lookers: Vec::new(),
                accept: AcceptState::Idle,
                polls_first: false,
                looks_at_round_end: false,
                end: End::Open,
            }),
        });
        Acceptor { queue }
    }

    /// To be called once. They are called with nothing borrowed, also after this was dropped.
    pub(super) fn share_with(&self, siblings: impl Siblings + 'static) {
        let is_first = self.queue.siblings.set(Box::new(siblings)).is_ok();
        debug_assert!(is_first);
    }

    /// The next connection, or what `accept(2)` failed with.
    pub(super) fn accept(&self) -> Accept<'_> {
        Accept {
            queue: &self.queue,
            place: None,
        }
    }

    /// As [`accept`](Self::accept), for a task that keeps no future.
    pub(super) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<OwnedFd>> {
        ready!(budget::poll_leave(cx));
        // Cloned and dropped with nothing borrowed: both are user code.
        let waker = cx.waker().clone();
        let mut state = self.queue.state.borrow_mut();
        // The caller may be another task, or the same one long after.
        let was_told = std::mem::take(&mut state.pollers_told);
        let gets_error = was_told && state.failed.as_ref().is_some_and(still_holds);
        if let Some(result) = state.claim(gets_error) {
            budget::spend();
            return Poll::Ready(result);
        }
        if !state.pollers.iter().any(|it| it.will_wake(&waker)) {
            state.pollers.push(waker);
        }
        self.queue.start(&mut state)
    }

    pub(super) fn has_client(&self) -> bool {
        !self.queue.state.borrow().accepted.is_empty() || is_readable(self.queue.listener)
    }

    /// Waits until a client is there, and leaves it there.
    pub(super) fn poll_client(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_client() {
            return Poll::Ready(Ok(()));
        }
        // Cloned and dropped with nothing borrowed: both are user code.
        let waker = cx.waker().clone();
        let mut state = self.queue.state.borrow_mut();
        if !state.lookers.iter().any(|it| it.will_wake(&waker)) {
            state.lookers.push(waker);
        }
        self.queue.start(&mut state)
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        let mut state = self.queue.state.borrow_mut();
        state.cancel();
        let was_cancelled = matches!(state.accept, AcceptState::Cancelled);
        let end = std::mem::replace(&mut state.end, End::Closed);
        let accepted = std::mem::take(&mut state.accepted);
        let mut wakers = std::mem::take(&mut state.pollers);
        wakers.append(&mut state.lookers);
        let wakers: Vec<_> = wakers.into_iter().map(Fenced::new).collect();
        drop(state);
        // The kernel keeps listening until the cancellation is submitted.
        if let Some(reactor) = self.queue.reactor.upgrade() {
            reactor.cancel_now();
        }
        // Its completion, and the end of the round, come when the descriptor is closed.
        if was_cancelled || self.queue.siblings.get().is_some() {
            self.queue.pass_on();
        }
        accepted.into_iter().for_each(|it| self.queue.give_up(it));
        drop((end, wakers));
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
            if let Some(result) = state.claim(was_told) {
                budget::spend();
                state.futures.finish(place, waker);
                queue.look_at_round_end(&mut state);
                return Poll::Ready(result);
            }
            if !state.futures.wait(place, waker, ()) {
                return Poll::Pending;
            }
            queue.start(&mut state)
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
    siblings: OnceCell<Box<dyn Siblings>>,
    state: RefCell<AcceptQueueState>,
}

#[derive(Debug)]
struct AcceptQueueState {
    /// Completed and not claimed: no more than accepts have waited at a time.
    accepted: VecDeque<OwnedFd>,
    /// What accepting failed with last, if nothing has come in since: for a future that was woken
    /// then, or for a caller of `poll_accept`.
    failed: Option<io::Error>,
    futures: WaitQueue,
    /// The wakers of callers of `poll_accept`, each once; emptied at each completion.
    pollers: Vec<Waker>,
    /// They were woken for an error, and none has called since.
    pollers_told: bool,
    /// The wakers of callers of `poll_client`, alike.
    lookers: Vec<Waker>,
    accept: AcceptState,
    /// Accepting failed for want of a descriptor, or because it would have had to wait: the next
    /// operation polls for a connection.
    polls_first: bool,
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
    /// An operation that was cancelled; until its completion, no other is submitted.
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

    /// Whether what is in flight is for callers that are gone.
    fn is_unwanted(&self) -> bool {
        let is_wanted = match self.accept {
            AcceptState::Idle | AcceptState::Cancelled => true,
            AcceptState::Readable(_) => self.has_waiting() || !self.lookers.is_empty(),
            AcceptState::One(_) => self.has_waiting(),
        };
        !is_wanted
    }

    /// For how many connections that are not claimed there is another future.
    fn left_to_others(&self) -> usize {
        self.accepted.len().min(self.futures.waiting())
    }

    fn concerns_round_end(&self) -> bool {
        self.is_unwanted() || self.left_to_others() > 0
    }

    /// A connection, if there is one; else the error, for a caller that `gets_error`.
    fn claim(&mut self, gets_error: bool) -> Option<io::Result<OwnedFd>> {
        match self.accepted.pop_front() {
            Some(connection) => Some(Ok(connection)),
            None => self.failed.take_if(|_| gets_error).map(Err),
        }
    }

    /// Cancels what is in flight.
    fn cancel(&mut self) {
        self.accept = match std::mem::take(&mut self.accept) {
            AcceptState::Readable(operation) | AcceptState::One(operation) => {
                match operation.cancel() {
                    true => AcceptState::Cancelled,
                    false => AcceptState::Idle,
                }
            }
            accept @ (AcceptState::Idle | AcceptState::Cancelled) => accept,
        };
    }
}

impl AcceptQueue {
    /// Has something in flight for a caller that waits.
    fn start<T>(&self, state: &mut AcceptQueueState) -> Poll<io::Result<T>> {
        let Some((this, reactor)) = self.this.upgrade().zip(self.reactor.upgrade()) else {
            return Poll::Ready(Err(executor_is_gone()));
        };
        if let (AcceptState::Idle, End::Open) = (&state.accept, &state.end) {
            if state.has_waiting() && (!state.polls_first || is_readable(self.listener)) {
                self.accept_one(state);
            } else {
                let readable = PollOnce {
                    fd: self.listener,
                    events: libc::POLLIN,
                };
                let readable = reactor.submit_to(readable, Rc::new(Readable(this)));
                state.accept = AcceptState::Readable(readable);
            }
        }
        waits_for(Poll::Pending, || Awaited::Connection(self.listener))
    }

    fn accept_one(&self, state: &mut AcceptQueueState) {
        if let Some((this, reactor)) = self.this.upgrade().zip(self.reactor.upgrade()) {
            let listener = self.listener;
            state.accept = AcceptState::One(reactor.submit_to(AcceptOne { listener }, this));
        }
    }

    /// Goes on if a caller still waits. Called by the reactor, which is there.
    fn go_on(&self, state: &mut AcceptQueueState) {
        if state.has_waiting() || !state.lookers.is_empty() {
            let _pending: Poll<io::Result<()>> = self.start(state);
        }
    }

    /// Has the operation cancelled at the end of the round, if no accept waits then, and what is there left to
    /// siblings; or futures that wait woken for connections that others were woken for and have left.
    fn look_at_round_end(&self, state: &mut AcceptQueueState) {
        if self.siblings.get().is_some() || state.concerns_round_end() {
            self.call_at_round_end(state);
        }
    }

    fn call_at_round_end(&self, state: &mut AcceptQueueState) {
        if !state.looks_at_round_end
            && let Some((this, reactor)) = self.this.upgrade().zip(self.reactor.upgrade())
        {
            state.looks_at_round_end = true;
            reactor.call_at_round_end(this);
        }
    }

    /// Hands over a result, and goes on if more are wanted.
    fn deliver(&self, result: io::Result<OwnedFd>) {
        let mut state = self.state.borrow_mut();
        match result {
            Ok(connection) if matches!(state.end, End::Closed) => {
                drop(state);
                return self.give_up(connection);
            }
            // No accept has waited for the error, and the next one asks anew.
            Err(_) if !state.has_waiting() => return,
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
        let lookers = std::mem::take(&mut state.lookers);
        self.go_on(&mut state);
        self.look_at_round_end(&mut state);
        drop(state);
        let woken = oldest.into_iter().chain(pollers).chain(lookers);
        woken.for_each(wake);
    }

    /// The kernel may have told this listener alone of a connection that it does not take: all accepts of the
    /// socket look for it, also those of other processes.
    fn pass_on(&self) {
        if is_readable(self.listener) {
            wake_accepts(self.listener);
        }
    }

    /// None here claims it.
    fn give_up(&self, connection: OwnedFd) {
        match self.siblings.get() {
            Some(siblings) => siblings.adopt(connection),
            None => drop(connection),
        }
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
        self.go_on(&mut state);
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

/// Takes the result of [`AcceptOne`].
impl Sink for AcceptQueue {
    type Item = io::Result<OwnedFd>;

    fn complete(&self, accepted: io::Result<OwnedFd>, _has_more: bool) {
        let mut state = self.state.borrow_mut();
        state.accept = AcceptState::Idle;
        let errno = accepted.as_ref().err().and_then(io::Error::raw_os_error);
        // A descriptor that is closed may be another's by now.
        let is_open = !matches!(state.end, End::Closed);
        drop(state);
        if errno == Some(libc::ECANCELED) && is_open {
            self.pass_on();
        }
        self.take(accepted);
        self.tell_stopped();
    }
}

impl_debug! { AcceptQueue, it: listener, state; .. }

/// Takes the result of the [`PollOnce`] that waits for a connection.
struct Readable(Rc<AcceptQueue>);

impl Sink for Readable {
    type Item = io::Result<u32>;

    fn complete(&self, ready: io::Result<u32>, _has_more: bool) {
        let queue = &self.0;
        let mut state = queue.state.borrow_mut();
        state.accept = AcceptState::Idle;
        let error = ready.err();
        match error.as_ref().and_then(io::Error::raw_os_error) {
            // Without an error, a client is there; with these, nothing is known: it is asked anew.
            None | Some(libc::EINTR | libc::ECANCELED | libc::EAGAIN) => {
                let lookers = error.is_none().then(|| std::mem::take(&mut state.lookers));
                queue.go_on(&mut state);
                drop(state);
                lookers.into_iter().flatten().for_each(wake);
            }
            Some(errno) => {
                drop(state);
                queue.deliver(Err(io::Error::from_raw_os_error(errno)));
            }
        }
        queue.tell_stopped();
    }
}

impl RoundEnd for AcceptQueue {
    fn round_ended(&self) {
        let mut state = self.state.borrow_mut();
        state.looks_at_round_end = false;
        if state.is_unwanted() {
            state.cancel();
            self.go_on(&mut state);
        }
        let siblings = self.siblings.get().filter(|_| !state.has_waiting());
        let orphans = siblings.map(|_| std::mem::take(&mut state.accepted));
        // One that is cancelled does so when it has ended.
        let passes_on = siblings.is_some()
            && !matches!(state.accept, AcceptState::Cancelled)
            && !matches!(state.end, End::Closed);
        let others: Vec<_> = (0..state.left_to_others())
            .filter_map(|_| state.futures.notify_oldest())
            .collect();
        if state.concerns_round_end() {
            self.call_at_round_end(&mut state);
        }
        drop(state);
        others.into_iter().for_each(wake);
        orphans
            .into_iter()
            .flatten()
            .for_each(|it| self.give_up(it));
        if passes_on {
            self.pass_on();
        }
    }
}
