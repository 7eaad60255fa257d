//! One io_uring instance.
//!
//! ```text
//!   Submission ──push──▶ submission queue ──enter──▶ kernel
//!                                                     │
//!   Completion ◀──reap── completion queue ◀───────────┘
//! ```
//!
//! This module owns the ring's descriptor and its two mapped queues, how they are reached
//! ([`instance`]), the ladder of setup flags ([`setup`]), and the times of its timeouts
//! ([`timespecs`]). What it does not own: the memory that submissions point to (the caller of
//! [`KernelRing::push`] promises that, as that of [`KernelRing::register`] does), and the meaning of
//! `user_data`.
//!
//! Invariants:
//!
//! 1. A [`KernelRing`] stays on the thread that built it (it is neither `Send` nor `Sync`): the kernel
//!    refuses other threads when `SINGLE_ISSUER` is set, and the queue views below rely on it.
//! 2. A view of either queue lives only inside one method of this file, none of which calls out. So
//!    no two views of a queue exist at a time although all methods take `&self`.
//! 3. A forked child does not touch the ring of its parent: its queues are not mapped there, so
//!    that nothing can be written to them by mistake, and each view asks first where it is.
//!
//! Cost: `push` and `work_pending` are plain loads and stores; `enter` is one system call.

#![allow(unsafe_code)]

mod entry;
mod instance;
mod iowq_workaround;
mod refusal;
mod setup;
#[cfg(test)]
pub(super) mod tests;
mod timeout;
mod timespecs;

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;

use entry::entry_of;
use instance::Instance;
use io_uring::cqueue::CompletionStatus;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, cqueue, squeue};
use setup::Built;
pub(crate) use setup::Mode;
use timespecs::Timespecs;

use super::wait::{self, ClockAnchor};
use super::{Completion, Feature, Features, QueueFull, Submission, Wait};
use crate::error::GlommioError;
use crate::stats::{RingCounts, SharedCounts};
use crate::sys::fork_detect::Origin;

/// An io_uring instance of one thread.
pub(crate) struct KernelRing {
    ring: Instance,
    /// A look at the completion queue of `ring` that is not a view.
    posted: CompletionStatus,
    mode: Mode,
    features: Features,
    anchor: ClockAnchor,
    /// What queued timeout submissions point to.
    timeouts: Timespecs,
    counts: SharedCounts<RingCounts>,
    /// Keeps the ring on its thread.
    _not_send: PhantomData<*const ()>,
}

impl KernelRing {
    /// Builds a ring of `depth` submission entries for the calling thread, for one of `executors` that
    /// share the descriptors of the process.
    ///
    /// # Errors
    ///
    /// `IoError` of kind `Unsupported` or `PermissionDenied` if this kernel has no io_uring,
    /// forbids it, or lacks an operation; `ReactorError(MemLockLimit)` if locked memory ran
    /// out; other OS errors as they come.
    pub(crate) fn new(depth: usize, executors: usize) -> Result<KernelRing, GlommioError<()>> {
        Self::with_first_mode(depth, executors, setup::requested_mode())
    }

    fn with_first_mode(
        depth: usize,
        executors: usize,
        first: Mode,
    ) -> Result<KernelRing, GlommioError<()>> {
        setup::build_best(depth, executors, first).map(KernelRing::of)
    }

    fn of(built: Built) -> Self {
        let Built {
            mut ring,
            origin,
            mode,
            features,
        } = built;
        // SAFETY: it points into what `ring` has mapped, beside which it lives and dies, and is shown
        // to no one.
        let posted = unsafe { ring.completion().status() };
        let ring = Instance::new(ring, origin, features.has(Feature::RegisteredRing));
        KernelRing {
            features,
            posted,
            ring,
            mode,
            anchor: ClockAnchor::new(),
            timeouts: Timespecs::default(),
            counts: SharedCounts::default(),
            _not_send: PhantomData,
        }
    }

    /// What was counted.
    #[cfg(feature = "metrics")]
    pub(crate) fn counts(&self) -> &SharedCounts<RingCounts> {
        &self.counts
    }

    /// The process that it belongs to. Nothing can be done with it in one that was forked from there: the
    /// methods that would touch it panic.
    #[inline]
    pub(crate) fn origin(&self) -> Origin {
        self.ring.origin()
    }

    /// How completions reach the completion queue.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// What may be used beyond what every supported kernel has.
    pub(crate) fn features(&self) -> Features {
        self.features
    }

    /// Appends a submission; the kernel sees it at the next [`enter`](Self::enter).
    ///
    /// # Safety
    ///
    /// What `submission` borrows stays borrowed, and stays where it is, until the kernel has posted
    /// its final completion.
    pub(crate) unsafe fn push(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        // SAFETY: the memory behind the entry is the caller's promise.
        unsafe { self.push_entry(&entry_of(submission)) }
    }

    /// # Safety
    ///
    /// As [`push`](Self::push). The [`Timespec`] of a timeout is valid until the next successful `enter`,
    /// which reads it.
    unsafe fn push_entry(&self, entry: &squeue::Entry) -> Result<(), QueueFull> {
        // SAFETY: the only view of the submission queue (invariant 2 of the module).
        let mut queue = unsafe { self.submissions() };
        // SAFETY: promised by the caller.
        unsafe { queue.push(entry) }.map_err(|_| QueueFull)
    }

    /// As [`push`](Self::push), for a submission that points to no memory.
    pub(crate) fn push_memoryless(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        let has_memory = submission.operation().points_to_memory();
        assert!(!has_memory, "its memory needs an owner");
        // SAFETY: there is no memory to keep valid.
        unsafe { self.push(submission) }
    }

    /// Makes memory known to the kernel: from here on, submissions may say that theirs
    /// [is in there](Submission::in_registered_memory). Once for each ring.
    ///
    /// # Errors
    ///
    /// What `io_uring_register(2)` gives: `ENOMEM` if the process may not lock as much memory,
    /// `EFAULT` for more than 1 GiB.
    ///
    /// # Safety
    ///
    /// The memory is mapped until the ring is dropped.
    pub(crate) unsafe fn register(&self, memory: NonNull<[u8]>) -> io::Result<()> {
        self.assert_own();
        let slice = libc::iovec {
            iov_base: memory.cast().as_ptr(),
            iov_len: memory.len(),
        };
        // SAFETY: mapped for as long as the ring is there, by the caller's promise.
        unsafe { self.ring.submitter().register_buffers(&[slice]) }
    }

    /// How many submissions the queue holds.
    pub(crate) fn entries(&self) -> usize {
        self.ring.params().sq_entries() as usize
    }

    /// Submissions pushed and not yet taken by the kernel.
    pub(crate) fn queued(&self) -> usize {
        // SAFETY: the only view of the submission queue (invariant 2 of the module).
        unsafe { self.submissions() }.len()
    }

    /// Whether the kernel has completions for us, posted or deferred: plain loads, no system call.
    /// (A queue that overflows has some posted.)
    #[inline]
    pub(crate) fn work_pending(&self) -> bool {
        self.assert_own();
        // SAFETY: the only view of the submission queue (invariant 2 of the module), which is mapped: this is
        // the ring's process.
        !self.posted.is_empty() || unsafe { self.ring.submission_shared() }.taskrun()
    }

    /// Whether [`reap`](Self::reap) would find something without entering the kernel.
    #[inline]
    pub(crate) fn completions_posted(&self) -> bool {
        self.assert_own();
        !self.posted.is_empty()
    }

    /// Whether completions wait inside the kernel until the next `enter`: deferred task work, or an
    /// overflown completion queue.
    #[inline]
    pub(crate) fn needs_enter_to_reap(&self) -> bool {
        // SAFETY: the only view of the submission queue (invariant 2 of the module).
        let queue = unsafe { self.submissions() };
        queue.cq_overflow() || queue.taskrun()
    }

    /// Whether the kernel has put off work on operations until the next `enter`, which does some of
    /// it.
    #[inline]
    pub(crate) fn has_deferred_work(&self) -> bool {
        // SAFETY: the only view of the submission queue (invariant 2 of the module).
        unsafe { self.submissions() }.taskrun()
    }

    /// Submits everything pushed, lets the kernel post what it has deferred, and waits as `wait`
    /// says: for one completion, until a deadline, or not at all.
    ///
    /// Returning `Ok` promises nothing but that an attempt was made: a signal, an expired deadline
    /// and a full completion queue all return early. The caller reaps and looks again.
    ///
    /// # Errors
    ///
    /// What `io_uring_enter(2)` gives except `EINTR`, `ETIME`, `EAGAIN` and `EBUSY`.
    #[inline]
    pub(crate) fn enter(&self, wait: Wait) -> io::Result<()> {
        self.enter_with(EnterFlags::empty(), wait)
    }

    /// As [`enter`](Self::enter), where no device is waited for: on a kernel that can tell, the sleep
    /// does not count as I/O wait.
    #[inline]
    pub(crate) fn enter_idle(&self, wait: Wait) -> io::Result<()> {
        let flags = if self.features.has(Feature::NoIoWait) {
            EnterFlags::NO_IOWAIT
        } else {
            EnterFlags::empty()
        };
        self.enter_with(flags, wait)
    }

    #[inline]
    fn enter_with(&self, flags: EnterFlags, wait: Wait) -> io::Result<()> {
        let is_absolute = self.features.has(Feature::AbsoluteWait);
        let mut flags = flags | EnterFlags::GETEVENTS;
        match wait.resolve(&self.anchor, is_absolute) {
            wait::Resolved::Now => self.submit(flags, 0, None),
            wait::Resolved::Forever => self.submit(flags, 1, None),
            wait::Resolved::Until { timespec, absolute } => {
                if absolute {
                    flags |= EnterFlags::ABS_TIMER;
                }
                self.submit(flags, 1, Some(&timespec))
            }
        }
    }

    /// Hands what is pushed to the kernel and nothing more: deferred completions stay deferred, so
    /// that a running slice keeps its "work pending" mark.
    pub(crate) fn submit_only(&self) -> io::Result<()> {
        self.submit(EnterFlags::empty(), 0, None)
    }

    /// The system call. Waits for `wanted` completions, and no longer than `limit` says.
    fn submit(&self, flags: EnterFlags, wanted: u32, limit: Option<&Timespec>) -> io::Result<()> {
        let queued = self.queued();
        self.ring.count_enter();
        let has_distances = !self.features.has(Feature::AbsoluteWait);
        if has_distances {
            self.timeouts.measure();
        }
        let submitter = self.ring.submitter();
        let entered = match limit {
            // SAFETY: no argument is passed, so there is nothing to be valid.
            None => unsafe {
                submitter.enter::<libc::sigset_t>(queued as u32, wanted, flags.bits(), None)
            },
            Some(limit) => {
                let args = SubmitArgs::new().timespec(limit);
                let flags = flags | EnterFlags::EXT_ARG;
                // SAFETY: `args` and the timespec it points to live until the call returns, and
                // `EXT_ARG` tells the kernel that the argument has this type.
                unsafe { submitter.enter(queued as u32, wanted, flags.bits(), Some(&args)) }
            }
        };
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            Ok(taken) => {
                self.counts.entered(taken);
                if has_distances && taken == queued {
                    self.timeouts.taken();
                }
                Ok(())
            }
            // A signal, the deadline, or a queue that wants reaping first: all ordinary.
            Err((Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY), _)) => {
                self.counts.entered(0);
                Ok(())
            }
            Err((_, error)) => Err(error),
        }
    }

    /// # Safety
    ///
    /// It is the only view of the submission queue.
    #[inline]
    unsafe fn submissions(&self) -> squeue::SubmissionQueue<'_> {
        self.assert_own();
        // SAFETY: promised by the caller, and the queue is mapped: this is the ring's process.
        unsafe { self.ring.submission_shared() }
    }

    /// # Safety
    ///
    /// It is the only view of the completion queue.
    #[inline]
    unsafe fn completions(&self) -> cqueue::CompletionQueue<'_> {
        self.assert_own();
        // SAFETY: as above.
        unsafe { self.ring.completion_shared() }
    }

    /// # Panics
    ///
    /// Panics in a child of the process that the ring belongs to.
    #[inline]
    pub(crate) fn assert_own(&self) {
        self.origin().assert_here();
    }

    /// Moves posted completions to `reaped`, in the order in which the kernel posted them.
    pub(crate) fn reap(&self, reaped: &mut Vec<Completion>) {
        let mut batch = [const { MaybeUninit::<cqueue::Entry>::uninit() }; 32];
        loop {
            // SAFETY: the only view of the completion queue (invariant 2 of the module); dropping
            // it at the end of the statement gives the entries back to the kernel.
            let mut queue = unsafe { self.completions() };
            let filled = queue.fill(&mut batch);
            reaped.extend(filled.iter().map(Completion::from));
            if filled.len() < batch.len() {
                return;
            }
        }
    }
}

impl AsRawFd for KernelRing {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }
}
