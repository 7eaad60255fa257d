//! What the benches share.

pub mod directory;
pub mod machine;
#[cfg(feature = "peers")]
pub mod runtime;
pub mod timers;
