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

//!
//! # How an `Instant` is read
//!
//! `Instant::duration_since` is a call into the standard library, and would be a quarter of what
//! arming a timer costs. But an `Instant` can be hashed, and hashing hands its fields to the
//! hasher, in line: whole seconds as an `i64`, then nanoseconds as a `u32`. Nothing promises that
//! this stays so. Hence an epoch asks its hasher about a few instants whose distance it knows;
//! should an answer be wrong, it subtracts by the book from then on.

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// A deadline that no poll reaches.
pub(super) const NEVER: u64 = u64::MAX;

/// The instant that counts as zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    instant: Instant,
    fields: Fields,
    /// Below so many whole seconds after the epoch the fields can be reckoned with. Zero if they
    /// mean something else.
    readable_secs: u64,
}

impl Epoch {
    pub(super) fn new(epoch: Instant) -> Self {
        let fields = Fields::of(epoch);
        let is_readable = PROBES.iter().all(|&distance| {
            let later = epoch.checked_add(distance).map(Fields::of);
            later.is_some_and(|later| later.is_after(fields, distance))
        });
        Epoch {
            instant: epoch,
            fields,
            readable_secs: if is_readable { NEVER / SECOND_NS } else { 0 },
        }
    }

    /// Nanoseconds from the epoch to `deadline`, clamped to `0..=NEVER`.
    #[inline(always)]
    pub(super) fn deadline_ns(&self, deadline: Instant) -> u64 {
        let Fields { secs, nanos } = Fields::of(deadline);
        // Negative distances become huge, and are reckoned by the book.
        let secs = secs.wrapping_sub(self.fields.secs) as u64;
        if secs >= self.readable_secs {
            return self.by_the_book(deadline);
        }
        // Only a deadline within the epoch's own second can lie before it.
        let ns = (secs * SECOND_NS + u64::from(nanos)).saturating_sub(u64::from(self.fields.nanos));
        debug_assert_eq!(ns, self.by_the_book(deadline));
        ns
    }

    /// The same for the time of a poll, kept short of [`NEVER`] so that no clock makes that one
    /// due.
    #[inline(always)]
    pub(super) fn now_ns(&self, now: Instant) -> u64 {
        self.deadline_ns(now).min(NEVER - 1)
    }

    /// The way back. `None` for [`NEVER`], which names no instant.
    #[inline]
    pub(super) fn instant(&self, deadline_ns: u64) -> Option<Instant> {
        // The addition cannot overflow: every number asked about was once an `Instant` of a caller.
        (deadline_ns != NEVER).then(|| self.instant + Duration::from_nanos(deadline_ns))
    }

    /// The same for a timer that has fired, which those of [`NEVER`] do not.
    #[inline]
    pub(super) fn fired_at(&self, deadline_ns: u64) -> Instant {
        self.instant + Duration::from_nanos(deadline_ns)
    }

    #[cold]
    #[inline(never)]
    fn by_the_book(&self, deadline: Instant) -> u64 {
        let since = deadline.saturating_duration_since(self.instant);
        u64::try_from(since.as_nanos()).unwrap_or(NEVER)
    }

    /// An epoch that trusts no fields.
    #[cfg(test)]
    pub(super) fn unreadable(epoch: Instant) -> Self {
        Epoch {
            readable_secs: 0,
            ..Epoch::new(epoch)
        }
    }

    #[cfg(test)]
    pub(super) fn is_readable(&self) -> bool {
        self.readable_secs > 0
    }
}

/// What an instant's hash is made from.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    secs: i64,
    nanos: u32,
}

impl Fields {
    #[inline(always)]
    fn of(instant: Instant) -> Self {
        let mut fields = Fields::default();
        instant.hash(&mut fields);
        fields
    }

    /// Whether these are the seconds and nanoseconds of a moment `distance` after `earlier`.
    fn is_after(self, earlier: Fields, distance: Duration) -> bool {
        let ns = |fields: Fields| {
            let secs_ns = i128::from(fields.secs) * i128::from(SECOND_NS);
            secs_ns + i128::from(fields.nanos)
        };
        let is_split = |fields: Fields| u64::from(fields.nanos) < SECOND_NS;
        is_split(self)
            && is_split(earlier)
            && u128::try_from(ns(self) - ns(earlier)) == Ok(distance.as_nanos())
    }
}

/// Keeps what it is given.
impl Hasher for Fields {
    #[inline(always)]
    fn write_i64(&mut self, secs: i64) {
        self.secs = secs;
    }

    #[inline(always)]
    fn write_u32(&mut self, nanos: u32) {
        self.nanos = nanos;
    }

    // Nothing that is expected; a probe will tell.
    #[inline(always)]
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        0
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// One carry at least whatever the epoch's nanoseconds are, each field alone, and both.
const PROBES: [Duration; 4] = [
    Duration::from_nanos(1),
    Duration::from_nanos(SECOND_NS - 1),
    Duration::from_secs(1),
    Duration::new(1 << 33, 123_456_789),
];
