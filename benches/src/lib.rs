//! What the benches share.

pub mod timers;
