//! One call: from the future that makes it to its result.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::{io, mem};

use atomic_waker::AtomicWaker;

use super::pool::{Job, Pool, Refused};
use crate::panic::{self, Payload, wake};

/// A call on the blocking pool. See [`BlockingPool::call`](super::BlockingPool::call).
pub(crate) struct BlockingCall<F, R> {
    pool: Rc<Pool>,
    stage: Stage<F, R>,
    /// Also if nothing waits for the result any more.
    runs_if_dropped: bool,
}

enum Stage<F, R> {
    Ready(F),
    /// Made into a job, which the pool had no room for yet: then it holds a ticket.
    Refused(Job, Option<u64>, Arc<Slot<R>>),
    Running(Arc<Slot<R>>),
    Done,
}

struct Slot<R> {
    outcome: Mutex<Outcome<R>>,
    waker: AtomicWaker,
}

enum Outcome<R> {
    /// Not known yet, or taken.
    None,
    Value(R),
    Panic(Payload),
    /// The job was dropped before its turn.
    Discarded,
}

impl<F, R> BlockingCall<F, R> {
    pub(super) fn new(pool: Rc<Pool>, f: F, runs_if_dropped: bool) -> Self {
        BlockingCall {
            pool,
            stage: Stage::Ready(f),
            runs_if_dropped,
        }
    }
}

// Nothing in it is ever pinned: the closure is moved out at the first poll.
impl<F, R> Unpin for BlockingCall<F, R> {}

impl<F, R> Future for BlockingCall<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = io::Result<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match mem::replace(&mut this.stage, Stage::Done) {
                Stage::Ready(f) => {
                    let slot = Arc::new(Slot {
                        outcome: Mutex::new(Outcome::None),
                        waker: AtomicWaker::new(),
                    });
                    let job = job(f, Arc::clone(&slot), this.runs_if_dropped);
                    this.stage = Stage::Refused(job, None, slot);
                }
                Stage::Refused(job, mut ticket, slot) => {
                    match this.pool.submit(job, &mut ticket, cx.waker().clone()) {
                        Ok(()) => this.stage = Stage::Running(slot),
                        Err(Refused::Full(job, _replaced)) => {
                            this.stage = Stage::Refused(job, ticket, slot);
                            return Poll::Pending;
                        }
                        Err(Refused::Closed) => return Poll::Ready(Err(pool_is_closed())),
                        Err(Refused::NoThread(error)) => return Poll::Ready(Err(error)),
                    }
                }
                Stage::Running(slot) => {
                    slot.waker.register(cx.waker());
                    let outcome = mem::replace(&mut *slot.lock(), Outcome::None);
                    return match outcome {
                        Outcome::Value(value) => Poll::Ready(Ok(value)),
                        Outcome::Panic(payload) => resume_unwind(payload),
                        Outcome::Discarded => Poll::Ready(Err(pool_is_closed())),
                        Outcome::None => {
                            this.stage = Stage::Running(slot);
                            Poll::Pending
                        }
                    };
                }
                Stage::Done => panic!("a blocking call is not polled after its end"),
            }
        }
    }
}

fn pool_is_closed() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotConnected,
        "the executor was dropped before the call could be made",
    )
}

/// A call that waits for room gives up its ticket, and the place that may be kept for it.
impl<F, R> Drop for BlockingCall<F, R> {
    fn drop(&mut self) {
        let Stage::Refused(_, Some(ticket), _) = &self.stage else {
            return;
        };
        let mut state = self.pool.shared.lock();
        if state.is_closed {
            return;
        }
        let waker = state.waiting.remove(ticket);
        let next = if waker.is_none() {
            state.offered -= 1;
            state.offer_place()
        } else {
            None
        };
        drop(state);
        panic::fenced(|| drop(waker));
        if let Some(next) = next {
            wake(next);
        }
    }
}

fn job<F, R>(f: F, slot: Arc<Slot<R>>, runs_if_dropped: bool) -> Job
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let answer = Answer(slot);
    Box::new(move || {
        // The caller holds the other reference.
        if runs_if_dropped || Arc::strong_count(&answer.0) > 1 {
            let outcome = match panic::catch(f) {
                Ok(value) => Outcome::Value(value),
                Err(payload) => Outcome::Panic(payload),
            };
            *answer.0.lock() = outcome;
        }
    })
}

/// The job's end of a slot. However the job ends, the caller hears of it.
struct Answer<R>(Arc<Slot<R>>);

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        let mut outcome = self.0.lock();
        if let Outcome::None = *outcome {
            *outcome = Outcome::Discarded;
        }
        drop(outcome);
        if let Some(waker) = self.0.waker.take() {
            wake(waker);
        }
    }
}

impl<R> Slot<R> {
    fn lock(&self) -> MutexGuard<'_, Outcome<R>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome was not taken. On which thread it is dropped is up to chance, so it harms neither.
impl<R> Drop for Slot<R> {
    fn drop(&mut self) {
        let outcome = mem::replace(&mut *self.lock(), Outcome::None);
        panic::contain(
            "dropping the unclaimed outcome of a blocking call panicked",
            || drop(outcome),
        );
    }
}
