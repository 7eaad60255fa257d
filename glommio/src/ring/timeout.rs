//! The timeouts a ring keeps in the kernel: they tell a running thread that time is up, and wake a
//! sleeping one.
//!
//! A timeout submission points to its time, which the kernel reads when it takes the submission. That
//! memory lives here, as long as the ring: a cell for each timeout that there may be at a time.

use std::cell::Cell;
use std::time::Instant;

use super::submission::Timespec;
use super::{QueueFull, Ring, Submission};

/// Stable places for the times of queued timeout submissions.
#[derive(Default)]
pub(super) struct Timespecs(Box<[Cell<Timespec>; 2]>);

/// Which place a timeout uses. Two timeouts with the same may not be queued at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeoutCell {
    Slice,
    AlarmClock,
}

/// Further off than any slice; stands in for deadlines that the kernel cannot count to.
const FAR_SECONDS: u64 = 1 << 32;

impl Ring {
    /// Pushes a timeout that completes as `name` at `deadline`.
    pub(crate) fn push_timeout(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        name: u64,
    ) -> Result<(), QueueFull> {
        let submission = Submission::timeout_at(self.set_timespec(cell, deadline), name);
        // SAFETY: the time is read when the submission is taken, at an `enter` of this ring, and the
        // boxed cells live as long as the ring.
        unsafe { self.push(&submission) }
    }

    /// Pushes an order to move the timeout `name` to `deadline`, itself completing as `user_data`.
    pub(crate) fn push_timeout_move(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        name: u64,
        user_data: u64,
    ) -> Result<(), QueueFull> {
        let at = self.set_timespec(cell, deadline);
        let submission = Submission::timeout_move(name, at, user_data);
        // SAFETY: as in `push_timeout`.
        unsafe { self.push(&submission) }
    }

    /// Pushes an order to remove the timeout `name`, itself completing as `user_data`.
    pub(crate) fn push_timeout_removal(&self, name: u64, user_data: u64) -> Result<(), QueueFull> {
        self.push_memoryless(&Submission::timeout_remove(name, user_data))
    }

    fn set_timespec(&self, cell: TimeoutCell, deadline: Instant) -> *const Timespec {
        let far = || Timespec::new().sec(FAR_SECONDS);
        let timespec = self.anchor.timespec_at(deadline).unwrap_or_else(far);
        let place = &self.timeouts.0[cell as usize];
        place.set(timespec);
        place.as_ptr()
    }
}
