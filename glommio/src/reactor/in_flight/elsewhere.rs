//! Operations that a blocking thread does in place of the kernel: those that it [lacks](Op::FEATURE), and
//! those for which it has no worker.
//!
//! It hands to workers what would block. If it has none for this thread yet, and the system has no
//! thread to give, it cancels all that waits for the first. Such an operation is done by a system call
//! on a thread of the pool for calls on files, which may have one, and waits for one otherwise:
//!
//! ```text
//!   Queued ──lacking──▶ a Job, for the first poll ──▶ pool: the call ──▶ result, signal
//!   Submitted ──ECANCELED──▶ │                                              │
//!                            └▶ in the record, a wait for the signal ◀──────┘
//! ```
//!
//! So its end is one of the ring like any other: it ends a sleep, is waited for when the executor ends,
//! and the operation with its memory stays in the table until then.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use nix::sys::eventfd::{EfdFlags, EventFd};

use super::super::op::{OnDrop, Op};
use super::super::user_data::OpKey;
use super::stored::StoredOp;
use crate::ring::{Call, Outcome, Submission};

/// An operation that is done elsewhere, and forgotten, not dropped, before that has a result. In its
/// record is a [`Wait`].
pub(super) struct Elsewhere {
    pub(super) key: OpKey,
    pub(super) op: StoredOp,
    /// Until it is handed to the pool.
    pub(super) job: Option<Job>,
    pub(super) done: Arc<Done>,
}

/// What the thread does. Dropped, it has failed as the operation has.
pub(in crate::reactor) struct Job {
    /// That of the operation of an [`Elsewhere`].
    pub(super) call: Call,
    pub(super) done: Arc<Done>,
}

/// What the thread tells.
pub(super) struct Done {
    /// The call is being made, or will not be made.
    is_begun: AtomicBool,
    pub(super) result: OnceLock<i32>,
    signal: EventFd,
}

/// Waits for the end of a job.
pub(super) struct Wait(pub(super) Arc<Done>);

impl Job {
    /// Blocks.
    pub(in crate::reactor) fn run(self) {
        if !self.done.is_begun.swap(true, Ordering::AcqRel) {
            // SAFETY: what the call points to belongs to the operation in an `Elsewhere`, which is
            // there until there is a result.
            self.done.end(unsafe { self.call.make() });
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.done.give_up();
    }
}

impl Done {
    /// # Errors
    ///
    /// What `eventfd(2)` gives.
    pub(super) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Done {
            is_begun: AtomicBool::new(false),
            result: OnceLock::new(),
            signal: EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?,
        }))
    }

    /// The call is left out, if it is not being made.
    pub(super) fn give_up(&self) {
        if !self.is_begun.swap(true, Ordering::AcqRel) {
            self.end(-libc::ECANCELED);
        }
    }

    fn end(&self, result: i32) {
        let _first = self.result.set(result);
        let told = self.signal.write(1);
        debug_assert!(told.is_ok(), "it counts to more than one");
    }
}

impl Op for Wait {
    type Output = ();

    const ON_DROP: OnDrop = OnDrop::Finish;

    fn submission(&mut self) -> Submission<'_> {
        Submission::poll_once(self.0.signal.as_fd().as_raw_fd(), libc::POLLIN as u32)
    }

    fn complete(self, _: Outcome) -> io::Result<()> {
        Ok(())
    }
}
