//! The timers as programs use them, in both kinds of queue: the same laws hold with and without the
//! feature `timing-wheel`.
//!
//! The laws are of two sorts. What must not happen (early, twice, out of order) is asserted. What must
//! happen at some point is awaited, and the watchdog tells when it does not: no test measures how fast
//! the machine is.
#![allow(
    clippy::async_yields_async,
    reason = "timers that outlive the run in which they were made are what is tested"
)]

mod common;

#[path = "timer/batch.rs"]
mod batch;
#[path = "timer/harness.rs"]
mod harness;
#[path = "timer/hooks.rs"]
mod hooks;

#[path = "timer/deadline.rs"]
mod deadline;
#[path = "timer/far.rs"]
mod far;
#[path = "timer/foreign.rs"]
mod foreign;
#[path = "timer/idle.rs"]
mod idle;
#[path = "timer/load.rs"]
mod load;
#[path = "timer/long_round.rs"]
mod long_round;
#[path = "timer/model.rs"]
mod model;
#[path = "timer/once.rs"]
mod once;
#[path = "timer/once_states.rs"]
mod once_states;
#[path = "timer/panics.rs"]
mod panics;
#[path = "timer/reentry.rs"]
mod reentry;
#[path = "timer/reentry_batch.rs"]
mod reentry_batch;
#[path = "timer/repeat.rs"]
mod repeat;
#[path = "timer/repoll.rs"]
mod repoll;
#[path = "timer/reset.rs"]
mod reset;
#[path = "timer/shutdown.rs"]
mod shutdown;
#[path = "timer/slack.rs"]
mod slack;
#[path = "timer/storm.rs"]
mod storm;
#[path = "timer/timeout.rs"]
mod timeout;
