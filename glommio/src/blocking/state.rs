//! What the executor's thread and the threads of a pool share.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::panic;
use crate::stats::{self, PoolCounts};
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

/// What is settled about the threads of a pool.
pub(super) struct Threads {
    pub(super) settings: PoolSettings,
    /// None if there is a thread for each mask.
    pub(super) growth: Option<Growth>,
}

/// How the number of threads follows the calls, which is between one and `threads_max`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) threads_max: usize,
    /// How long a call waits for one of the threads that there are.
    pub(super) patience: Duration,
    /// How long a thread rests before it ends.
    pub(super) idle: Duration,
}

impl Growth {
    pub(super) const USUAL: Growth = Growth {
        threads_max: 64,
        patience: Duration::from_millis(1),
        idle: Duration::from_secs(10),
    };
}

impl Threads {
    /// A thread for each mask of the settings.
    pub(super) fn fixed(settings: PoolSettings) -> Self {
        Threads {
            settings,
            growth: None,
        }
    }

    /// As many as are needed, all with the first mask of the settings.
    pub(super) fn elastic(settings: PoolSettings, growth: Growth) -> Self {
        Threads {
            settings,
            growth: Some(growth),
        }
    }

    pub(super) fn max(&self) -> usize {
        match self.growth {
            Some(growth) => growth.threads_max,
            None => self.settings.affinity.len(),
        }
    }

    /// Calls wait although there are as many threads as there may be. With a given placement that
    /// is what was asked for.
    pub(super) fn tell_limit(&self) {
        if let Some(growth) = self.growth {
            panic::log(|| {
                tracing::warn!(
                    "{}: all {} threads are blocked, further calls wait; \
                     `blocking_thread_pool_placement` gives another number",
                    self.settings.thread_name,
                    growth.threads_max,
                );
            });
        }
    }
}

/// What the executor's thread and those of the pool share.
pub(super) struct PoolShared {
    pub(super) threads: Threads,
    state: Mutex<PoolState>,
    /// Has the executor ask for threads again.
    pub(super) retry: Waker,
    pub(super) counts: stats::SharedCounts<PoolCounts>,
}

#[derive(Default)]
pub(super) struct PoolState {
    pub(super) jobs: VecDeque<Queued>,
    /// Jobs queued or running.
    pub(super) outstanding: usize,
    /// All threads, with the reserve.
    pub(super) threads: usize,
    /// So many threads were started so far.
    pub(super) started: usize,
    /// Threads that wait for a job and were not called, the one that had one last at the end.
    pub(super) idle: Vec<Thread>,
    /// The thread that joins the others when a call has waited for too long.
    pub(super) reserve: Option<Thread>,
    /// The log was told that there are no more threads than there are.
    is_limit_told: bool,
    /// Callers that found the pool full, by the tickets that they drew.
    pub(super) waiting: BTreeMap<u64, Waker>,
    last_ticket: u64,
    /// Places kept free for callers that were woken out of `waiting` and have not come yet.
    pub(super) offered: usize,
    pub(super) is_closed: bool,
}

/// A job that waits for a thread.
pub(super) struct Queued {
    pub(super) job: Job,
    pub(super) since: Instant,
}

impl PoolShared {
    pub(super) fn new(threads: Threads, retry: Waker) -> Self {
        PoolShared {
            threads,
            state: Mutex::default(),
            retry,
            counts: stats::SharedCounts::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PoolState> {
        // No user code runs under the lock, so a poisoned state is a consistent one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    pub(super) fn has_place(&self) -> bool {
        self.outstanding + self.offered < MAX_BLOCKING_CALLS
    }

    pub(super) fn draw_ticket(&mut self) -> u64 {
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

    /// Calls wait that no thread is left for. Whether the log is to be told, which is once.
    pub(super) fn tells_limit(&mut self) -> bool {
        !mem::replace(&mut self.is_limit_told, true)
    }

    /// Threads that run calls, or rest.
    pub(super) fn workers(&self) -> usize {
        self.threads - usize::from(self.reserve.is_some())
    }
}
