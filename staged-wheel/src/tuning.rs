//! The numbers that the wheel is made with. What the tests make of it has smaller ones (`tests/small.rs`), so that timers move
//! all the time.

/// Nanoseconds to a slot of the lowest level, as a power of two: 1.02 µs.
pub(crate) const FINEST_BITS: u32 = 10;
/// Slots of a level, as a power of two; one less is how much wider those of the next level are.
pub(crate) const SLOT_BITS: u32 = 6;
/// Timers that the inline stage holds; one more and the wheel takes over.
pub(crate) const INLINE_MAX: usize = 255;
/// Records to a page, as a power of two: a page is what is allocated at a time, 12 KiB.
pub(crate) const PAGE_BITS: u32 = 8;
/// So many timers of a slot are sorted when the first is due; more are moved down a level.
pub(crate) const FEW: u32 = 32;
/// Records that a poll may move or gather, besides those it fires.
pub(crate) const MOVES_PER_POLL: usize = 512;
/// Pages in which a poll looks for timers that are overdue: 4,096 timers, some microseconds.
pub(crate) const PAGES_PER_POLL: usize = 16;
/// A slot with so few timers is searched when its earliest one has left; with so few in all, the next expiry is exact.
pub(crate) const SHORT_SLOT: u32 = 8;
