//! The timeouts a ring keeps in the kernel: they tell a running thread that time is up, and wake a
//! sleeping one. A timeout submission points to its time, which is kept in
//! [`timespecs`](super::timespecs).

#![allow(unsafe_code)]

use std::time::Instant;

use io_uring::opcode;
use io_uring::types::{TimeoutFlags, Timespec};

use super::KernelRing;
use crate::ring::{Feature, QueueFull, TimeoutCell};

impl KernelRing {
    /// Pushes a timeout that completes as `name` at `deadline`.
    pub(crate) fn push_timeout(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        name: u64,
    ) -> Result<(), QueueFull> {
        let (when, flags) = self.set_timespec(cell, deadline);
        let timeout = opcode::Timeout::new(when).flags(flags).build();
        // SAFETY: the time is read when the submission is taken, at an `enter` of this ring, and
        // the boxed cells live as long as the ring.
        unsafe { self.push_entry(&timeout.user_data(name)) }
    }

    /// Pushes an order to move the timeout `name` to `deadline`, itself completing as `user_data`.
    pub(crate) fn push_timeout_move(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        name: u64,
        user_data: u64,
    ) -> Result<(), QueueFull> {
        let (when, flags) = self.set_timespec(cell, deadline);
        let update = opcode::TimeoutUpdate::new(name, when).flags(flags).build();
        // SAFETY: as in `push_timeout`.
        unsafe { self.push_entry(&update.user_data(user_data)) }
    }

    /// Pushes an order to remove the timeout `name`, itself completing as `user_data`.
    pub(crate) fn push_timeout_removal(&self, name: u64, user_data: u64) -> Result<(), QueueFull> {
        let removal = opcode::TimeoutRemove::new(name).build();
        // SAFETY: it points to no memory.
        unsafe { self.push_entry(&removal.user_data(user_data)) }
    }

    fn set_timespec(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
    ) -> (*const Timespec, TimeoutFlags) {
        let is_absolute = self.features.has(Feature::AbsoluteWait);
        let (anchor, flags) = match is_absolute {
            true => (Some(&self.anchor), TimeoutFlags::ABS),
            false => (None, TimeoutFlags::empty()),
        };
        (self.timeouts.set(cell, deadline, anchor), flags)
    }
}
