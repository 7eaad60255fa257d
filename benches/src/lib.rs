//! What the benches share.

pub mod command;
pub mod runtime;
pub mod server;
pub mod thread;
pub mod timers;
