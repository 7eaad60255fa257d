//! The rows of the table.

use benches::runtime::rows::{
    Aim, LATE_YIELD_NOW, OVERSHOOT_100US, Row, TIMER_100K_5S, TIMER_100K_MIXED, row,
};

/// All rows, in the order of the table. Nobody but us has a timer slack: what it saves is in proportion to the
/// same timers without.
#[rustfmt::skip]
pub const ALL: &[Row] = &[
    row("timer-1k-5s", "timer-1k-5s", "`Timer`: create, poll once, drop; 1k sleepers, 5 s", "ns", Aim::RatioAtMost(0.3)),
    row("timer-10k-5s", "timer-10k-5s", "same, 10k sleepers, 5 s", "ns", Aim::Open),
    TIMER_100K_5S,
    row("timer-1k-mixed", "timer-1k-mixed", "same, 1k sleepers, 1 ms to 30 s", "ns", Aim::Open),
    row("timer-10k-mixed", "timer-10k-mixed", "same, 10k sleepers, 1 ms to 30 s", "ns", Aim::Open),
    TIMER_100K_MIXED,
    row("timeout-yield", "timeout-yield", "`timeout` around one yield, 10k sleepers", "ns", Aim::RatioAtMost(0.45)),
    row("action-cancel", "action-cancel", "`TimerActionOnce`: arm and `cancel().await`", "ns", Aim::RatioAtMost(0.5)),
    row("action-destroy", "action-destroy", "same, arm and `destroy`", "ns", Aim::Open),
    row("action-rearm", "action-rearm", "same, `rearm_in`", "ns", Aim::RatioAtMost(0.3)),
    row("expire-spread-p50", "expire-spread", "100k timers over 1 s: lateness p50", "µs", Aim::RatioAtMost(1.0)),
    row("expire-spread-p99", "expire-spread", "same, p99", "µs", Aim::RatioAtMost(1.0)),
    row("expire-spread-p999", "expire-spread", "same, p99.9", "µs", Aim::Open),
    row("expire-spread-max", "expire-spread", "same, longest", "µs", Aim::Open),
    row("expire-spread-cpu", "expire-spread", "same, CPU to fire all", "ms", Aim::RatioAtMost(0.55)),
    row("expire-spread-wakes", "expire-spread", "same, wake-ups of the process", "–", Aim::Open),
    row("expire-slack-100us-p50", "expire-slack-100us", "100k timers over 1 s, slack 100 µs: lateness p50", "µs", Aim::Open).against("expire-spread-p50"),
    row("expire-slack-100us-max", "expire-slack-100us", "same, longest", "µs", Aim::Open).against("expire-spread-max"),
    row("expire-slack-100us-cpu", "expire-slack-100us", "same, CPU to fire all", "ms", Aim::Open).against("expire-spread-cpu"),
    row("expire-slack-100us-wakes", "expire-slack-100us", "same, wake-ups of the process", "–", Aim::Open),
    row("expire-slack-1ms-p50", "expire-slack-1ms", "100k timers over 1 s, slack 1 ms: lateness p50", "µs", Aim::Open).against("expire-spread-p50"),
    row("expire-slack-1ms-max", "expire-slack-1ms", "same, longest", "µs", Aim::Open).against("expire-spread-max"),
    row("expire-slack-1ms-cpu", "expire-slack-1ms", "same, CPU to fire all", "ms", Aim::RatioAtMost(150.0 / 800.0)).against("expire-spread-cpu"),
    row("expire-slack-1ms-wakes", "expire-slack-1ms", "same, wake-ups of the process", "–", Aim::Open),
    row("expire-burst-p50", "expire-burst", "100k timers in one ms: p50 until the task ran", "ms", Aim::RatioAtMost(0.6)),
    row("expire-burst-p99", "expire-burst", "same, p99", "ms", Aim::Open),
    row("expire-burst-p999", "expire-burst", "same, p99.9", "ms", Aim::Open),
    row("expire-burst-max", "expire-burst", "same, longest", "ms", Aim::Open),
    row("expire-burst-cpu", "expire-burst", "same, CPU to fire all", "ms", Aim::Open),
    row("burst-ping-p99", "burst-ping", "TCP ping of the executor in such a burst, p99", "µs", Aim::AtMost(1000.0)),
    row("burst-ping-max", "burst-ping", "same, longest", "µs", Aim::Open),
    row("burst-ping-span", "burst-ping", "same, until all tasks ran", "ms", Aim::Open),
    OVERSHOOT_100US,
    row("overshoot-1ms", "overshoot", "overshoot of a 1 ms sleep, p50", "µs", Aim::RatioAtMost(0.8)),
    row("overshoot-10ms", "overshoot", "overshoot of a 10 ms sleep, p50", "µs", Aim::Open),
    LATE_YIELD_NOW,
    row("late-yield-if-needed", "late-yield-if-needed", "same, beside `yield_if_needed`", "µs", Aim::RatioAtMost(0.001)),
    // Below 5 millionths of a CPU an executor is idle, and a ratio of two such figures says nothing.
    row("idle-sleepers", "idle-sleepers", "idle with 10k sleepers, CPU per s", "µs", Aim::RatioAtMostOrFloor { ratio: 0.75, floor: 5.0 }),
    row("idle-sleepers-wakes", "idle-sleepers", "same, wake-ups in 5 s", "–", Aim::Open),
];
