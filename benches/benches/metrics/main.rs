//! What the feature `metrics` costs: this repository's glommio with it and without it, on the same workloads.
//!
//! ```text
//! cargo bench -p benches --bench metrics -- [--rounds 15] [--rows timer] [--write-docs]
//! ```
//!
//! The two are the same source, built with other features, so that every function may lie elsewhere in memory: a single
//! row differs by some percent for that alone, in either direction. The line below the table takes all rows together.

use std::process::ExitCode;

use benches::bench::Bench;
use benches::peers;
use benches::row::Aim::Open;
use benches::row::{Row, row};

fn main() -> ExitCode {
    Bench {
        name: "metrics",
        block: "metrics",
        preface: "\"ours\" keeps its timers in the timing wheel, \"metrics\" is \"ours\" with the feature of that name.",
        yardstick: "ours",
        has_sum: true,
        rounds: 15,
        ..peers::BENCH
    }
    .main(rows(), |options| peers::columns(options, &["ours", "metrics"]))
}

/// What an executor counts, once each at least: processor time, or time of a thread that never waits. The aim is one for
/// all of them together: less than a hundredth.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    vec![
        row("spawn-one", "spawn-one", "spawn + await a trivial task, one by one", "ns", Open),
        row("spawn-batch", "spawn-batch", "same, batches of 1000", "ns", Open),
        row("yield-now", "yield-now", "8 tasks yield in turn (self-wake), per switch", "ns", Open),
        row("yield-queue", "yield-queue", "8 tasks, `yield_task_queue_now`, per switch", "ns", Open),
        row("wake-local", "wake-local", "two tasks of one executor wake each other, there and back", "ns", Open),
        row("timer-1k-5s", "timer-1k-5s", "`Timer`: create, poll once, drop; 1k sleepers, 5 s", "ns", Open),
        row("timer-100k-mixed", "timer-100k-mixed", "same, 100k sleepers, 1 ms to 30 s", "ns", Open),
        row("timeout-yield", "timeout-yield", "`timeout` around one yield, 10k sleepers", "ns", Open),
        row("action-cancel", "action-cancel", "`TimerActionOnce`: arm and `cancel().await`", "ns", Open),
        row("action-rearm", "action-rearm", "same, `rearm_in`", "ns", Open),
        row("expire-slack-1ms-cpu", "expire-slack-1ms", "100k timers over 1 s, slack 1 ms, CPU to fire all", "ms", Open),
        row("expire-burst-cpu", "expire-burst", "100k timers in one ms, CPU to fire all", "ms", Open),
        row("tcp-cpu", "tcp", "TCP ping-pong 64 B on one CPU, CPU per round trip", "µs", Open),
        row("tcp-timeout-cpu", "tcp-timeout", "same, with read timeouts", "µs", Open),
        row("udp-rtt", "udp", "UDP ping-pong on one CPU, RTT p50", "µs", Open),
        row("wake-rtt", "wake-idle", "wake there and back between two idle executors on one CPU", "µs", Open),
    ]
}
