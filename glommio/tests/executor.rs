//! The executor as programs see it. The cases are in `executor/`, by theme.
#![allow(
    clippy::async_yields_async,
    reason = "handles that outlive the run in which they were made are what is tested"
)]

mod common;

#[path = "executor/blocking.rs"]
mod blocking;
#[path = "executor/blocking_ends.rs"]
mod blocking_ends;
#[path = "executor/blocking_placement.rs"]
mod blocking_placement;
#[path = "executor/builder.rs"]
mod builder;
#[path = "timer_queue/counting.rs"]
mod counting;
#[path = "executor/drop_panics.rs"]
mod drop_panics;
#[path = "executor/dropped.rs"]
mod dropped;
#[path = "executor/faults.rs"]
mod faults;
#[path = "executor/fork.rs"]
mod fork;
#[path = "executor/hangs.rs"]
mod hangs;
#[path = "executor/latency.rs"]
mod latency;
#[path = "executor/lifetimes.rs"]
mod lifetimes;
#[path = "executor/panics.rs"]
mod panics;
#[path = "executor/pool.rs"]
mod pool;
#[path = "executor/pool_start.rs"]
mod pool_start;
#[path = "executor/preemption.rs"]
mod preemption;
#[path = "executor/queues.rs"]
mod queues;
#[path = "executor/run.rs"]
mod run;
#[path = "executor/scoped.rs"]
mod scoped;
#[path = "executor/shares.rs"]
mod shares;
#[path = "executor/sleeping.rs"]
mod sleeping;
#[path = "executor/spawn.rs"]
mod spawn;
#[path = "executor/stats.rs"]
mod stats;
#[path = "executor/storms.rs"]
mod storms;
#[path = "executor/teardown.rs"]
mod teardown;
#[path = "executor/thread_locals.rs"]
mod thread_locals;
#[path = "executor/time_namespace.rs"]
mod time_namespace;
#[path = "executor/wakers.rs"]
mod wakers;
