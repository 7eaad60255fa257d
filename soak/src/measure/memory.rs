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

#[cfg(test)]
mod tests {
    use super::*;

    // Other tests allocate at the same time, but nothing as large.
    #[test]
    fn what_is_held_counts_and_what_is_dropped_does_not() {
        const BYTES: usize = 256 << 20;
        let before = allocated();
        let held = vec![1_u8; BYTES];
        let within = allocated();
        assert!(within.bytes > before.bytes + BYTES as u64 / 2 && held.len() == BYTES);
        drop(held);
        assert!(allocated().bytes < within.bytes - BYTES as u64 / 2);
        assert!(within.blocks > 0);
    }
}
