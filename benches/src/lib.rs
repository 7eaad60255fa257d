//! What the benches share.

mod process;
pub mod run;
pub mod runtime;
pub mod server;
pub mod thread;
