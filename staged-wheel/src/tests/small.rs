//! The same wheel in a small geometry: four slots a level, pages of four records and polls of a few moves, so that timers
//! move all the time and a few of them are a burst.

#![allow(dead_code, reason = "the tests do not call all of it")]

pub(crate) mod tuning {
    pub(crate) const FINEST_BITS: u32 = 20;
    pub(crate) const SLOT_BITS: u32 = 2;
    pub(crate) const INLINE_MAX: usize = 255;
    pub(crate) const PAGE_BITS: u32 = 2;
    pub(crate) const FEW: usize = 4;
    pub(crate) const MOVES_PER_POLL: usize = 8;
    pub(crate) const MOVES_PER_TIMER: usize = 4;
    pub(crate) const NS_PER_POLL: u64 = 1 << 17;
    pub(crate) const PAGES_PER_POLL: usize = 4;
    pub(crate) const WINDOW_NS: u64 = 1 << 32;
}

#[path = "../wheel/mod.rs"]
pub(crate) mod wheel;
