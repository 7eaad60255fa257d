//! `Task` and `JoinHandle`: awaiting, detaching, cancelling, and when futures and outputs are dropped.
#![allow(
    clippy::async_yields_async,
    reason = "tasks whose output is a task are among the cases"
)]

mod common;

#[path = "task/cancel.rs"]
mod cancel;
#[cfg(feature = "debugging")]
#[path = "task/debugging.rs"]
mod debugging;
#[path = "task/handles.rs"]
mod handles;
