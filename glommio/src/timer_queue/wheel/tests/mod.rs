//! The wheel's parts, each against its own invariants.

mod level;
// Counts pages of the usual size.
#[cfg(not(timer_queue_small_pages))]
mod slab;
