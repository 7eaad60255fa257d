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
//! the closure is carried to where the call is awaited. A call that is discarded, since the pool closes,
//! says so in its slot: nothing waits for ever.
//!
//! If the system has no thread to give and there is none yet, calls are queued all the same, and a timer
//! of the reactor tries again. Only where no turn of the reactor would do that, a call fails.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::mem;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use atomic_waker::AtomicWaker;

use super::{Reactor, TimerEntry, current, wake};
use crate::panic::{self, FirstPanic, Payload};
use crate::sys::affinity::AffinityMask;

type Job = Box<dyn FnOnce() + Send>;

/// Calls handed over and not finished; further callers wait their turn, first come first served.
pub(crate) const MAX_BLOCKING_CALLS: usize = 4096;

/// Where and under what name the threads of a pool run.
pub(crate) struct PoolSettings {
    /// Each thread adds its number.
    pub(crate) thread_name: String,
    /// For each thread its mask; one without stays with that of the executor's thread.
    pub(crate) affinity: Vec<Option<AffinityMask>>,
}

/// How long to wait before the system is asked again for a first thread.
const RETRY: Duration = Duration::from_millis(100);

/// The blocking threads of one executor.
pub(crate) struct BlockingPool {
    shared: Arc<Shared>,
    /// Set while calls are queued and there is no thread.
    retry: RefCell<Option<TimerEntry>>,
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
            retry: RefCell::default(),
        }
    }

    /// A call of `f` on one of the threads, handed over when the future is first polled. It fails if
    /// the pool is closed before `f` runs, or has no thread and no turn of the reactor to come.
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
            (mem::take(&mut state.jobs), mem::take(&mut state.waiting))
        };
        self.shared.work.notify_all();
        for job in jobs {
            panics.catch(|| drop(job));
        }
        // They come and find the pool closed.
        waiting.into_values().for_each(wake);
    }

    fn is_retrying(&self) -> bool {
        self.retry
            .borrow()
            .as_ref()
            .is_some_and(TimerEntry::is_armed)
    }

    /// Has `reactor`, which is that of this pool, ask the system for a thread again.
    fn retry_later(&self, reactor: &Rc<Reactor>) {
        let waker = Waker::from(Arc::new(Retry(Arc::clone(&self.shared))));
        self.retry
            .borrow_mut()
            .get_or_insert_with(|| TimerEntry::new(Rc::downgrade(reactor)))
            .arm(Instant::now() + RETRY, &waker);
    }
}

/// Woken by the timers of the pool's reactor.
struct Retry(Arc<Shared>);

impl Wake for Retry {
    fn wake(self: Arc<Self>) {
        let Some(reactor) = self.0.own_reactor() else {
            return;
        };
        let mut state = self.0.lock();
        // None if the pool is closed: its jobs are gone.
        let most = self.0.settings.affinity.len().min(state.jobs.len());
        while state.threads < most && self.0.start_thread(&mut state).is_ok() {}
        let has_threads = state.threads > 0 || most == 0;
        drop(state);
        if !has_threads {
            reactor.blocking.retry_later(&reactor);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No user code runs under the lock, so a poisoned state is a consistent one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reactor of this pool, if it is current.
    fn own_reactor(self: &Arc<Self>) -> Option<Rc<Reactor>> {
        let reactor = current::try_current()?;
        Arc::ptr_eq(&reactor.blocking.shared, self).then_some(reactor)
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
        let retries = match state.threads {
            // In a round: the reactor comes to its timers again.
            0 => self.own_reactor().filter(|it| it.turn_time.is_known()),
            _ => None,
        };
        let failed = match &retries {
            Some(reactor) if reactor.blocking.is_retrying() => None,
            _ => self.start_thread_if_needed(&mut state).err(),
        };
        let failed = match failed {
            Some(error) if state.threads == 0 && retries.is_none() => {
                return Err(Refused::NoThread(error));
            }
            failed => failed,
        };
        let has_threads = state.threads > 0;
        state.outstanding += 1;
        state.jobs.push_back(job);
        drop(state);
        self.work.notify_one();
        if let Some(error) = failed {
            if let Some(reactor) = retries {
                reactor.blocking.retry_later(&reactor);
            }
            panic::log(|| match has_threads {
                true => tracing::warn!("starting one more blocking thread failed: {error}"),
                false => tracing::warn!("blocking calls wait for a first thread: {error}"),
            });
        }
        Ok(())
    }

    fn start_thread_if_needed(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        // A thread that was notified counts as idle until it has its job, so idle threads are set
        // against the jobs that wait for them.
        if state.idle_threads <= state.jobs.len() && state.threads < self.settings.affinity.len() {
            self.start_thread(state)?;
        }
        Ok(())
    }

    fn start_thread(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        let index = state.threads;
        let shared = Arc::clone(self);
        std::thread::Builder::new()
            .name(format!("{}-{index}", self.settings.thread_name))
            .spawn(move || {
                let affinity = shared.settings.affinity[index];
                if let Some(Err(error)) = affinity.map(|mask| mask.apply()) {
                    panic::log(|| tracing::warn!("binding a blocking thread failed: {error}"));
                }
                shared.work();
            })?;
        state.threads += 1;
        Ok(())
    }

    /// The life of a pool thread.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // Its panics are contained inside; this thread serves others, whatever happens.
                panic::contain("a blocking call panicked", job);
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
    NoThread(io::Error),
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
    let answer = Answer(slot);
    Box::new(move || {
        // The caller holds the other reference.
        if runs_unheard || Arc::strong_count(&answer.0) > 1 {
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

/// Nobody has taken the outcome. On which thread it is dropped is up to chance, so it harms neither.
impl<R> Drop for Slot<R> {
    fn drop(&mut self) {
        let outcome = mem::replace(&mut *self.lock(), Outcome::None);
        panic::contain(
            "dropping the unclaimed outcome of a blocking call panicked",
            || drop(outcome),
        );
    }
}
