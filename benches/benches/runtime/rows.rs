//! The rows of the table and what we aim at in each.
//!
//! What a row measures exactly, and how it is warmed up, is said at its case in `peers/workloads/src/cases`.

use std::fmt;

/// One figure that every crate is asked for.
#[derive(Debug)]
pub struct Row {
    /// The word for it on the command line and in what the binaries print.
    pub name: &'static str,
    /// The case that yields it, perhaps among others.
    pub case: &'static str,
    /// What it is.
    pub title: &'static str,
    /// In what unit.
    pub unit: &'static str,
    /// Where our crate wants to be.
    pub aim: Aim,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    /// At most this often the figure of glommio 0.9.0.
    RatioAtMost(f64),
    /// At least this often the figure of glommio 0.9.0.
    RatioAtLeast(f64),
    /// As [`Aim::RatioAtMost`]; figures up to `floor` are as good as nothing, and met whatever the ratio.
    RatioAtMostOrFloor { ratio: f64, floor: f64 },
    /// Zero.
    Zero,
    /// Nothing in particular: the row is there to be read.
    Open,
}

/// Whether an aim was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Met,
    /// It was not.
    Missed,
}

impl Row {
    /// Whether the row is asked for by `pattern`.
    pub fn matches(&self, pattern: &str) -> bool {
        self.name.contains(pattern) || self.title.contains(pattern)
    }
}

impl Aim {
    /// Judges `figure`, given that of glommio 0.9.0; `None` where there is nothing to judge or to judge by.
    pub fn verdict(self, figure: Option<f64>, yardstick: Option<f64>) -> Option<Verdict> {
        let figure = figure?;
        let is_met = match self {
            Aim::RatioAtMost(ratio) => figure <= ratio * yardstick?,
            Aim::RatioAtLeast(ratio) => figure >= ratio * yardstick?,
            Aim::RatioAtMostOrFloor { ratio, floor } => {
                figure <= floor || figure <= ratio * yardstick?
            }
            Aim::Zero => figure == 0.0,
            Aim::Open => return None,
        };
        Some(if is_met {
            Verdict::Met
        } else {
            Verdict::Missed
        })
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aim::RatioAtMost(ratio) => write!(formatter, "≤ {ratio}×"),
            Aim::RatioAtLeast(ratio) => write!(formatter, "≥ {ratio}×"),
            Aim::RatioAtMostOrFloor { ratio, floor } => write!(formatter, "≤ {ratio}× or {floor}"),
            Aim::Zero => formatter.write_str("0"),
            Aim::Open => formatter.write_str("—"),
        }
    }
}

const fn row(
    name: &'static str,
    case: &'static str,
    title: &'static str,
    unit: &'static str,
    aim: Aim,
) -> Row {
    Row {
        name,
        case,
        title,
        unit,
        aim,
    }
}

/// All rows, in the order of the table.
#[rustfmt::skip]
pub const ALL: &[Row] = &[
    row("spawn-one", "spawn-one", "spawn + await a trivial task, one by one", "ns", Aim::RatioAtMost(0.5)),
    row("spawn-batch", "spawn-batch", "same, batches of 1000", "ns", Aim::RatioAtMost(0.5)),
    row("yield-now", "yield-now", "8 tasks yield in turn (self-wake), per switch", "ns", Aim::RatioAtMost(0.6)),
    row("yield-queue", "yield-queue", "8 tasks, `yield_task_queue_now`, per switch", "ns", Aim::RatioAtMost(0.6)),
    row("timer-1k-5s", "timer-1k-5s", "`Timer`: create, poll once, drop; 1k sleepers, 5 s", "ns", Aim::RatioAtMost(0.3)),
    row("timer-100k-5s", "timer-100k-5s", "same, 100k sleepers, 5 s", "ns", Aim::RatioAtMost(0.25)),
    row("timer-1k-mixed", "timer-1k-mixed", "same, 1k sleepers, 1 ms to 30 s", "ns", Aim::Open),
    row("timer-100k-mixed", "timer-100k-mixed", "same, 100k sleepers, 1 ms to 30 s", "ns", Aim::RatioAtMost(0.15)),
    row("timeout-yield", "timeout-yield", "`timeout` around one yield, 10k sleepers", "ns", Aim::RatioAtMost(0.45)),
    row("action-cancel", "action-cancel", "`TimerActionOnce`: arm and `cancel().await`", "ns", Aim::RatioAtMost(0.5)),
    row("action-rearm", "action-rearm", "same, `rearm_in`", "ns", Aim::RatioAtMost(0.3)),
    row("expire-spread-p50", "expire-spread", "100k timers over 1 s: lateness p50", "µs", Aim::RatioAtMost(1.0)),
    row("expire-spread-p99", "expire-spread", "same, p99", "µs", Aim::RatioAtMost(1.0)),
    row("expire-spread-cpu", "expire-spread", "same, CPU to fire all", "ms", Aim::RatioAtMost(0.55)),
    row("expire-burst-p50", "expire-burst", "100k timers in one ms: p50 until the task ran", "ms", Aim::RatioAtMost(0.6)),
    row("overshoot-100us", "overshoot", "overshoot of a 100 µs sleep, p50", "µs", Aim::RatioAtMost(0.8)),
    row("overshoot-1ms", "overshoot", "overshoot of a 1 ms sleep, p50", "µs", Aim::RatioAtMost(0.8)),
    row("late-yield-now", "late-yield-now", "lateness of a 1 ms sleep beside a self-waking task", "µs", Aim::RatioAtMost(0.001)),
    row("late-yield-if-needed", "late-yield-if-needed", "same, beside `yield_if_needed`", "µs", Aim::RatioAtMost(0.001)),
    row("tcp-rtt", "tcp", "TCP ping-pong 64 B on one CPU, RTT p50", "µs", Aim::RatioAtMost(0.55)),
    row("tcp-cpu", "tcp", "same, CPU per round trip", "µs", Aim::RatioAtMost(0.37)),
    row("tcp-rtt-apart", "tcp-apart", "same on two CPUs, RTT p50", "µs", Aim::Open),
    row("tcp-cpu-apart", "tcp-apart", "same, CPU per round trip", "µs", Aim::Open),
    row("tcp-timeout-rtt", "tcp-timeout", "TCP ping-pong with read timeouts on one CPU, RTT p50", "µs", Aim::RatioAtMost(0.5)),
    row("tcp-timeout-cpu", "tcp-timeout", "same, CPU per round trip", "µs", Aim::Open),
    row("tcp-timeout-rtt-apart", "tcp-timeout-apart", "same on two CPUs, RTT p50", "µs", Aim::Open),
    row("tcp-timeout-cpu-apart", "tcp-timeout-apart", "same, CPU per round trip", "µs", Aim::Open),
    row("udp-rtt", "udp", "UDP ping-pong on one CPU, RTT p50", "µs", Aim::RatioAtMost(0.53)),
    row("udp-rtt-apart", "udp-apart", "same on two CPUs", "µs", Aim::Open),
    row("echo-cpu", "echo", "echo, 64 connections, one CPU: server CPU per message", "µs", Aim::RatioAtMost(0.8)),
    row("echo-cpu-apart", "echo-apart", "same, client on another CPU", "µs", Aim::Open),
    row("bulk", "bulk", "bulk 64 KiB on one CPU", "GB/s", Aim::RatioAtLeast(1.0)),
    row("bulk-apart", "bulk-apart", "same on two CPUs", "GB/s", Aim::Open),
    row("wake-rtt", "wake-idle", "wake there and back between two idle executors on one CPU", "µs", Aim::RatioAtMost(0.45)),
    row("wake-rtt-apart", "wake-idle-apart", "same on two CPUs", "µs", Aim::Open),
    row("wake-busy-yield-now", "wake-busy-yield-now", "foreign wake beside a self-waking task, p99", "µs", Aim::Open),
    row("wake-busy-yield-if-needed", "wake-busy-yield-if-needed", "foreign wake beside `yield_if_needed`, p99", "µs", Aim::Open),
    row("executor-start", "executor-start", "start an executor on a thread, run nothing, join", "µs", Aim::RatioAtMost(0.02)),
    row("descriptors-left", "executor-start", "descriptors left after 150 such executors", "–", Aim::Zero),
    row("executor-drop", "executor-drop", "drop an executor with 100k sleeping tasks", "ms", Aim::Open),
    row("executor-memory", "executor-memory", "resident memory per executor", "KiB", Aim::RatioAtMost(0.05)),
    row("task-memory", "task-memory", "resident bytes per sleeping task", "B", Aim::RatioAtMost(0.9)),
    // Below 5 millionths of a CPU an executor is idle, and a ratio of two such figures says nothing.
    row("idle-sleepers", "idle-sleepers", "idle with 10k sleepers, CPU per s", "µs", Aim::RatioAtMostOrFloor { ratio: 0.75, floor: 5.0 }),
    row("idle-none", "idle-none", "idle with nothing, CPU per s", "µs", Aim::Open),
];
