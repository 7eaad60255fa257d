//! The threads of a pool: when they start, how they rest, and when they end.
//!
//! A pool with a given placement has a thread for each of its masks. They start as calls come and
//! end with the pool.
//!
//! An *elastic* pool has one thread, and more when a call has waited for longer than
//! [`Growth::patience`]: calls may depend on each other, so that one which waits for a thread may
//! be what the others block for. The wait is watched by a thread of the pool, the *reserve*, and
//! not by the executor, which may not be running:
//!
//! ```text
//!   a call finds no idle thread ──▶ reserve ──the first in line has waited──▶ one of the threads,
//!                                     │                                       and a new reserve if
//!                                     │ nothing to watch for `idle`           more calls are in line
//!                                     ▼
//!                                   (ends)
//! ```
//!
//! A reserve that finds no other to follow it takes its call all the same, which may be what the others
//! wait for. The queue has no watch then, and the executor asks for a thread until it has one.
//!
//! Threads rest in a stack, of which the last takes the next call. So those that are not needed
//! rest on, and end after [`Growth::idle`]; one stays.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::thread::{self, Thread};

use super::state::{Growth, PoolShared, PoolState};
use crate::clock;
use crate::panic::{self, wake};

/// What was done about a job that no idle thread takes.
pub(super) enum Reinforced {
    /// A thread will come.
    Started,
    /// This one takes it, or watches it: to be unparked when nothing is locked.
    Called(Thread),
    /// It waits for one of the threads that there are.
    AtLimit,
}

enum Role {
    Worker,
    Reserve,
}

impl PoolShared {
    /// Sees to it that a job which no idle thread takes finds a thread, now or, in an elastic pool,
    /// when it has waited.
    pub(super) fn reinforce(self: &Arc<Self>, state: &mut PoolState) -> io::Result<Reinforced> {
        if let Some(reserve) = &state.reserve {
            return Ok(Reinforced::Called(reserve.clone()));
        }
        if state.threads >= self.threads.max() {
            return Ok(Reinforced::AtLimit);
        }
        if self.threads.growth.is_some() && state.threads > 0 {
            state.reserve = Some(self.start(state, Role::Reserve)?);
        } else {
            self.start(state, Role::Worker)?;
        }
        Ok(Reinforced::Started)
    }

    fn start(self: &Arc<Self>, state: &mut PoolState, role: Role) -> io::Result<Thread> {
        let settings = &self.threads.settings;
        let number = state.started;
        let affinity = match self.threads.growth {
            Some(_) => settings.affinity.first().copied().flatten(),
            None => settings.affinity[number],
        };
        let shared = Arc::clone(self);
        let handle = thread::Builder::new()
            .name(format!("{}-{number}", settings.thread_name))
            .spawn(move || {
                if let Some(Err(error)) = affinity.map(|mask| mask.apply()) {
                    panic::log(|| tracing::warn!("binding a blocking thread failed: {error}"));
                }
                match (role, shared.threads.growth) {
                    (Role::Reserve, Some(growth)) => shared.stand_by(growth),
                    _ => shared.work(shared.lock()),
                }
            })?;
        state.threads += 1;
        state.started += 1;
        Ok(handle.thread().clone())
    }

    /// The life of a thread that runs calls.
    fn work<'a>(&'a self, mut state: MutexGuard<'a, PoolState>) {
        loop {
            if let Some(queued) = state.jobs.pop_front() {
                drop(state);
                // Its panics are contained inside; this thread serves others, whatever happens.
                panic::contain("a blocking call panicked", queued.job);
                state = self.lock();
                state.outstanding -= 1;
                self.counts.done.add(1);
                if let Some(next) = state.offer_place() {
                    drop(state);
                    wake(next);
                    state = self.lock();
                }
            } else if state.is_closed {
                return;
            } else {
                match self.rest(state) {
                    Some(called) => state = called,
                    None => return,
                }
            }
        }
    }

    /// Waits until the thread is called, or ends it: then there is nothing to go on with.
    fn rest<'a>(
        &'a self,
        mut state: MutexGuard<'a, PoolState>,
    ) -> Option<MutexGuard<'a, PoolState>> {
        let this = thread::current();
        let mut end = self.threads.growth.map(|it| clock::real() + it.idle);
        state.idle.push(this.clone());
        loop {
            drop(state);
            match end {
                Some(end) => thread::park_timeout(end.saturating_duration_since(clock::real())),
                None => thread::park(),
            }
            state = self.lock();
            // Who calls a thread takes it out.
            let Some(place) = state.idle.iter().position(|it| it.id() == this.id()) else {
                return Some(state);
            };
            if end.is_some_and(|end| end <= clock::real()) {
                if state.workers() > 1 {
                    state.idle.remove(place);
                    state.threads -= 1;
                    return None;
                }
                end = None;
            }
        }
    }

    /// The life of the reserve, until it is one of those that run calls.
    fn stand_by(self: &Arc<Self>, growth: Growth) {
        let mut state = self.lock();
        let mut end = clock::real() + growth.idle;
        loop {
            if state.is_closed {
                return;
            }
            let now = clock::real();
            let next = state
                .jobs
                .front()
                .map(|first| first.since + growth.patience);
            match next {
                Some(next) if next <= now => break,
                Some(_) => end = now + growth.idle,
                None if end <= now => {
                    state.reserve = None;
                    state.threads -= 1;
                    return;
                }
                None => {}
            }
            drop(state);
            thread::park_timeout(next.unwrap_or(end) - now);
            state = self.lock();
        }
        state.reserve = None;
        // The others in line have this thread's job in front of them.
        let reinforced = match state.jobs.len() {
            1 => Ok(Reinforced::Started),
            _ => self.reinforce(&mut state),
        };
        let tells_limit = matches!(reinforced, Ok(Reinforced::AtLimit)) && state.tells_limit();
        if !tells_limit && reinforced.is_ok() {
            return self.work(state);
        }
        drop(state);
        match reinforced {
            Ok(_) => self.threads.tell_limit(),
            Err(error) => {
                self.retry.wake_by_ref();
                panic::log(|| {
                    tracing::warn!("starting one more blocking thread failed: {error}");
                });
            }
        }
        self.work(self.lock());
    }
}
