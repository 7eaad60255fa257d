//! The executor as programs see it. The cases are in `executor/`, by theme.
#![allow(
    clippy::async_yields_async,
    reason = "handles that outlive the run in which they were made are what is tested"
)]

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod blocking;
mod blocking_elastic;
mod blocking_ends;
mod blocking_placement;
mod budget;
mod builder;
#[path = "../common/counting.rs"]
mod counting;
mod drivers;
mod drop_panics;
mod dropped;
mod faults;
mod fork;
mod hangs;
mod io_wait;
mod large_futures;
mod latency;
mod lifetimes;
mod locked_memory;
mod missing_calls;
mod panics;
mod pool;
mod pool_start;
mod preemption;
mod queues;
mod run;
mod scoped;
mod self_wakes;
mod shard_ends;
mod shard_failures;
mod shares;
mod sleeping;
mod spawn;
mod stats;
mod storms;
mod task_panics;
mod teardown;
mod thread_locals;
mod time_namespace;
mod wakers;
