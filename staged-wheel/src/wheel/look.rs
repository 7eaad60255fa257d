//! What a look for crowds has found, and how long that holds: such a look visits many slots, and most polls would
//! find what the one before has.

use super::level::Position;
use super::pace::AHEAD_MIN;
use crate::epoch::NEVER;

/// What the latest look for crowds has found.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) first: Option<Position>,
    /// When to begin with the first of them.
    pub(super) begin_ns: u64,
    /// While the next expiry is before this, no other has come into view.
    pub(super) until_ns: u64,
    /// Timers armed before it.
    pub(super) arms: u64,
}

impl Look {
    pub(super) const NONE: Look = Look {
        first: None,
        begin_ns: NEVER,
        until_ns: 0,
        arms: 0,
    };

    /// Whether another one would find the same, as far as a few timers more or less are no matter, if the
    /// next expiry is that one, and known.
    #[inline]
    pub(super) fn holds(&self, arms: u64, next_ns: u64) -> bool {
        next_ns != UNKNOWN && next_ns <= self.until_ns && arms - self.arms < u64::from(AHEAD_MIN)
    }
}

/// A cached next expiry that is to be found again. Below every deadline, so that no minimum
/// replaces it.
pub(super) const UNKNOWN: u64 = 0;
