//! `Task` and `JoinHandle`: awaiting, detaching, cancelling, and when futures and outputs are
//! dropped.
#![allow(
    clippy::async_yields_async,
    reason = "tasks whose output is a task are among the cases"
)]

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod blocking_send;
mod cancel;
#[cfg(feature = "debugging")]
mod debugging;
mod handles;
mod join_set;
mod local;
mod spans;
