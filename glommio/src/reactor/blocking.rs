//! Threads for calls that block, few and started at the first request.
//!
//! ```text
//!   BlockingCall ──first poll──▶ queue ──▶ pool thread: f()
//!        ▲                                    │
//!        └──── slot, task woken ◀─────────────┘
//! ```
//!
//! A result travels in a slot of its own, and the task is woken through its ordinary waker, so the
//! reactor needs no special path: a foreign wake ends a sleep and raises `need_preempt`. A panic in
//! the closure is carried to where the call is awaited.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use atomic_waker::AtomicWaker;

use super::wake;
use crate::panic::{self, FirstPanic, Payload};
use crate::sys::affinity::AffinityMask;

type Job = Box<dyn FnOnce() + Send>;

/// Calls handed over and not finished; further callers wait their turn, first come first served.
pub(crate) const MAX_BLOCKING_CALLS: usize = 4096;

/// Where and under what name the threads of a pool run.
pub(crate) struct PoolSettings {
    pub(crate) thread_name: String,
    /// For each thread its mask; one without stays with that of the executor's thread.
    pub(crate) affinity: Vec<Option<AffinityMask>>,
}

/// The blocking threads of one executor.
pub(crate) struct BlockingPool {
    shared: Arc<Shared>,
}

struct Shared {
    settings: PoolSettings,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs queued or running.
    outstanding: usize,
    threads: usize,
    idle_threads: usize,
    /// Callers that found the pool full, by the tickets that they drew.
    waiting: BTreeMap<u64, Waker>,
    last_ticket: u64,
    /// Places kept free for callers that were woken out of `waiting` and have not come yet.
    offered: usize,
    is_closed: bool,
}

impl BlockingPool {
    pub(crate) fn new(settings: PoolSettings) -> Self {
        BlockingPool {
            shared: Arc::new(Shared {
                settings,
                state: Mutex::default(),
                work: Condvar::new(),
            }),
        }
    }

    /// A call of `f` on one of the threads, handed over when the future is first polled. It fails only if
    /// the system has no thread to give.
    pub(crate) fn call<F, R>(&self, f: F) -> BlockingCall<F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        BlockingCall {
            pool: Arc::clone(&self.shared),
            stage: Stage::Ready(f),
            runs_unheard: true,
        }
    }

    /// As [`call`](Self::call), of an `f` without effects: it is left out if the call is dropped before a
    /// thread comes to it. Those who give up and try again would fill the queue otherwise.
    pub(crate) fn ask<F, R>(&self, f: F) -> BlockingCall<F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let mut call = self.call(f);
        call.runs_unheard = false;
        call
    }

    /// Discards what has not started; running calls end by themselves and deliver into nothing. Keeps
    /// the first panic of a destructor in `panics`.
    pub(super) fn close(&self, panics: &mut FirstPanic) {
        let (jobs, waiting) = {
            let mut state = self.shared.lock();
            state.is_closed = true;
            (
                std::mem::take(&mut state.jobs),
                std::mem::take(&mut state.waiting),
            )
        };
        self.shared.work.notify_all();
        for job in jobs {
            panics.catch(|| drop(job));
        }
        for (_, waker) in waiting {
            panics.catch(|| drop(waker));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No user code runs under the lock, so a poisoned state is a consistent one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues `job`, or gives it back with the caller's waker remembered under its ticket. With the job
    /// comes the waker that was remembered before, to be dropped when nothing is locked.
    fn submit(
        self: &Arc<Self>,
        job: Job,
        ticket: &mut Option<u64>,
        waker: Waker,
    ) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Refused::Closed);
        }
        if ticket.is_some_and(|ticket| !state.waiting.contains_key(&ticket)) {
            state.offered -= 1;
            *ticket = None;
        } else if !state.has_place() {
            let ticket = *ticket.get_or_insert_with(|| state.draw_ticket());
            return Err(Refused::Full(job, state.waiting.insert(ticket, waker)));
        }
        // A thread that was notified counts as idle until it has its job, so idle threads are set
        // against the jobs that wait for them.
        if state.idle_threads <= state.jobs.len() && state.threads < self.settings.affinity.len() {
            match self.start_thread(state.threads) {
                Ok(()) => state.threads += 1,
                // One thread serves them all if need be.
                Err(error) if state.threads > 0 => {
                    tracing::warn!("starting one more blocking thread failed: {error}");
                }
                Err(error) => return Err(Refused::NoThread(error)),
            }
        }
        state.outstanding += 1;
        state.jobs.push_back(job);
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    fn start_thread(self: &Arc<Self>, index: usize) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        std::thread::Builder::new()
            .name(format!("{}-blocking-{index}", self.settings.thread_name))
            .spawn(move || {
                let affinity = shared.settings.affinity[index];
                if let Some(Err(error)) = affinity.map(|mask| mask.apply()) {
                    tracing::warn!("binding a blocking thread failed: {error}");
                }
                shared.work();
            })
            .map(drop)
    }

    /// The life of a pool thread.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // The closure's own panic is caught inside; this is for destructors of its result.
                panic::contain(
                    "dropping the unclaimed result of a blocking call panicked",
                    job,
                );
                state = self.lock();
                state.outstanding -= 1;
                if let Some(next) = state.offer_place() {
                    drop(state);
                    wake(next);
                    state = self.lock();
                }
            } else if state.is_closed {
                return;
            } else {
                state.idle_threads += 1;
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.idle_threads -= 1;
            }
        }
    }
}

impl State {
    fn has_place(&self) -> bool {
        self.outstanding + self.offered < MAX_BLOCKING_CALLS
    }

    fn draw_ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// Keeps a free place for the caller that has waited longest, who is to be woken.
    fn offer_place(&mut self) -> Option<Waker> {
        if !self.has_place() {
            return None;
        }
        let (_, waker) = self.waiting.pop_first()?;
        self.offered += 1;
        Some(waker)
    }
}

enum Refused {
    Closed,
    Full(Job, Option<Waker>),
    NoThread(std::io::Error),
}

/// A call on the blocking pool. See [`BlockingPool::call`].
pub(crate) struct BlockingCall<F, R> {
    pool: Arc<Shared>,
    stage: Stage<F, R>,
    /// Also if nobody waits for the result any more.
    runs_unheard: bool,
}

enum Stage<F, R> {
    Ready(F),
    /// Made into a job, which the pool had no room for yet: then it holds a ticket.
    Refused(Job, Option<u64>, Arc<Slot<R>>),
    Running(Arc<Slot<R>>),
    Done,
}

struct Slot<R> {
    outcome: Mutex<Option<Result<R, Payload>>>,
    waker: AtomicWaker,
}

// Nothing in it is ever pinned: the closure is moved out at the first poll.
impl<F, R> Unpin for BlockingCall<F, R> {}

impl<F, R> Future for BlockingCall<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = std::io::Result<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.stage, Stage::Done) {
                Stage::Ready(f) => {
                    let slot = Arc::new(Slot {
                        outcome: Mutex::new(None),
                        waker: AtomicWaker::new(),
                    });
                    let job = job(f, Arc::clone(&slot), this.runs_unheard);
                    this.stage = Stage::Refused(job, None, slot);
                }
                Stage::Refused(job, mut ticket, slot) => {
                    match this.pool.submit(job, &mut ticket, cx.waker().clone()) {
                        Ok(()) => this.stage = Stage::Running(slot),
                        Err(Refused::Full(job, _replaced)) => {
                            this.stage = Stage::Refused(job, ticket, slot);
                            return Poll::Pending;
                        }
                        // The executor is being dropped: nobody will see an answer.
                        Err(Refused::Closed) => return Poll::Pending,
                        Err(Refused::NoThread(error)) => return Poll::Ready(Err(error)),
                    }
                }
                Stage::Running(slot) => {
                    slot.waker.register(cx.waker());
                    let outcome = slot.lock().take();
                    return match outcome {
                        Some(Ok(value)) => Poll::Ready(Ok(value)),
                        Some(Err(panic)) => resume_unwind(panic),
                        None => {
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

/// A call that waits for room gives up its ticket, and the place that may be kept for it.
impl<F, R> Drop for BlockingCall<F, R> {
    fn drop(&mut self) {
        let Stage::Refused(_, Some(ticket), _) = &self.stage else {
            return;
        };
        let mut state = self.pool.lock();
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

fn job<F, R>(f: F, slot: Arc<Slot<R>>, runs_unheard: bool) -> Job
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Box::new(move || {
        // The caller holds the other reference.
        if !runs_unheard && Arc::strong_count(&slot) == 1 {
            return;
        }
        let outcome = panic::catch(f);
        // With the caller gone the slot, and the outcome with it, is dropped at the end of this.
        *slot.lock() = Some(outcome);
        if let Some(waker) = slot.waker.take() {
            wake(waker);
        }
    })
}

impl<R> Slot<R> {
    fn lock(&self) -> MutexGuard<'_, Option<Result<R, Payload>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
