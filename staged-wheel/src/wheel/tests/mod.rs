//! The wheel's parts, each against its own invariants.

mod level;
// Counts pages of the usual size.
#[cfg(not(small_pages))]
mod slab;
