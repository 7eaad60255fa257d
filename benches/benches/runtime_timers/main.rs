//! Compares the timers of this repository's glommio with those of the published runtimes.
//!
//! ```text
//! cargo bench -p benches --bench runtime_timers --features peers -- [--rounds 5] [--rows expire] [--crates ours,glommio]
//!     [--write-docs]
//! ```
//!
//! What each row measures is said at its case in `peers/workloads/src/cases`.

use std::process::ExitCode;

use benches::bench::Bench;
use benches::peers::{self, RUNTIMES};
use benches::row::Aim::{AtMost, Open, RatioAtMost, RatioAtMostOrFloor};
use benches::row::{Row, row};

fn main() -> ExitCode {
    Bench {
        name: "runtime_timers",
        ratios: Some(("timers-ratios.svg", "tokio")),
        block: "timers",
        ..peers::BENCH
    }
    .main(rows(), |options| peers::columns(options, RUNTIMES))
}

/// Only our crate has a timer slack: what it saves is in proportion to the same timers without.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    vec![
        row("timer-1k-5s", "timer-1k-5s", "`Timer`: create, poll once, drop; 1k sleepers, 5 s", "ns", RatioAtMost(0.3)),
        row("timer-100k-5s", "timer-100k-5s", "`Timer`: create, poll once, drop; 100k sleepers, 5 s", "ns", RatioAtMost(0.25)),
        row("timer-1k-mixed", "timer-1k-mixed", "same, 1k sleepers, 1 ms to 30 s", "ns", Open),
        row("timer-100k-mixed", "timer-100k-mixed", "same, 100k sleepers, 1 ms to 30 s", "ns", RatioAtMost(0.15)),
        row("timeout-yield", "timeout-yield", "`timeout` around one yield, 10k sleepers", "ns", RatioAtMost(0.45)),
        row("action-cancel", "action-cancel", "`TimerActionOnce`: arm and `cancel().await`", "ns", RatioAtMost(0.5)),
        row("action-destroy", "action-destroy", "same, arm and `destroy`", "ns", Open),
        row("action-rearm", "action-rearm", "same, `rearm_in`", "ns", RatioAtMost(0.3)),
        row("expire-spread-p50", "expire-spread", "100k timers over 1 s: lateness p50", "µs", RatioAtMost(1.0)),
        row("expire-spread-p99", "expire-spread", "same, p99", "µs", RatioAtMost(1.0)),
        row("expire-spread-first", "expire-spread", "same, longest of the first 100", "µs", AtMost(300.0)),
        row("expire-spread-p999", "expire-spread", "same, p99.9", "µs", RatioAtMost(1.0)),
        row("expire-spread-max", "expire-spread", "same, longest", "µs", RatioAtMost(1.0)),
        row("expire-spread-cpu", "expire-spread", "same, CPU to fire all", "ms", RatioAtMost(0.55)),
        row("expire-spread-wakes", "expire-spread", "same, wake-ups of the process", "–", Open),
        row("expire-bystander-first", "expire-bystander", "100k timers over 1 s during allocations of 64 KiB: longest of the first 100", "µs", AtMost(300.0)),
        row("expire-bystander-p999", "expire-bystander", "same, p99.9", "µs", RatioAtMost(1.0)),
        row("expire-bystander-max", "expire-bystander", "same, longest", "µs", RatioAtMost(1.0)),
        row("expire-soon-first", "expire-soon", "100k timers over 1 s, the first in 200 ms: longest of the first 100", "µs", AtMost(300.0)),
        row("expire-soon-p999", "expire-soon", "same, p99.9", "µs", RatioAtMost(1.0)),
        row("expire-soon-max", "expire-soon", "same, longest", "µs", RatioAtMost(1.0)),
        row("expire-1m-first", "expire-1m", "1M timers over 10 s: longest of the first 100", "µs", AtMost(300.0)),
        row("expire-1m-p999", "expire-1m", "same, p99.9", "µs", RatioAtMost(1.0)),
        row("expire-1m-max", "expire-1m", "same, longest", "µs", RatioAtMost(1.0)),
        row("expire-slack-100us-p50", "expire-slack-100us", "100k timers over 1 s, slack 100 µs: lateness p50", "µs", Open).against("expire-spread-p50"),
        row("expire-slack-100us-max", "expire-slack-100us", "same, longest", "µs", Open).against("expire-spread-max"),
        row("expire-slack-100us-cpu", "expire-slack-100us", "same, CPU to fire all", "ms", Open).against("expire-spread-cpu"),
        row("expire-slack-100us-wakes", "expire-slack-100us", "same, wake-ups of the process", "–", Open),
        row("expire-slack-1ms-p50", "expire-slack-1ms", "100k timers over 1 s, slack 1 ms: lateness p50", "µs", Open).against("expire-spread-p50"),
        row("expire-slack-1ms-max", "expire-slack-1ms", "same, longest", "µs", Open).against("expire-spread-max"),
        row("expire-slack-1ms-cpu", "expire-slack-1ms", "same, CPU to fire all", "ms", RatioAtMost(150.0 / 800.0)).against("expire-spread-cpu"),
        row("expire-slack-1ms-wakes", "expire-slack-1ms", "same, wake-ups of the process", "–", Open),
        row("expire-burst-p50", "expire-burst", "100k timers in one ms: p50 until the task ran", "ms", RatioAtMost(0.5)),
        row("expire-burst-p99", "expire-burst", "same, p99", "ms", Open),
        row("expire-burst-p999", "expire-burst", "same, p99.9", "ms", Open),
        row("expire-burst-max", "expire-burst", "same, longest", "ms", Open),
        row("expire-burst-cpu", "expire-burst", "same, CPU to fire all", "ms", Open),
        row("burst-ping-p99", "burst-ping", "TCP ping of the executor in such a burst, p99", "µs", AtMost(300.0)),
        row("burst-ping-max", "burst-ping", "same, longest", "µs", Open),
        row("burst-ping-span", "burst-ping", "same, until all tasks ran", "ms", Open),
        row("overshoot-100us", "overshoot", "overshoot of a 100 µs sleep, p50", "µs", RatioAtMost(0.8)),
        row("overshoot-1ms", "overshoot", "overshoot of a 1 ms sleep, p50", "µs", RatioAtMost(0.8)),
        row("overshoot-10ms", "overshoot", "overshoot of a 10 ms sleep, p50", "µs", Open),
        row("late-yield-now", "late-yield-now", "lateness of a 1 ms sleep next to a self-waking task", "µs", RatioAtMost(0.001)),
        row("late-yield-if-needed", "late-yield-if-needed", "same, next to `yield_if_needed`", "µs", RatioAtMost(0.001)),
        // Below 5 millionths of a CPU an executor is idle, and a ratio of two such figures says nothing.
        row("idle-sleepers", "idle-sleepers", "idle with 10k sleepers, CPU per s", "µs", RatioAtMostOrFloor { ratio: 0.75, floor: 5.0 }),
        row("idle-sleepers-wakes", "idle-sleepers", "same, wake-ups in 5 s", "–", Open),
    ]
}
