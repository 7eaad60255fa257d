//! What the allocator has handed out: every allocation of the process is counted.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Handed out and not given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) bytes: u64,
    pub(crate) blocks: u64,
}

/// The sums now. Other threads allocate meanwhile, so that they are a moment apart.
pub(crate) fn allocated() -> Allocated {
    let stats = ALLOCATOR.stats();
    let left = |taken: usize, given: usize| taken.saturating_sub(given) as u64;
    Allocated {
        bytes: left(stats.bytes_allocated, stats.bytes_deallocated),
        blocks: left(stats.allocations, stats.deallocations),
    }
}
