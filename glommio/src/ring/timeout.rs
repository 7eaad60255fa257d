//! The timeouts a ring keeps in the kernel: they tell a running thread that time is up, and wake a
//! sleeping one.
//!
//! A timeout submission points to its time, which the kernel reads when it takes the submission.
//! That memory lives here, as long as the ring: a cell for each timeout that there may be at a
//! time.
//!
//! Where the time is not a moment but a distance to it, it is taken from the clock right before
//! each system call that may submit it. What the kernel adds it to is its own, later reading: a
//! timeout is never early.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::submission::Timespec;
use super::{Feature, QueueFull, Ring, Submission};

/// Stable places for the times of queued timeout submissions.
#[derive(Default)]
pub(super) struct Timespecs(Box<[Place; 2]>);

#[derive(Default)]
struct Place {
    timespec: Cell<Timespec>,
    /// What to measure the distance to, from the push until the kernel has taken the submission.
    distance_to: Cell<Option<Instant>>,
}

/// Which place a timeout uses. Two timeouts with the same may not be queued at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeoutCell {
    Slice,
    Sleep,
}

/// Further off than any slice; stands in for deadlines that the kernel cannot count to.
const FAR: Duration = Duration::from_secs(1 << 32);

impl Timespecs {
    /// Right before a system call that submits.
    #[inline]
    pub(super) fn measure(&self) {
        let mut now = None;
        for place in self.0.iter() {
            if let Some(deadline) = place.distance_to.get() {
                let now = *now.get_or_insert_with(Instant::now);
                let distance = deadline.saturating_duration_since(now);
                place.timespec.set(distance.min(FAR).into());
            }
        }
    }

    /// The kernel has taken all submissions.
    #[inline]
    pub(super) fn taken(&self) {
        for place in self.0.iter() {
            place.distance_to.set(None);
        }
    }
}

impl Ring {
    /// Pushes a timeout that completes as `name` at `deadline`.
    pub(crate) fn push_timeout(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        name: u64,
    ) -> Result<(), QueueFull> {
        let is_absolute = self.features.has(Feature::AbsoluteWait);
        let when = self.set_timespec(cell, deadline, is_absolute);
        let submission = Submission::timeout(when, is_absolute).with_user_data(name);
        // SAFETY: the time is read when the submission is taken, at an `enter` of this ring, and
        // the boxed cells live as long as the ring.
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
        let is_absolute = self.features.has(Feature::AbsoluteWait);
        let when = self.set_timespec(cell, deadline, is_absolute);
        let submission =
            Submission::timeout_move(name, when, is_absolute).with_user_data(user_data);
        // SAFETY: as in `push_timeout`.
        unsafe { self.push(&submission) }
    }

    /// Pushes an order to remove the timeout `name`, itself completing as `user_data`.
    pub(crate) fn push_timeout_removal(&self, name: u64, user_data: u64) -> Result<(), QueueFull> {
        self.push_memoryless(&Submission::timeout_remove(name).with_user_data(user_data))
    }

    fn set_timespec(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        is_absolute: bool,
    ) -> *const Timespec {
        let place = &self.timeouts.0[cell as usize];
        if is_absolute {
            let moment = self.anchor.timespec_at(deadline);
            place.timespec.set(moment.unwrap_or_else(|| FAR.into()));
        } else {
            place.distance_to.set(Some(deadline));
        }
        place.timespec.as_ptr()
    }
}
