//! One slot of a level: a list of timers, how many they are, and how early the first may be.

use super::entry::NIL;

/// The list of one slot, in order of linking.
///
/// Packed, since the tables of all levels together are to be small: 20 bytes instead of 24.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(super) struct Slot {
    /// A lower bound of the deadlines, and one of them unless stale.
    pub(super) min_ns: u64,
    pub(super) head: u32,
    pub(super) tail: u32,
    /// Records in the list. The highest bit says stale: a timer that `min_ns` was taken from has
    /// left, and maybe no other has taken its place.
    pub(super) count: u32,
}

impl Slot {
    pub(super) const EMPTY: Slot = Slot {
        min_ns: u64::MAX,
        head: NIL,
        tail: NIL,
        count: 0,
    };
    const STALE_BIT: u32 = 31;
    const STALE: u32 = 1 << Self::STALE_BIT;

    #[inline]
    pub(super) fn min_ns(&self) -> u64 {
        self.min_ns
    }

    #[inline]
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    #[inline]
    pub(super) fn tail(&self) -> u32 {
        self.tail
    }

    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.count & (Self::STALE - 1)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.count & Self::STALE != 0
    }

    /// Counts one more timer. Without branches: in a slot with few others, any may be the earliest.
    #[inline]
    pub(super) fn enter(&mut self, deadline_ns: u64) {
        let min_ns = self.min_ns;
        self.min_ns = deadline_ns.min(min_ns);
        self.count += 1;
    }

    /// Counts one less.
    #[inline]
    pub(super) fn leave(&mut self, deadline_ns: u64) {
        let is_min = deadline_ns == { self.min_ns };
        self.count = (self.count - 1) | u32::from(is_min) << Self::STALE_BIT;
    }

    /// States the earliest deadline, from the deadline itself.
    #[inline]
    pub(super) fn set_min(&mut self, min_ns: u64) {
        self.min_ns = min_ns;
        self.count &= !Self::STALE;
    }

    #[inline]
    pub(super) fn mark_stale(&mut self) {
        self.count |= Self::STALE;
    }
}
