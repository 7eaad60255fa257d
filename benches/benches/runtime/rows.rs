//! The rows of the table. All about timers is in the table of `runtime_timers`; a few of its rows
//! are here too, to be read next to the others of the same run. Servers under a load from outside,
//! on two CPUs too, are in the table of `sockets`; here both ends of a conversation are of the
//! runtime under measurement.

use benches::runtime::rows::{
    Aim, LATE_YIELD_NOW, OVERSHOOT_100US, Row, TIMER_100K_5S, TIMER_100K_MIXED, row,
};

/// All rows, in the order of the table.
#[rustfmt::skip]
pub const ALL: &[Row] = &[
    row("spawn-one", "spawn-one", "spawn + await a trivial task, one by one", "ns", Aim::RatioAtMost(0.5)),
    row("spawn-batch", "spawn-batch", "same, batches of 1000", "ns", Aim::RatioAtMost(0.5)),
    row("yield-now", "yield-now", "8 tasks yield in turn (self-wake), per switch", "ns", Aim::RatioAtMost(0.6)),
    row("yield-queue", "yield-queue", "8 tasks, `yield_task_queue_now`, per switch", "ns", Aim::RatioAtMost(0.6)),
    row("wake-local", "wake-local", "two tasks of one executor wake each other, there and back", "ns", Aim::RatioAtMost(0.7)),
    TIMER_100K_5S,
    TIMER_100K_MIXED,
    OVERSHOOT_100US,
    LATE_YIELD_NOW,
    row("tcp-rtt", "tcp", "TCP ping-pong 64 B on one CPU, RTT p50", "µs", Aim::RatioAtMost(0.55)),
    row("tcp-cpu", "tcp", "same, CPU per round trip", "µs", Aim::RatioAtMost(0.37)),
    row("tcp-timeout-rtt", "tcp-timeout", "TCP ping-pong with read timeouts on one CPU, RTT p50", "µs", Aim::RatioAtMost(0.5)),
    row("tcp-timeout-cpu", "tcp-timeout", "same, CPU per round trip", "µs", Aim::Open),
    row("udp-rtt", "udp", "UDP ping-pong on one CPU, RTT p50", "µs", Aim::RatioAtMost(0.53)),
    row("bulk", "bulk", "bulk 64 KiB on one CPU", "GB/s", Aim::RatioAtLeast(1.0)),
    row("wake-rtt", "wake-idle", "wake there and back between two idle executors on one CPU", "µs", Aim::RatioAtMost(0.45)),
    row("wake-rtt-apart", "wake-idle-apart", "same on two CPUs", "µs", Aim::Open),
    row("wake-busy-yield-now", "wake-busy-yield-now", "foreign wake next to a self-waking task, p99", "µs", Aim::Open),
    row("wake-busy-yield-if-needed", "wake-busy-yield-if-needed", "foreign wake next to `yield_if_needed`, p99", "µs", Aim::Open),
    row("executor-start", "executor-start", "start an executor on a thread, run nothing, join", "µs", Aim::RatioAtMost(0.02)),
    row("descriptors-left", "executor-start", "descriptors left after 150 such executors", "–", Aim::Zero),
    row("executor-drop", "executor-drop", "drop an executor with 100k sleeping tasks", "ms", Aim::Open),
    row("executor-memory", "executor-memory", "resident memory per executor", "KiB", Aim::RatioAtMost(0.05)),
    row("task-memory", "task-memory", "resident bytes per sleeping task", "B", Aim::RatioAtMost(0.9)),
    row("idle-none", "idle-none", "idle with nothing, CPU per s", "µs", Aim::Open),
];
