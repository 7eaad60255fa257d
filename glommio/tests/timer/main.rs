//! The timers as programs use them, in both kinds of queue: the same laws hold with and without the
//! feature `timing-wheel`.
//!
//! The laws are of two sorts. What must not happen (early, twice, out of order) is asserted. What
//! must happen at some point is awaited, and the watchdog tells when it does not: no test measures
//! how fast the machine is.
#![allow(
    clippy::async_yields_async,
    reason = "timers that outlive the run in which they were made are what is tested"
)]

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

#[path = "../common/counting.rs"]
mod counting;

mod batch;
mod harness;

mod allocations;
mod budget;
mod deadline;
mod delay_queue;
mod delay_queue_random;
mod delay_queue_reentry;
mod far;
mod foreign;
mod future_timeout;
mod idle;
mod interval;
mod interval_random;
mod load;
mod long_round;
mod model;
mod once;
mod once_states;
mod panics;
mod precision;
mod reentry;
mod reentry_batch;
mod repeat;
mod repoll;
mod reset;
mod shutdown;
mod slack;
mod storm;
mod timeout;
