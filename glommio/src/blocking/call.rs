//! One call: from the future that makes it to its result.

use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::{any, io, mem};

use atomic_waker::AtomicWaker;

use super::pool::{Job, Pool, Refused};
use crate::noted::{Awaited, waits_for};
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
    Refused(Job, Option<u64>, Arc<Slot<F, R>>),
    Running(Arc<Slot<F, R>>),
    Done,
}

/// What the caller and the pool share of a call: first what is to be called, then what came of it.
struct Slot<F, R> {
    progress: Mutex<Progress<F, R>>,
    waker: AtomicWaker,
}

enum Progress<F, R> {
    /// Taken out once: by a thread of the pool to call it, or by a caller that gives up to drop it, so that
    /// nothing that it holds waits for its turn.
    Waiting(F),
    /// Being called, or over and the result taken.
    Begun,
    Value(R),
    Panic(Payload),
    /// Dropped before its turn.
    Discarded,
}

/// What comes of a call that another future hands over. See
/// [`BlockingPool::call_apart`](super::BlockingPool::call_apart).
pub(crate) struct SentCall<F, R>(Arc<Slot<F, R>>);

impl<F, R> BlockingCall<F, R> {
    pub(super) fn new(pool: Rc<Pool>, f: F, runs_if_dropped: bool) -> Self {
        BlockingCall {
            pool,
            stage: Stage::Ready(f),
            runs_if_dropped,
        }
    }
}

impl<F, R> BlockingCall<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    pub(super) fn new_apart(pool: Rc<Pool>, f: F) -> (Self, SentCall<F, R>) {
        let slot = Slot::new(f);
        let call = BlockingCall {
            pool,
            stage: Stage::Refused(job_of(Arc::clone(&slot)), None, Arc::clone(&slot)),
            runs_if_dropped: true,
        };
        (call, SentCall(slot))
    }

    /// Resolves when the pool has the call, or cannot take it: then it has been dropped.
    pub(crate) async fn hand_over(mut self) {
        drop(poll_fn(|cx| self.poll_hand_over(cx)).await);
    }

    fn poll_hand_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Arc<Slot<F, R>>>> {
        let (job, mut ticket, slot) = match mem::replace(&mut self.stage, Stage::Done) {
            Stage::Ready(f) => {
                let slot = Slot::new(f);
                (job_of(Arc::clone(&slot)), None, slot)
            }
            Stage::Refused(job, ticket, slot) => (job, ticket, slot),
            Stage::Running(slot) => return Poll::Ready(Ok(slot)),
            Stage::Done => panic!("a blocking call is not polled after its end"),
        };
        let job = (job, any::type_name::<F>());
        match self.pool.submit(job, &mut ticket, cx.waker().clone()) {
            Ok(()) => Poll::Ready(Ok(slot)),
            Err(Refused::Full(job, _replaced)) => {
                self.stage = Stage::Refused(job, ticket, slot);
                waits_for(Poll::Pending, || Awaited::BlockingCall)
            }
            Err(Refused::Closed) => Poll::Ready(Err(pool_is_closed())),
            Err(Refused::NoThread(error)) => Poll::Ready(Err(error)),
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
        let slot = ready!(this.poll_hand_over(cx))?;
        match slot.poll_result(cx) {
            Poll::Ready(Progress::Value(value)) => Poll::Ready(Ok(value)),
            Poll::Ready(Progress::Panic(payload)) => resume_unwind(payload),
            Poll::Ready(_) => Poll::Ready(Err(pool_is_closed())),
            Poll::Pending => {
                this.stage = Stage::Running(slot);
                Poll::Pending
            }
        }
    }
}

impl<F, R> Future for SentCall<F, R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        match ready!(self.0.poll_result(cx)) {
            Progress::Value(value) => Poll::Ready(value),
            Progress::Panic(payload) => resume_unwind(payload),
            _ => panic!(
                "a blocking call cannot be made: its executor was dropped before it began, or has no thread for it"
            ),
        }
    }
}

fn pool_is_closed() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotConnected,
        "the executor was dropped before the call could be made",
    )
}

/// A call that waits for room gives up its ticket, and the place that may be kept for it. One that
/// waits for a thread is left out, unless it is to run all the same.
impl<F, R> Drop for BlockingCall<F, R> {
    fn drop(&mut self) {
        let ticket = match &self.stage {
            Stage::Refused(_, Some(ticket), _) => ticket,
            Stage::Running(slot) if !self.runs_if_dropped => {
                let left_out = slot.take_call();
                return panic::fenced(|| drop(left_out));
            }
            _ => return,
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

fn job_of<F, R>(slot: Arc<Slot<F, R>>) -> Job
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let answer = Answer(slot);
    Box::new(move || {
        if let Some(f) = answer.0.take_call() {
            let result = match panic::catch(f) {
                Ok(value) => Progress::Value(value),
                Err(payload) => Progress::Panic(payload),
            };
            *answer.0.lock() = result;
        }
    })
}

/// The job's end of a slot. However the job ends, the caller hears of it.
struct Answer<F, R>(Arc<Slot<F, R>>);

impl<F, R> Drop for Answer<F, R> {
    fn drop(&mut self) {
        let mut progress = self.0.lock();
        let discarded = match *progress {
            Progress::Waiting(_) | Progress::Begun => {
                Some(mem::replace(&mut *progress, Progress::Discarded))
            }
            _ => None,
        };
        drop(progress);
        // Also if dropping what was to be called panics.
        scopeguard::defer! {
            if let Some(waker) = self.0.waker.take() {
                wake(waker);
            }
        }
        panic::fenced(|| drop(discarded));
    }
}

impl<F, R> Slot<F, R> {
    fn new(f: F) -> Arc<Self> {
        Arc::new(Slot {
            progress: Mutex::new(Progress::Waiting(f)),
            waker: AtomicWaker::new(),
        })
    }

    /// What is to be called, if it was not taken yet.
    fn take_call(&self) -> Option<F> {
        let mut progress = self.lock();
        match mem::replace(&mut *progress, Progress::Begun) {
            Progress::Waiting(f) => Some(f),
            other => {
                *progress = other;
                None
            }
        }
    }

    /// Waits for what comes of the call. It is there once.
    fn poll_result(&self, cx: &Context<'_>) -> Poll<Progress<F, R>> {
        self.waker.register(cx.waker());
        let mut progress = self.lock();
        match *progress {
            Progress::Waiting(_) | Progress::Begun => {
                waits_for(Poll::Pending, || Awaited::BlockingCall)
            }
            _ => Poll::Ready(mem::replace(&mut *progress, Progress::Begun)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress<F, R>> {
        // No user code runs under the lock.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome was not taken. On which thread it is dropped is up to chance, so it harms neither.
impl<F, R> Drop for Slot<F, R> {
    fn drop(&mut self) {
        let outcome = mem::replace(&mut *self.lock(), Progress::Begun);
        panic::contain(
            "dropping the unclaimed outcome of a blocking call panicked",
            || drop(outcome),
        );
    }
}
