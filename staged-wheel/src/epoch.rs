//! The one number the queues reckon in: nanoseconds since the queue was made.
//!
//! A `u64` of nanoseconds is half an [`Instant`], compares in one instruction and divides into
//! ticks by a shift. It reaches 584 years past the epoch; what lies outside is clamped, and every
//! queue of this module clamps alike, so that they agree on every deadline:
//!
//! ```text
//!   before the epoch │ 0 ........ 2^64 - 2 │ 2^64 - 1 and later
//!        counts as 0 │ itself              │ NEVER: counted, cancellable, due at no time at all
//! ```

use std::time::{Duration, Instant};

/// A deadline that no poll reaches.
pub(super) const NEVER: u64 = u64::MAX;

/// The instant that counts as zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch(Instant);

impl Epoch {
    pub(super) fn new(epoch: Instant) -> Self {
        Epoch(epoch)
    }

    /// Nanoseconds from the epoch to `deadline`, clamped to `0..=NEVER`.
    #[inline]
    pub(super) fn deadline_ns(&self, deadline: Instant) -> u64 {
        let since = deadline.saturating_duration_since(self.0);
        // Below 2^33 seconds, nanoseconds do not overflow.
        if since.as_secs() < 1 << 33 {
            since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
        } else {
            u64::try_from(since.as_nanos()).unwrap_or(NEVER)
        }
    }

    /// The same for the time of a poll, kept short of [`NEVER`] so that no clock makes that one
    /// due.
    #[inline]
    pub(super) fn now_ns(&self, now: Instant) -> u64 {
        self.deadline_ns(now).min(NEVER - 1)
    }

    /// The way back. `None` for [`NEVER`], which names no instant.
    #[inline]
    pub(super) fn instant(&self, deadline_ns: u64) -> Option<Instant> {
        (deadline_ns != NEVER).then(|| self.fired_at(deadline_ns))
    }

    /// The same for a timer that has fired, which those of [`NEVER`] do not.
    #[inline]
    pub(super) fn fired_at(&self, deadline_ns: u64) -> Instant {
        // The addition cannot overflow: every number asked about was once an `Instant` of a caller.
        self.0 + Duration::from_nanos(deadline_ns)
    }
}
