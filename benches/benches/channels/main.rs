//! Compares the channels and locks of this repository's glommio with those of the published runtimes, and with crates that
//! have channels for any runtime, which run on our executors.
//!
//! ```text
//! cargo bench -p benches --bench channels --features peers -- [--rounds 9] [--rows shared] [--crates ours,glommio]
//!     [--write-docs]
//! ```
//!
//! What each row measures is said in `peers/workloads/src/cases/{channels,locks}.rs`.

use std::process::ExitCode;

use benches::bench::Bench;
use benches::peers::{self, PUBLISHED};
use benches::row::Aim::{Open, RatioAtMost};
use benches::row::{Row, row};

fn main() -> ExitCode {
    Bench {
        name: "channels",
        block: "channels",
        rounds: 9,
        ..peers::BENCH
    }
    .main(rows(), |options| peers::columns(options, CRATES))
}

/// The rows of the table.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    vec![
        row("local-ping-pong", "local-ping-pong", "two tasks of one executor, there and back", "ns", RatioAtMost(0.6)),
        row("local-bounded", "local-bounded", "one task to another, room for 64, per item", "ns", Open),
        row("local-unbounded", "local-unbounded", "same, unbounded", "ns", Open),
        row("shared-stream", "shared-stream", "one executor to another as fast as both can, one CPU, per item", "ns", RatioAtMost(0.5)),
        row("shared-stream-apart", "shared-stream-apart", "same, two CPUs", "ns", RatioAtMost(0.5)),
        row("shared-single", "shared-single", "same, a yield after each item, one CPU", "ns", RatioAtMost(0.5)),
        row("shared-single-apart", "shared-single-apart", "same, two CPUs", "ns", RatioAtMost(0.5)),
        row("shared-rtt", "shared-rtt", "two idle executors, there and back, one CPU, p50", "µs", RatioAtMost(0.45)),
        row("shared-rtt-apart", "shared-rtt-apart", "same, two CPUs", "µs", Open),
        row("mesh-2", "mesh-2", "2 executors, all to all, per message", "ns", Open),
        row("mesh-8", "mesh-8", "8 executors, all to all, per message", "ns", Open),
        row("semaphore-alone", "semaphore-alone", "semaphore, uncontended", "ns", RatioAtMost(0.5)),
        row("semaphore-100", "semaphore-100", "same, 100 tasks take turns", "ns", Open),
        row("lock-read-alone", "lock-alone", "lock for reading, uncontended", "ns", RatioAtMost(0.5)),
        row("lock-write-alone", "lock-alone", "lock for writing, uncontended", "ns", RatioAtMost(0.5)),
        row("lock-100", "lock-100", "same, 100 tasks take turns", "ns", Open),
        row("oneshot", "oneshot", "oneshot: make, have a new task reply, await", "ns", Open),
        row("broadcast-1", "broadcast-1", "broadcast to 1 task, per value", "ns", Open),
        row("broadcast-10", "broadcast-10", "broadcast to 10 tasks, per value", "ns", Open),
        row("broadcast-100", "broadcast-100", "broadcast to 100 tasks, per value", "ns", Open),
        row("cancel-tree", "cancel-tree", "cancel a tree of 10,000 tokens", "µs", Open),
        row("local-memory", "local-memory", "resident memory per idle local channel, room for 16 numbers", "B", Open),
        row("shared-memory", "shared-memory", "resident memory per idle channel between executors, room for 16 numbers", "B", Open),
    ]
}

/// Whose channels and locks there are.
#[rustfmt::skip]
const CRATES: &[&str] = &["ours", "classic", PUBLISHED, "ng", "tokio", "flume", "async-channel"];
