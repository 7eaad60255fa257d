//! The timeouts a ring keeps in the kernel: they tell a running thread that time is up, and wake a
//! sleeping one. A timeout submission points to its time, which is kept in
//! [`timespecs`](super::timespecs).

#![allow(unsafe_code)]

use std::time::Instant;

use super::KernelRing;
use crate::ring::submission::Timespec;
use crate::ring::{Feature, QueueFull, Submission, TimeoutCell};

impl KernelRing {
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
        let anchor = is_absolute.then_some(&self.anchor);
        self.timeouts.set(cell, deadline, anchor)
    }
}
