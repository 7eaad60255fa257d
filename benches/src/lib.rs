//! What the benches share.

pub mod command;
pub mod runtime;
pub mod thread;
pub mod timers;
