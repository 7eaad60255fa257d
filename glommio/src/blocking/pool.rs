//! The queue of a pool, and the callers that wait for room in it. Its threads are in
//! [`threads`](super::threads).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;
use std::{io, mem};

pub(super) use super::state::Job;
use super::state::{PoolShared, Queued, Threads};
use super::threads::Reinforced;
use crate::clock;
use crate::panic::{self, FirstPanic, wake};
use crate::sys::door;

/// How long to wait before the system is asked again for a thread.
const RETRY: Duration = Duration::from_millis(100);

/// What a pool asks of the executor whose calls it makes, while it lacks threads. Used on the
/// executor's thread, but for the waker.
pub(crate) trait RetryTimer {
    /// Whether the executor runs tasks on this thread now: it comes to its timers again.
    fn is_in_round(&self) -> bool;

    /// Has [`BlockingPool::retry`](super::BlockingPool::retry) called after `wait`, if not sooner.
    fn retry_after(&self, wait: Duration);

    /// Woken on any thread, it has the same called when the executor comes to it.
    fn waker(&self) -> Waker;
}

/// A pool, on the executor's thread.
pub(super) struct Pool {
    pub(super) shared: Arc<PoolShared>,
    retry_timer: Rc<dyn RetryTimer>,
    /// Calls are queued, there are fewer threads than they need, and the executor is to ask again.
    pub(super) is_retrying: Cell<bool>,
}

impl Pool {
    pub(super) fn new(threads: Threads, retry_timer: Rc<dyn RetryTimer>) -> Self {
        Pool {
            shared: Arc::new(PoolShared::new(threads, retry_timer.waker())),
            retry_timer,
            is_retrying: Cell::new(false),
        }
    }

    /// See [`BlockingPool::close`](super::BlockingPool::close).
    pub(super) fn close(&self, panics: &mut FirstPanic) {
        let (jobs, waiting, resting) = {
            let mut state = self.shared.lock();
            state.is_closed = true;
            self.shared.counts.done.add(state.jobs.len() as u64);
            let mut resting = mem::take(&mut state.idle);
            resting.extend(state.reserve.clone());
            (
                mem::take(&mut state.jobs),
                mem::take(&mut state.waiting),
                resting,
            )
        };
        resting.iter().for_each(Thread::unpark);
        for job in jobs {
            panics.catch(|| drop(job));
        }
        // They come and find the pool closed.
        waiting.into_values().for_each(wake);
    }

    /// Queues `job`, of a function `name`, or gives it back with the caller's waker remembered under its ticket. With the
    /// job comes the waker that was remembered before, to be dropped when nothing is locked.
    pub(super) fn submit(
        &self,
        (job, name): (Job, &str),
        ticket: &mut Option<u64>,
        waker: Waker,
    ) -> Result<(), Refused> {
        let mut state = self.shared.lock();
        if state.is_closed {
            return Err(Refused::Closed);
        }
        if door::is_simulated() {
            drop(state);
            door::block(name, job);
            return Ok(());
        }
        if ticket.is_some_and(|ticket| !state.waiting.contains_key(&ticket)) {
            state.offered -= 1;
            *ticket = None;
        } else if !state.has_place() {
            let ticket = *ticket.get_or_insert_with(|| state.draw_ticket());
            return Err(Refused::Full(job, state.waiting.insert(ticket, waker)));
        }
        let can_retry = self.retry_timer.is_in_round();
        let reinforced = match state.idle.pop() {
            Some(idle) => Ok(Reinforced::Called(idle)),
            None if can_retry && self.is_retrying.get() => Ok(Reinforced::Started),
            None => self.shared.reinforce(&mut state),
        };
        let has_threads = state.threads > 0;
        let reinforced = match reinforced {
            Err(error) if !has_threads && !can_retry => return Err(Refused::NoThread(error)),
            reinforced => reinforced,
        };
        let tells_limit = matches!(reinforced, Ok(Reinforced::AtLimit)) && state.tells_limit();
        state.outstanding += 1;
        self.shared.counts.begun.add(1);
        let since = clock::real();
        state.jobs.push_back(Queued { job, since });
        drop(state);
        match reinforced {
            Ok(Reinforced::Started) => {}
            Ok(Reinforced::Called(thread)) => thread.unpark(),
            Ok(Reinforced::AtLimit) if tells_limit => self.shared.threads.tell_limit(),
            Ok(Reinforced::AtLimit) => {}
            Err(error) => {
                if can_retry {
                    self.retry_later();
                } else {
                    self.shared.retry.wake_by_ref();
                }
                panic::log(|| {
                    if has_threads {
                        tracing::warn!("starting one more blocking thread failed: {error}")
                    } else {
                        tracing::warn!("blocking calls wait for a first thread: {error}")
                    }
                });
            }
        }
        Ok(())
    }

    fn retry_later(&self) {
        self.is_retrying.set(true);
        self.retry_timer.retry_after(RETRY);
    }

    /// See [`BlockingPool::retry`](super::BlockingPool::retry).
    pub(super) fn retry(&self) {
        self.is_retrying.set(false);
        let mut state = self.shared.lock();
        // None if the pool is closed: its jobs are gone.
        for _ in 0..state.jobs.len() {
            match self.shared.reinforce(&mut state) {
                Ok(Reinforced::Started) => {}
                Ok(Reinforced::Called(reserve)) => return reserve.unpark(),
                Ok(Reinforced::AtLimit) => return,
                Err(_) => {
                    drop(state);
                    return self.retry_later();
                }
            }
        }
    }
}

pub(super) enum Refused {
    Closed,
    Full(Job, Option<Waker>),
    NoThread(io::Error),
}
