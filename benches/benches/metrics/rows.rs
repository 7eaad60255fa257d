//! The rows of the table: what an executor counts, once each at least.

use benches::runtime::rows::{Aim, Row, row};

/// Without the feature, and with it.
pub const CRATES: &str = "ours,metrics";

/// All rows, in the order of the table: processor time, or time of a thread that never waits. The aim is one for all
/// of them together: less than a hundredth.
#[rustfmt::skip]
pub const ALL: &[Row] = &[
    row("spawn-one", "spawn-one", "spawn + await a trivial task, one by one", "ns", Aim::Open),
    row("spawn-batch", "spawn-batch", "same, batches of 1000", "ns", Aim::Open),
    row("yield-now", "yield-now", "8 tasks yield in turn (self-wake), per switch", "ns", Aim::Open),
    row("yield-queue", "yield-queue", "8 tasks, `yield_task_queue_now`, per switch", "ns", Aim::Open),
    row("wake-local", "wake-local", "two tasks of one executor wake each other, there and back", "ns", Aim::Open),
    row("timer-1k-5s", "timer-1k-5s", "`Timer`: create, poll once, drop; 1k sleepers, 5 s", "ns", Aim::Open),
    row("timer-100k-mixed", "timer-100k-mixed", "same, 100k sleepers, 1 ms to 30 s", "ns", Aim::Open),
    row("timeout-yield", "timeout-yield", "`timeout` around one yield, 10k sleepers", "ns", Aim::Open),
    row("action-cancel", "action-cancel", "`TimerActionOnce`: arm and `cancel().await`", "ns", Aim::Open),
    row("action-rearm", "action-rearm", "same, `rearm_in`", "ns", Aim::Open),
    row("expire-slack-1ms-cpu", "expire-slack-1ms", "100k timers over 1 s, slack 1 ms, CPU to fire all", "ms", Aim::Open),
    row("expire-burst-cpu", "expire-burst", "100k timers in one ms, CPU to fire all", "ms", Aim::Open),
    row("tcp-cpu", "tcp", "TCP ping-pong 64 B on one CPU, CPU per round trip", "µs", Aim::Open),
    row("tcp-timeout-cpu", "tcp-timeout", "same, with read timeouts", "µs", Aim::Open),
    row("udp-rtt", "udp", "UDP ping-pong on one CPU, RTT p50", "µs", Aim::Open),
    row("wake-rtt", "wake-idle", "wake there and back between two idle executors on one CPU", "µs", Aim::Open),
];
