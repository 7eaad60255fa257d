//! What queued timeout submissions point to.
//!
//! The kernel reads the time of a timeout when it takes the submission. That memory lives here, as
//! long as the ring: a cell for each timeout that there may be at a time.
//!
//! Where the time is not a moment but a distance to it, it is taken from the clock right before
//! each system call that may submit it. What the kernel adds it to is its own, later reading: a
//! timeout is never early.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::{Duration, Instant};

use io_uring::types::Timespec;

use crate::clock;
use crate::ring::wait::{ClockAnchor, TimeoutCell};

/// Stable places for the times of queued timeout submissions.
#[derive(Default)]
pub(super) struct Timespecs(Box<[Place; 2]>);

#[derive(Default)]
struct Place {
    timespec: Cell<Timespec>,
    /// What to measure the distance to, from the push until the kernel has taken the submission.
    distance_to: Cell<Option<Instant>>,
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
                let now = *now.get_or_insert_with(clock::real);
                let distance = deadline.saturating_duration_since(now);
                place.timespec.set(distance.min(FAR).into());
            }
        }
    }

    /// Notes when a timeout is to end: the moment that `anchor` makes of it, or without one what is
    /// left until then when it is submitted. The kernel reads it through the pointer.
    pub(super) fn set(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        anchor: Option<&ClockAnchor>,
    ) -> *const Timespec {
        let place = &self.0[cell as usize];
        match anchor {
            Some(anchor) => {
                let moment = anchor.timespec_at(deadline);
                place.timespec.set(moment.unwrap_or_else(|| FAR.into()));
            }
            None => place.distance_to.set(Some(deadline)),
        }
        place.timespec.as_ptr()
    }

    /// The kernel has taken all submissions.
    #[inline]
    pub(super) fn taken(&self) {
        for place in self.0.iter() {
            place.distance_to.set(None);
        }
    }
}
