//! Compares this repository's glommio with the published runtimes.
//!
//! ```text
//! cargo bench -p benches --bench runtime --features peers -- [--rounds 5] [--rows wake] [--crates ours,glommio] [--write-docs]
//! ```
//!
//! The cases in `peers/workloads/src/cases` say what each row measures. Timers are in the table of `runtime_timers`, and
//! sockets in that of `sockets`.

use std::process::ExitCode;

use benches::bench::Bench;
use benches::peers::{self, RUNTIMES};
use benches::row::Aim::{AtMost, Open, RatioAtLeast, RatioAtMost};
use benches::row::{Row, row};

fn main() -> ExitCode {
    Bench {
        name: "runtime",
        ratios: Some(("runtime-ratios.svg", "tokio")),
        block: "runtime",
        ..peers::BENCH
    }
    .main(rows(), |options| peers::columns(options, RUNTIMES))
}

/// The rows of the table.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    vec![
        row("spawn-one", "spawn-one", "spawn + await a trivial task, one by one", "ns", RatioAtMost(0.5)),
        row("spawn-batch", "spawn-batch", "same, batches of 1000", "ns", RatioAtMost(0.5)),
        row("yield-now", "yield-now", "8 tasks yield in turn (self-wake), per switch", "ns", RatioAtMost(0.6)),
        row("yield-queue", "yield-queue", "8 tasks, `yield_task_queue_now`, per switch", "ns", RatioAtMost(0.6)),
        row("wake-local", "wake-local", "two tasks of one executor wake each other, there and back", "ns", RatioAtMost(0.7)),
        row("bulk", "bulk", "bulk 64 KiB on one CPU", "GB/s", RatioAtLeast(1.0)),
        row("wake-rtt", "wake-idle", "wake there and back between two idle executors on one CPU", "µs", RatioAtMost(0.45)),
        row("wake-rtt-apart", "wake-idle-apart", "same on two CPUs", "µs", Open),
        row("wake-busy-yield-now", "wake-busy-yield-now", "foreign wake next to a self-waking task, p99", "µs", Open),
        row("wake-busy-yield-if-needed", "wake-busy-yield-if-needed", "foreign wake next to `yield_if_needed`, p99", "µs", Open),
        row("executor-start", "executor-start", "start an executor on a thread, run nothing, join", "µs", RatioAtMost(0.02)),
        row("descriptors-left", "executor-start", "descriptors left after 150 such executors", "–", AtMost(0.0)),
        row("executor-drop", "executor-drop", "drop an executor with 100k sleeping tasks", "ms", Open),
        row("executor-memory", "executor-memory", "resident memory per executor", "KiB", RatioAtMost(0.05)),
        row("task-memory", "task-memory", "resident bytes per sleeping task", "B", RatioAtMost(0.9)),
        row("idle-none", "idle-none", "idle with nothing, CPU per s", "µs", Open),
    ]
}
