//! Polls with a batch of many timers due.

use super::is_astray;
use super::latency::spread;
use crate::clock::{Cycles, between, cycles, ns_per_cycle};
use crate::figures::{Figure, Figures};
use crate::queues::TimerQueue;
use crate::workload::Rotation;

/// Nanoseconds to a timer in the poll; and where 100 of 100,000 are due also the same with the release
/// of the handles, and cycles to a timer in the poll, p50, p99 and p999 of the polls. What is measured
/// begins with the second time that each of the timers fires.
pub fn run<Q: TimerQueue>(timers: usize, batch: usize) -> Figures {
    let mut rotation = Rotation::<Q>::new(timers, batch);
    let mut polls = Cycles::new();
    let (mut in_polls, mut in_releases, mut fired) = (0, 0, 0);
    let warm_up = timers / batch;
    let measured = MEASURED.max(timers) / batch;
    for poll in 0..warm_up + measured {
        let now = rotation.advance();
        let begin = cycles();
        rotation.expire(now);
        let polled = cycles();
        rotation.release();
        let end = cycles();
        let expired = rotation.arm();
        if poll >= warm_up {
            polls.record(begin, polled);
            in_polls += between(begin, polled);
            in_releases += between(polled, end);
            fired += expired;
        }
    }
    let is_astray = is_astray::<Q>(fired, measured * batch);
    let per_timer = |cycles: u64| cycles as f64 * ns_per_cycle() / fired as f64;
    let [p50, p99, p999] = spread(&polls).map(|cycles| cycles / batch as f64);
    let figures = [
        per_timer(in_polls),
        per_timer(in_polls + in_releases),
        p50,
        p99,
        p999,
    ];
    let shown = if (timers, batch) == (100_000, 100) {
        5
    } else {
        1
    };
    figures[..shown]
        .iter()
        .map(|&value| Some(Figure { value, is_astray }))
        .collect()
}

/// Timers that fire while it is measured.
const MEASURED: usize = 100_000;
