//! Deadlines in the kernel's terms.
//!
//! `Instant` is `CLOCK_MONOTONIC` on Linux, the clock that io_uring uses too, but does not show its
//! value. [`ClockAnchor`] reads both and translates by the distance. The `Instant` is read
//! first, so a translated deadline can lie a few nanoseconds late and never early. A thread that loses its CPU
//! in between would have all its deadlines late by as much for good: the closest of several readings counts.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use io_uring::types::Timespec;
use nix::time::{ClockId, clock_gettime};

use crate::clock;

/// How long an [`enter`](super::Ring::enter) may sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    Now,
    /// Until a completion is there.
    Forever,
    /// Until a completion is there or this instant has come.
    Until(Instant),
}

/// One of the two timeouts that a ring may hold. Two with the same may not be queued at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeoutCell {
    Slice,
    Sleep,
}

pub(super) enum Resolved {
    Now,
    Forever,
    Until { timespec: Timespec, absolute: bool },
}

impl Wait {
    pub(super) fn resolve(self, anchor: &ClockAnchor, absolute: bool) -> Resolved {
        match self {
            Wait::Now => Resolved::Now,
            Wait::Forever => Resolved::Forever,
            Wait::Until(deadline) if absolute => match anchor.timespec_at(deadline) {
                Some(timespec) => Resolved::Until { timespec, absolute },
                None => Resolved::Forever,
            },
            Wait::Until(deadline) => {
                let left = deadline.saturating_duration_since(clock::real());
                if left.is_zero() {
                    Resolved::Now
                } else if left > LONGEST {
                    Resolved::Forever
                } else {
                    Resolved::Until {
                        timespec: left.into(),
                        absolute,
                    }
                }
            }
        }
    }
}

/// A moment, on both clocks.
#[derive(Debug)]
pub(super) struct ClockAnchor {
    instant: Instant,
    monotonic: Duration,
}

/// The kernel counts in signed 64-bit nanoseconds; what does not fit is as good as never.
const LONGEST: Duration = Duration::from_secs(i64::MAX as u64 / 1_000_000_000 / 2);

/// That all of them are interrupted is unlikely.
const READINGS: usize = 5;

impl ClockAnchor {
    pub(super) fn new() -> Self {
        Self::closest([(); READINGS].map(|()| {
            let instant = clock::real();
            let monotonic = clock_gettime(ClockId::CLOCK_MONOTONIC)
                .expect("CLOCK_MONOTONIC exists on every kernel");
            let monotonic = monotonic.into();
            (ClockAnchor { instant, monotonic }, clock::real())
        }))
    }

    /// Each with the time after it was read.
    fn closest(readings: [(ClockAnchor, Instant); READINGS]) -> Self {
        let closest = (readings.into_iter()).min_by_key(|(it, end)| *end - it.instant);
        closest.expect("there are some").0
    }

    /// The absolute monotonic time of `deadline`; `None` if the kernel cannot count that far.
    pub(super) fn moment_at(&self, deadline: Instant) -> Option<Duration> {
        let distance = deadline.saturating_duration_since(self.instant);
        (distance < LONGEST).then(|| self.monotonic + distance)
    }

    /// As [`moment_at`](Self::moment_at), in the form that io_uring takes.
    pub(super) fn timespec_at(&self, deadline: Instant) -> Option<Timespec> {
        self.moment_at(deadline).map(Timespec::from)
    }
}
