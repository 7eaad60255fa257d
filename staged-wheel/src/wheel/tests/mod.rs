//! The wheel's parts, each against its own invariants.

#[cfg(test)]
mod level;
mod queue;
// Counts pages of the usual size.
#[cfg(all(test, not(small_wheel)))]
mod slab;
