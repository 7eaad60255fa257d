//! The threads, their queue, and the callers that wait for room in it.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use std::{io, mem};

use super::RetryTimer;
use crate::metrics::{self, PoolCounts};
use crate::panic::{self, FirstPanic, wake};
use crate::sys::affinity::AffinityMask;

pub(super) type Job = Box<dyn FnOnce() + Send>;

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

/// A pool, on the executor's thread.
pub(super) struct Pool {
    pub(super) shared: Arc<Shared>,
    /// Without one, a call fails that finds no thread and the system has none to give.
    retry_timer: Option<Box<dyn RetryTimer>>,
    /// Calls are queued, there is no thread, and the timer is to call again.
    is_retrying: Cell<bool>,
}

/// What the executor's thread and those of the pool share.
pub(super) struct Shared {
    settings: PoolSettings,
    state: Mutex<State>,
    work: Condvar,
    counts: metrics::Shared<PoolCounts>,
}

#[derive(Default)]
pub(super) struct State {
    jobs: VecDeque<Job>,
    /// Jobs queued or running.
    outstanding: usize,
    threads: usize,
    idle_threads: usize,
    /// Callers that found the pool full, by the tickets that they drew.
    pub(super) waiting: BTreeMap<u64, Waker>,
    last_ticket: u64,
    /// Places kept free for callers that were woken out of `waiting` and have not come yet.
    pub(super) offered: usize,
    pub(super) is_closed: bool,
}

impl Pool {
    pub(super) fn new(settings: PoolSettings, retry_timer: Option<Box<dyn RetryTimer>>) -> Self {
        Pool {
            shared: Arc::new(Shared {
                settings,
                state: Mutex::default(),
                work: Condvar::new(),
                counts: metrics::Shared::default(),
            }),
            retry_timer,
            is_retrying: Cell::new(false),
        }
    }

    pub(super) fn counts(&self) -> &metrics::Shared<PoolCounts> {
        &self.shared.counts
    }

    /// See [`BlockingPool::close`](super::BlockingPool::close).
    pub(super) fn close(&self, panics: &mut FirstPanic) {
        let (jobs, waiting) = {
            let mut state = self.shared.lock();
            state.is_closed = true;
            self.shared.counts.done(state.jobs.len());
            (mem::take(&mut state.jobs), mem::take(&mut state.waiting))
        };
        self.shared.work.notify_all();
        for job in jobs {
            panics.catch(|| drop(job));
        }
        // They come and find the pool closed.
        waiting.into_values().for_each(wake);
    }

    /// Queues `job`, or gives it back with the caller's waker remembered under its ticket. With the
    /// job comes the waker that was remembered before, to be dropped when nothing is locked.
    pub(super) fn submit(
        &self,
        job: Job,
        ticket: &mut Option<u64>,
        waker: Waker,
    ) -> Result<(), Refused> {
        let mut state = self.shared.lock();
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
        let can_retry = state.threads == 0 && self.can_retry();
        let failed = match can_retry && self.is_retrying.get() {
            true => None,
            false => self.shared.start_thread_if_needed(&mut state).err(),
        };
        let failed = match failed {
            Some(error) if state.threads == 0 && !can_retry => {
                return Err(Refused::NoThread(error));
            }
            failed => failed,
        };
        let has_threads = state.threads > 0;
        state.outstanding += 1;
        self.shared.counts.begun();
        state.jobs.push_back(job);
        drop(state);
        self.shared.work.notify_one();
        if let Some(error) = failed {
            if !has_threads {
                self.retry_later();
            }
            panic::log(|| match has_threads {
                true => tracing::warn!("starting one more blocking thread failed: {error}"),
                false => tracing::warn!("blocking calls wait for a first thread: {error}"),
            });
        }
        Ok(())
    }

    /// Whether the executor will look at its timers again, as seen from where a call is polled.
    fn can_retry(&self) -> bool {
        let timer = self.retry_timer.as_ref();
        timer.is_some_and(|timer| timer.is_in_round())
    }

    fn retry_later(&self) {
        if let Some(timer) = &self.retry_timer {
            self.is_retrying.set(true);
            timer.retry_after(RETRY);
        }
    }

    /// See [`BlockingPool::retry`](super::BlockingPool::retry).
    pub(super) fn retry(&self) {
        self.is_retrying.set(false);
        let mut state = self.shared.lock();
        // None if the pool is closed: its jobs are gone.
        let most = self.shared.settings.affinity.len().min(state.jobs.len());
        while state.threads < most && self.shared.start_thread(&mut state).is_ok() {}
        let has_threads = state.threads > 0 || most == 0;
        drop(state);
        if !has_threads {
            self.retry_later();
        }
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // No user code runs under the lock, so a poisoned state is a consistent one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
                self.counts.done(1);
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
    pub(super) fn offer_place(&mut self) -> Option<Waker> {
        if !self.has_place() {
            return None;
        }
        let (_, waker) = self.waiting.pop_first()?;
        self.offered += 1;
        Some(waker)
    }
}

pub(super) enum Refused {
    Closed,
    Full(Job, Option<Waker>),
    NoThread(io::Error),
}
