//! What the benches share.

pub mod directory;
pub mod machine;
pub mod outcome;
pub mod page;
#[cfg(feature = "peers")]
pub mod runtime;
pub mod timers;
