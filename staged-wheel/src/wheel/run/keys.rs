//! The keys of a [`Run`](super::Run).

use crate::wheel::entry::RecordState;
use crate::wheel::slab::Slab;

/// Deadline (64 bits), arming count from the base of the run (32), index and one (32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunKey(u128);

impl RunKey {
    #[inline]
    pub(super) fn new(deadline_ns: u64, arm: u32, index: u32) -> Self {
        RunKey(Self::before(deadline_ns, arm).0 | u128::from(index + 1))
    }

    /// Before the key of any timer with that deadline and count.
    #[inline]
    pub(super) fn before(deadline_ns: u64, arm: u32) -> Self {
        RunKey(u128::from(deadline_ns) << 64 | u128::from(arm) << 32)
    }

    /// Behind it.
    #[inline]
    pub(super) fn behind(deadline_ns: u64, arm: u32) -> Self {
        RunKey(Self::before(deadline_ns, arm).0 | u128::from(u32::MAX))
    }

    #[inline]
    pub(super) fn deadline_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    pub(super) fn seq(self, base_seq: u64) -> u64 {
        base_seq + u64::from((self.0 >> 32) as u32)
    }

    /// No record's if it is [before](Self::before) that of a timer.
    #[inline]
    pub(super) fn index(self) -> u32 {
        (self.0 as u32).wrapping_sub(1)
    }

    /// Whether the timer that the key was made for is still armed and in the run.
    #[inline]
    pub(super) fn is_current<T>(self, slab: &Slab<T>, base_seq: u64) -> bool {
        slab.is_current(self.index(), self.seq(base_seq), RecordState::InRun)
    }
}
