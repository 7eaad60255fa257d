//! The rows of the table. What each measures is said in
//! `peers/workloads/src/cases/{channels,locks}.rs`.

use benches::runtime::rows::{Aim, Row, row};

/// Whose channels and locks there are.
pub const CRATES: &str = if cfg!(feature = "peers") {
    "ours,classic,glommio,ng,tokio,flume,async-channel"
} else {
    "ours,classic"
};

/// All rows, in the order of the table.
#[rustfmt::skip]
pub const ALL: &[Row] = &[
    row("local-ping-pong", "local-ping-pong", "two tasks of one executor, there and back", "ns", Aim::RatioAtMost(0.6)),
    row("local-bounded", "local-bounded", "one task to another, room for 64, per item", "ns", Aim::Open),
    row("local-unbounded", "local-unbounded", "same, unbounded", "ns", Aim::Open),
    row("shared-stream", "shared-stream", "one executor to another as fast as both can, one CPU, per item", "ns", Aim::RatioAtMost(0.5)),
    row("shared-stream-apart", "shared-stream-apart", "same, two CPUs", "ns", Aim::RatioAtMost(0.5)),
    row("shared-single", "shared-single", "same, a yield after each item, one CPU", "ns", Aim::RatioAtMost(0.5)),
    row("shared-single-apart", "shared-single-apart", "same, two CPUs", "ns", Aim::RatioAtMost(0.5)),
    row("shared-rtt", "shared-rtt", "two idle executors, there and back, one CPU, p50", "µs", Aim::RatioAtMost(0.45)),
    row("shared-rtt-apart", "shared-rtt-apart", "same, two CPUs", "µs", Aim::Open),
    row("mesh-2", "mesh-2", "2 executors, all to all, per message", "ns", Aim::Open),
    row("mesh-8", "mesh-8", "8 executors, all to all, per message", "ns", Aim::Open),
    row("semaphore-alone", "semaphore-alone", "semaphore, uncontended", "ns", Aim::RatioAtMost(0.5)),
    row("semaphore-100", "semaphore-100", "same, 100 tasks take turns", "ns", Aim::Open),
    row("lock-read-alone", "lock-alone", "lock for reading, uncontended", "ns", Aim::RatioAtMost(0.5)),
    row("lock-write-alone", "lock-alone", "lock for writing, uncontended", "ns", Aim::RatioAtMost(0.5)),
    row("lock-100", "lock-100", "same, 100 tasks take turns", "ns", Aim::Open),
    row("oneshot", "oneshot", "oneshot: make, have a new task reply, await", "ns", Aim::Open),
    row("broadcast-1", "broadcast-1", "broadcast to 1 task, per value", "ns", Aim::Open),
    row("broadcast-10", "broadcast-10", "broadcast to 10 tasks, per value", "ns", Aim::Open),
    row("broadcast-100", "broadcast-100", "broadcast to 100 tasks, per value", "ns", Aim::Open),
    row("cancel-tree", "cancel-tree", "cancel a tree of 10,000 tokens", "µs", Aim::Open),
    row("local-memory", "local-memory", "resident memory per idle local channel, room for 16 numbers", "B", Aim::Open),
    row("shared-memory", "shared-memory", "resident memory per idle channel between executors, room for 16 numbers", "B", Aim::Open),
];
