//! The one timeout a ring keeps in the kernel, which tells a running thread that time is up.
//!
//! A timeout submission points to its time, which the kernel reads when it takes the submission. That
//! memory lives here, as long as the ring; there is one cell, hence one timeout at a time.

use std::cell::Cell;
use std::time::Instant;

use super::submission::Timespec;
use super::{QueueFull, Ring, Submission};

/// A stable place for the time of a queued timeout submission.
#[derive(Default)]
pub(super) struct TimespecCell(Box<Cell<Timespec>>);

/// Further off than any slice; stands in for deadlines that the kernel cannot count to.
const FAR_SECONDS: u64 = 1 << 32;

impl Ring {
    /// Pushes a timeout that completes as `name` at `deadline`.
    pub(crate) fn push_timeout(&self, deadline: Instant, name: u64) -> Result<(), QueueFull> {
        let submission = Submission::timeout_at(self.set_timespec(deadline), name);
        // SAFETY: the time is read when the submission is taken, at an `enter` of this ring, and the
        // boxed cell lives as long as the ring.
        unsafe { self.push(&submission) }
    }

    /// Pushes an order to move the timeout `name` to `deadline`, itself completing as `user_data`.
    pub(crate) fn push_timeout_move(
        &self,
        deadline: Instant,
        name: u64,
        user_data: u64,
    ) -> Result<(), QueueFull> {
        let submission = Submission::timeout_move(name, self.set_timespec(deadline), user_data);
        // SAFETY: as in `push_timeout`.
        unsafe { self.push(&submission) }
    }

    /// Pushes an order to remove the timeout `name`, itself completing as `user_data`.
    pub(crate) fn push_timeout_removal(&self, name: u64, user_data: u64) -> Result<(), QueueFull> {
        self.push_memoryless(&Submission::timeout_remove(name, user_data))
    }

    fn set_timespec(&self, deadline: Instant) -> *const Timespec {
        let far = || Timespec::new().sec(FAR_SECONDS);
        let timespec = self.anchor.timespec_at(deadline).unwrap_or_else(far);
        self.timeout.0.set(timespec);
        self.timeout.0.as_ptr()
    }
}
