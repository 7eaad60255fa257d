//! Threads that make blocking calls for the ring.
//!
//! As the workers of io_uring, they are started when they are needed, run on any CPU that the process may
//! use, and end when there has been nothing to do for a while.
//!
//! One that opens a FIFO waits for its other end, maybe for ever, and cannot be told to stop. When that is given
//! up the thread is no longer one of the executor's: it has a copy of the path, and closes what it gets. That it is
//! one, the thread finds out: a path may be on a server that does not answer.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;
use std::{io, mem};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::ring::call::Call;
use crate::ring::operation::Operation;
use crate::sys::affinity::AffinityMask;
use crate::sys::fork_detect::Origin;

/// As many as a disk of today works on at a time.
const MOST_THREADS: usize = 8;

/// A thread ends after so long without a job.
const IDLE: Duration = Duration::from_secs(10);

/// See the module. On the executor's thread.
pub(super) struct Workers {
    shared: Arc<Shared>,
    /// Written to when a job is done and the executor sleeps.
    signal: EventFd,
    threads: RefCell<Vec<JoinHandle<()>>>,
    /// Jobs whose end was not taken yet.
    outstanding: Cell<usize>,
    origin: Origin,
}

struct Shared {
    state: Mutex<State>,
    job_came: Condvar,
    has_done: AtomicBool,
    /// That of the [`Workers`], which join the threads before they close it.
    signal: RawFd,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: Vec<Running>,
    done: Vec<Done>,
    threads: usize,
    idle: usize,
    is_asleep: bool,
    is_closed: bool,
}

/// An operation that may block.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) user_data: u64,
    pub(super) operation: Operation,
}

/// A job under way.
struct Running {
    user_data: u64,
    thread: ThreadId,
    /// It may be left to its thread.
    opens_fifo: bool,
    is_given_up: bool,
}

pub(super) struct Done {
    pub(super) job: Job,
    pub(super) result: i32,
}

// SAFETY: it points to memory that is the in-flight table's until the operation has completed, as
// `Ring::push` demands, and nothing else looks at it until then.
unsafe impl Send for Job {}

impl Job {
    /// The path of an open, which needs nothing else of the executor's from now on. A directory may be closed.
    fn own_path(&mut self) -> Option<Arc<CStr>> {
        let Operation::Open {
            directory, path, ..
        } = &mut self.operation
        else {
            return None;
        };
        // SAFETY: it points to a string, as it has not completed.
        let own: Arc<CStr> = unsafe { CStr::from_ptr(*path) }.into();
        if *directory != libc::AT_FDCWD && !own.to_bytes().starts_with(b"/") {
            return None;
        }
        *path = own.as_ptr();
        Some(own)
    }

    fn make(&self) -> i32 {
        match Call::that_does(self.operation) {
            // SAFETY: what it points to is there, as it has not completed.
            Some(call) => unsafe { call.make() },
            None => -libc::EINVAL,
        }
    }
}

impl Done {
    /// What would begin anew, as a read of a pipe at a position, is over.
    fn give_up(&mut self) {
        if self.result == -libc::ESPIPE {
            self.result = -libc::ECANCELED;
        }
    }
}

fn is_fifo(path: &CStr) -> bool {
    let path = OsStr::from_bytes(path.to_bytes());
    fs::metadata(path).is_ok_and(|it| it.file_type().is_fifo())
}

impl Workers {
    pub(super) fn new(origin: Origin) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let signal = EventFd::from_flags(flags)?;
        Ok(Workers {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                job_came: Condvar::new(),
                has_done: AtomicBool::new(false),
                signal: signal.as_fd().as_raw_fd(),
            }),
            signal,
            threads: RefCell::default(),
            outstanding: Cell::new(0),
            origin,
        })
    }

    /// Each time that it is written to, a job is done.
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }

    /// Hands over a batch, which is empty then.
    pub(super) fn submit(&self, jobs: &mut Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let count = jobs.len();
        self.outstanding.update(|it| it + count);
        let mut state = self.shared.lock();
        state.jobs.extend(jobs.drain(..));
        self.start_threads(&mut state);
        drop(state);
        for _ in 0..count.min(MOST_THREADS) {
            self.shared.job_came.notify_one();
        }
    }

    fn start_threads(&self, state: &mut State) {
        while state.idle < state.jobs.len() && state.threads < MOST_THREADS {
            if let Err(error) = self.start_thread() {
                if state.threads == 0 {
                    tracing::debug!("no thread for operations on files: {error}");
                    self.shared.do_without_threads(state);
                }
                break;
            }
            state.threads += 1;
            // It comes for one of the jobs.
            state.idle += 1;
        }
    }

    fn start_thread(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let current = thread::current();
        let name = format!("{}-files", current.name().unwrap_or("glommio"));
        let thread = thread::Builder::new().name(name).spawn(move || {
            // If it may not, it runs where the executor does.
            let _ = AffinityMask::of_every_cpu().and_then(|it| it.apply());
            shared.work();
        })?;
        let mut threads = self.threads.borrow_mut();
        threads.retain(|it| !it.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Takes back a job that no thread has begun, or is left with one.
    pub(super) fn take_back(&self, user_data: u64) -> bool {
        if self.outstanding.get() == 0 {
            return false;
        }
        let mut state = self.shared.lock();
        let place = state.jobs.iter().position(|it| it.user_data == user_data);
        let is_taken = match place {
            Some(place) => state.jobs.remove(place).is_some(),
            None => self.give_up(&mut state, user_data),
        };
        self.outstanding.update(|it| it - usize::from(is_taken));
        is_taken
    }

    /// Leaves the thread alone that opens a FIFO. False if none does; another job that has begun goes on to its end.
    fn give_up(&self, state: &mut State, user_data: u64) -> bool {
        let State { running, done, .. } = state;
        if let Some(done) = done.iter_mut().find(|it| it.job.user_data == user_data) {
            done.give_up();
        }
        let Some(place) = running.iter().position(|it| it.user_data == user_data) else {
            return false;
        };
        if !running[place].opens_fifo {
            running[place].is_given_up = true;
            return false;
        }
        let left = running.swap_remove(place);
        let mut threads = self.threads.borrow_mut();
        threads.retain(|it| it.thread().id() != left.thread);
        drop(threads);
        state.threads -= 1;
        // There may be jobs that no thread was left for.
        self.start_threads(state);
        true
    }

    #[inline]
    pub(super) fn have_done(&self) -> bool {
        self.shared.has_done.load(Ordering::Acquire)
    }

    /// What is done, in the order of its ends.
    pub(super) fn take_done(&self) -> Vec<Done> {
        let mut state = self.shared.lock();
        self.shared.has_done.store(false, Ordering::Relaxed);
        let done = mem::take(&mut state.done);
        self.outstanding.update(|it| it - done.len());
        done
    }

    /// From here on a job that is done is signalled. False if one is already.
    pub(super) fn announce_sleep(&self) -> bool {
        if self.outstanding.get() == 0 {
            return true;
        }
        let mut state = self.shared.lock();
        state.is_asleep = state.done.is_empty();
        state.is_asleep
    }

    pub(super) fn awake(&self) {
        if self.outstanding.get() > 0 {
            self.shared.lock().is_asleep = false;
        }
    }
}

/// What the threads have begun is waited for: it uses memory of the executor.
impl Drop for Workers {
    fn drop(&mut self) {
        let threads = mem::take(self.threads.get_mut());
        if !self.origin.is_here() {
            // They are the parent's, and so is who holds the lock.
            return mem::forget(threads);
        }
        let mut state = self.shared.lock();
        state.is_closed = true;
        state.jobs.clear();
        drop(state);
        self.shared.job_came.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing has asked for this cancellation, which has the in-flight table hand the operations to a pool
    /// that waits for a thread. Only a close is not to be repeated.
    fn do_without_threads(&self, state: &mut State) {
        let State { jobs, done, .. } = state;
        done.extend(jobs.drain(..).map(|job| {
            let result = match job.operation {
                Operation::Close { .. } => job.make(),
                _ => -libc::ECANCELED,
            };
            Done { job, result }
        }));
        self.has_done.store(true, Ordering::Release);
    }

    /// Makes the call of a job that is running on `thread`.
    fn make(&self, mut job: Job, thread: ThreadId) -> i32 {
        let own_path = job.own_path();
        if own_path.as_deref().is_some_and(is_fifo) {
            let mut state = self.lock();
            let mut running = state.running.iter_mut();
            match running.find(|it| it.thread == thread) {
                Some(it) if !it.is_given_up => it.opens_fifo = true,
                _ => return -libc::ECANCELED,
            }
        }
        job.make()
    }

    fn work(&self) {
        let thread = thread::current().id();
        let mut state = self.lock();
        // It was counted as idle when it was started.
        state.idle -= 1;
        loop {
            while let Some(job) = state.jobs.pop_front() {
                state.running.push(Running {
                    user_data: job.user_data,
                    thread,
                    opens_fifo: false,
                    is_given_up: false,
                });
                drop(state);
                let result = self.make(job, thread);
                state = self.lock();
                let place = state.running.iter().position(|it| it.thread == thread);
                let Some(place) = place else {
                    // SAFETY: only opens of FIFOs are left to their threads. This descriptor is such a one's result,
                    // and no one else has its number.
                    drop((result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(result) }));
                    return;
                };
                let mut done = Done { job, result };
                if state.running.swap_remove(place).is_given_up {
                    done.give_up();
                }
                state.done.push(done);
                self.has_done.store(true, Ordering::Release);
                if mem::take(&mut state.is_asleep) {
                    // SAFETY: its owner joins this thread before it closes the descriptor.
                    let signal = unsafe { BorrowedFd::borrow_raw(self.signal) };
                    let _ = nix::unistd::write(signal, &1_u64.to_ne_bytes());
                }
            }
            if state.is_closed {
                return;
            }
            state.idle += 1;
            let waited = self.job_came.wait_timeout(state, IDLE);
            let (woken, limit) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if limit.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
impl Workers {
    /// Whether anything of them is left.
    pub(super) fn watch(&self) -> std::sync::Weak<impl Sized + use<>> {
        Arc::downgrade(&self.shared)
    }
}
