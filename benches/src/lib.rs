//! What the benches share.

pub mod directory;
pub mod machine;
pub mod outcome;
pub mod page;
pub mod plot;
pub mod runtime;
pub mod thread;
pub mod timers;
