//! The wheel's parts, each against its own invariants.

mod level;
mod slab;
