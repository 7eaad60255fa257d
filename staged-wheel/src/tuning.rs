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
/// So many timers of a slot are sorted when the first is due, and searched when the earliest has left; more are moved down a
/// level.
pub(crate) const FEW: usize = 32;
/// Records that a poll may move or gather, besides those it fires.
pub(crate) const MOVES_PER_POLL: usize = 512;
/// Records that a poll that fires moves ahead of time, for each timer: as many as a timer may pass levels.
pub(crate) const MOVES_PER_TIMER: usize = 4;
/// How long an idle executor takes from one poll to the next, at most, while it moves timers ahead.
pub(crate) const NS_PER_POLL: u64 = 1 << 17;
/// Pages in which a poll looks for timers that are overdue, some microseconds for 4,096 timers, or that it gives back.
pub(crate) const PAGES_PER_POLL: usize = 16;
/// How long a page must have stayed unused, at least: time enough for any burst to come again.
pub(crate) const WINDOW_NS: u64 = 1 << 32;
