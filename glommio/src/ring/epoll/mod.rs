//! A ring without io_uring: readiness by epoll, and blocking calls on threads of its own.
//!
//! ```text
//!   push ──▶ queue ──enter──▶ sockets: a wait of epoll, then the call that does not block
//!                             files:   a job of the workers
//!   reap ◀── completed ◀──────┴──────────────┘
//! ```
//!
//! It takes the submissions that the kernel's takes. Memory that they point to is the in-flight table's until
//! the last completion, which comes after the last use of it, on whatever thread.
//!
//! Nothing shows in memory that a socket has become ready. So a running slice looks at times
//! ([`LOOK_EVERY`]), and reads the clock to see its end.
//!
//! A forked child has the same epoll, and would change what its parent waits for: each method that touches
//! it asks first where it is.

#![allow(unsafe_code)]

mod interest;
mod socket;
#[cfg(test)]
mod tests;
mod wake_timer;
mod workers;

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use std::{io, mem};

use interest::{Found, Interests, Own, Purpose};
use nix::sys::epoll::EpollTimeout;
use socket::Stream;
use wake_timer::WakeTimer;
use workers::{Done, Job, Workers};

use super::completion::Completion;
use super::operation::Operation;
use super::{Driver, Features, QueueFull, Submission, TimeoutCell, Wait};
use crate::clock;
use crate::stats::{RingCounts, SharedCounts};
use crate::sys::fork_detect::Origin;

/// A slice that lasts asks epoll so often: as often as it may be ended by what has completed. So does an
/// executor that does not get to sleep.
const LOOK_EVERY: Duration = Duration::from_micros(20);

/// The most submissions that wait to be taken, as with io_uring.
const MAX_DEPTH: usize = 32_768;

/// See the module.
pub(crate) struct EpollRing {
    interests: RefCell<Interests>,
    timer: WakeTimer,
    workers: Workers,
    origin: Origin,
    features: Features,
    entries: usize,
    /// Pushed and not taken.
    queue: RefCell<Vec<(u64, Operation)>>,
    completed: RefCell<Vec<Completion>>,
    /// Empty; kept for its allocations.
    found: Cell<Found>,
    timeouts: [Cell<Option<Timeout>>; 2],
    /// When epoll was last asked, where the clock was read then.
    looked_at: Cell<Option<Instant>>,
    counts: SharedCounts<RingCounts>,
}

#[derive(Clone, Copy)]
struct Timeout {
    at: Instant,
    name: u64,
}

impl EpollRing {
    /// # Errors
    ///
    /// If there is no descriptor or no memory for it.
    pub(super) fn new(depth: usize) -> io::Result<Self> {
        let origin = Origin::here()?;
        let workers = Workers::new(origin)?;
        let interests = Interests::new()?;
        interests.watch_own(Own::Signal, workers.signal())?;
        let entries = depth.clamp(1, MAX_DEPTH).next_power_of_two();
        let features = Features::of_others();
        let used = features.and(Features::forbidden().others());
        tracing::debug!(
            driver = %Driver::Epoll,
            entries,
            uses = %used,
            lacks = %features.others(),
            without = %features.and(used.others()),
            "a ring is set up"
        );
        Ok(EpollRing {
            interests: RefCell::new(interests),
            timer: WakeTimer::new(),
            workers,
            origin,
            features: used,
            entries,
            queue: RefCell::default(),
            completed: RefCell::default(),
            found: Cell::default(),
            timeouts: Default::default(),
            looked_at: Cell::default(),
            counts: SharedCounts::default(),
        })
    }

    #[cfg(feature = "metrics")]
    pub(super) fn counts(&self) -> &SharedCounts<RingCounts> {
        &self.counts
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) fn features(&self) -> Features {
        self.features
    }

    /// # Safety
    ///
    /// See [`KernelRing::push`](super::uring::KernelRing::push).
    pub(super) unsafe fn push(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        self.assert_own();
        let mut queue = self.queue.borrow_mut();
        if queue.len() == self.entries {
            return Err(QueueFull);
        }
        queue.push((submission.user_data(), submission.operation()));
        Ok(())
    }

    pub(super) fn push_memoryless(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        let has_memory = submission.operation().points_to_memory();
        assert!(!has_memory, "its memory needs an owner");
        // SAFETY: there is no memory to keep valid.
        unsafe { self.push(submission) }
    }

    /// There is no order to be kept with what is queued, so that it holds at once.
    pub(super) fn push_timeout(
        &self,
        cell: TimeoutCell,
        at: Instant,
        name: u64,
    ) -> Result<(), QueueFull> {
        self.timeouts[cell as usize].set(Some(Timeout { at, name }));
        Ok(())
    }

    pub(super) fn push_timeout_move(
        &self,
        cell: TimeoutCell,
        at: Instant,
        name: u64,
        user_data: u64,
    ) -> Result<(), QueueFull> {
        let timeout = &self.timeouts[cell as usize];
        let is_armed = timeout.get().is_some_and(|it| it.name == name);
        if is_armed {
            timeout.set(Some(Timeout { at, name }));
        }
        self.complete(user_data, if is_armed { 0 } else { -libc::ENOENT });
        Ok(())
    }

    pub(super) fn push_timeout_removal(&self, name: u64, user_data: u64) -> Result<(), QueueFull> {
        let mut result = -libc::ENOENT;
        for timeout in &self.timeouts {
            if timeout.get().is_some_and(|it| it.name == name) {
                timeout.set(None);
                self.complete(name, -libc::ECANCELED);
                result = 0;
            }
        }
        self.complete(user_data, result);
        Ok(())
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.borrow().len()
    }

    /// Of a running slice, and of a thread that polls the clock.
    pub(super) fn work_pending(&self) -> bool {
        if self.completions_posted() {
            return true;
        }
        // Each time, although it takes longer than all else in here: no poll begins after a deadline.
        let now = clock::real();
        if self.expire_timeouts(now) {
            return true;
        }
        if !self.is_look_due(now) {
            return false;
        }
        if let Err(error) = self.look(now) {
            // The next `enter` has it, too, and the means to tell.
            tracing::debug!("epoll fails: {error}");
        }
        self.completions_posted()
    }

    #[inline]
    pub(super) fn completions_posted(&self) -> bool {
        self.assert_own();
        !self.completed.borrow().is_empty() || self.workers.have_done()
    }

    /// What is ready shows to those who ask only.
    pub(super) fn needs_enter_to_reap(&self) -> bool {
        true
    }

    pub(super) fn has_deferred_work(&self) -> bool {
        false
    }

    pub(super) fn enter(&self, wait: Wait) -> io::Result<()> {
        self.submit_only()?;
        match wait {
            Wait::Now => self.look(clock::real()),
            Wait::Forever => self.sleep(None),
            Wait::Until(end) => self.sleep(Some(end)),
        }
    }

    pub(super) fn submit_only(&self) -> io::Result<()> {
        self.assert_own();
        let mut taken = mem::take(&mut *self.queue.borrow_mut());
        self.counts.entered(taken.len());
        let mut found = self.found.take();
        for (user_data, operation) in taken.drain(..) {
            self.begin(user_data, operation, &mut found);
        }
        // Nothing in between has pushed.
        *self.queue.borrow_mut() = taken;
        self.take(found);
        Ok(())
    }

    pub(super) fn reap(&self, reaped: &mut Vec<Completion>) {
        self.take_done();
        reaped.append(&mut self.completed.borrow_mut());
    }

    /// # Panics
    ///
    /// See [`KernelRing::assert_own`](super::uring::KernelRing::assert_own).
    #[inline]
    pub(super) fn assert_own(&self) {
        self.origin.assert_here();
    }

    /// Whether epoll was not asked for [`LOOK_EVERY`], as far as is known.
    fn is_look_due(&self, now: Instant) -> bool {
        let looked_at = self.looked_at.get().unwrap_or(now);
        self.looked_at.set(Some(looked_at));
        now.saturating_duration_since(looked_at) >= LOOK_EVERY
    }

    /// Takes what is there, without waiting.
    fn look(&self, now: Instant) -> io::Result<()> {
        self.expire_timeouts(now);
        self.looked_at.set(Some(now));
        self.wait(EpollTimeout::ZERO)
    }

    /// Sleeps until there is a completion, or until `end`.
    fn sleep(&self, end: Option<Instant>) -> io::Result<()> {
        let timeout = (self.timeouts.iter().filter_map(|it| Some(it.get()?.at))).min();
        let end = timeout.into_iter().chain(end).min();
        // What waits for no moment does not read the clock.
        let now = end.map(|_| clock::real());
        if let Some(now) = now {
            self.expire_timeouts(now);
        }
        if self.completions_posted() {
            // What completes as it begins, one operation after the other, must not hide what is ready.
            let now = now.unwrap_or_else(clock::real);
            return match self.is_look_due(now) {
                true => self.look(now),
                false => Ok(()),
            };
        }
        let limit = match end.zip(now) {
            Some((end, now)) if end <= now => return self.look(now),
            Some((end, now)) => self.timer.set(&self.interests.borrow(), end, now)?,
            None => EpollTimeout::NONE,
        };
        if !self.workers.announce_sleep() {
            return self.look(clock::real());
        }
        let slept = self.wait(limit);
        self.workers.awake();
        slept?;
        self.looked_at.set(None);
        if timeout.is_some() {
            self.expire_timeouts(clock::real());
        }
        Ok(())
    }

    fn wait(&self, limit: EpollTimeout) -> io::Result<()> {
        let mut found = self.found.take();
        let waited = self.interests.borrow_mut().wait(limit, &mut found);
        self.take(found);
        self.take_done();
        waited
    }

    fn take(&self, mut found: Found) {
        self.completed.borrow_mut().append(&mut found.completions);
        self.workers.submit(&mut found.jobs);
        if mem::take(&mut found.is_timer_due) {
            self.timer.has_gone_off();
        }
        self.found.set(found);
    }

    fn expire_timeouts(&self, now: Instant) -> bool {
        let mut has_expired = false;
        for timeout in &self.timeouts {
            if let Some(expired) = timeout.get().filter(|it| it.at <= now) {
                timeout.set(None);
                self.complete(expired.name, -libc::ETIME);
                has_expired = true;
            }
        }
        has_expired
    }

    fn take_done(&self) {
        if !self.workers.have_done() {
            return;
        }
        let mut found = self.found.take();
        for Done { job, result } in self.workers.take_done() {
            match Stream::of(job.operation) {
                // A pipe, say. The ring of the kernel takes no notice of the position there either.
                Some(stream) if result == -libc::ESPIPE => {
                    self.await_stream(job.user_data, stream, &mut found);
                }
                _ => found.complete(job.user_data, result),
            }
        }
        self.take(found);
    }

    fn begin(&self, user_data: u64, operation: Operation, found: &mut Found) {
        match operation {
            Operation::Nop => found.complete(user_data, 0),
            Operation::Cancel { target } => {
                let is_ended = self.give_up(target, found);
                if is_ended {
                    found.complete(target, -libc::ECANCELED);
                }
                found.complete(user_data, if is_ended { 0 } else { -libc::ENOENT });
            }
            Operation::Poll {
                fd,
                events,
                is_multi,
            } => self.await_events(user_data, (fd, events), Purpose::Poll { is_multi }, found),
            Operation::Accept { listener } => match socket::set_blocking(listener, false) {
                Ok(_) => {
                    let readable = (listener, libc::POLLIN as u32);
                    self.await_events(user_data, readable, Purpose::Accept, found);
                }
                Err(errno) => found.complete(user_data, -(errno as i32)),
            },
            Operation::Connect {
                socket,
                address,
                length,
            } => {
                // SAFETY: what was pushed points to what is there (`push`).
                match unsafe { socket::begin_connect(socket, address, length) } {
                    Ok(was_blocking) => {
                        let purpose = Purpose::Connect { was_blocking };
                        let writable = (socket, libc::POLLOUT as u32);
                        self.await_events(user_data, writable, purpose, found);
                    }
                    Err(result) => found.complete(user_data, result),
                }
            }
            Operation::Read(it) | Operation::Write(it) if it.position.is_none() => {
                let stream = Stream::of(operation).expect("it is one of both");
                self.await_stream(user_data, stream, found);
            }
            _ => {
                if let Operation::Close { fd } = operation {
                    self.interests.borrow_mut().close(fd, found);
                }
                found.jobs.push(Job {
                    user_data,
                    operation,
                });
            }
        }
    }

    fn await_stream(&self, user_data: u64, stream: Stream, found: &mut Found) {
        let purpose = Purpose::Stream(stream);
        self.await_events(user_data, stream.fd_and_events(), purpose, found);
    }

    fn await_events(
        &self,
        user_data: u64,
        (fd, events): (RawFd, u32),
        purpose: Purpose,
        found: &mut Found,
    ) {
        let wait = interest::Wait {
            user_data,
            events,
            purpose,
        };
        // What the kernel refuses, such as to write to the end of a pipe that is for reading, never becomes ready.
        match wait.is_over_at_once(fd) {
            Some(result) => found.complete(user_data, result),
            None => self.interests.borrow_mut().add(fd, wait, found),
        }
    }

    /// Whether the operation was one that had not begun, or had not ended.
    fn give_up(&self, target: u64, found: &mut Found) -> bool {
        let jobs = found.jobs.len();
        found.jobs.retain(|it| it.user_data != target);
        found.jobs.len() < jobs
            || self.interests.borrow_mut().cancel(target)
            || self.workers.take_back(target)
    }

    /// Of a timeout, or of an order about one.
    fn complete(&self, user_data: u64, result: i32) {
        let completion = Completion::made(user_data, result, false);
        self.completed.borrow_mut().push(completion);
    }
}
