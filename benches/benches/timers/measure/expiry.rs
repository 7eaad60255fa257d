//! Polls with 100 of 100,000 timers due.

use benches::timers::{Rotation, TimerQueue};

use super::is_astray;
use super::latency::spread;
use crate::clock::{Cycles, between, cycles, ns_per_cycle};
use crate::figures::{Figure, Figures};

/// Nanoseconds to a timer in the poll; the same with the release of the handles; and cycles to a
/// timer in the poll, p50, p99 and p999 of the polls. The second time that each of the timers fires
/// is measured.
pub fn run<Q: TimerQueue>() -> Figures {
    const TIMERS: usize = 100_000;
    const BATCH: usize = 100;
    let mut rotation = Rotation::<Q>::new(TIMERS, BATCH);
    let mut polls = Cycles::new();
    let (mut in_polls, mut in_releases, mut fired) = (0, 0, 0);
    for poll in 0..2 * TIMERS / BATCH {
        let now = rotation.advance();
        let begin = cycles();
        rotation.expire(now);
        let polled = cycles();
        rotation.release();
        let end = cycles();
        let expired = rotation.arm();
        if poll >= TIMERS / BATCH {
            polls.record(begin, polled);
            in_polls += between(begin, polled);
            in_releases += between(polled, end);
            fired += expired;
        }
    }
    let is_astray = is_astray::<Q>(fired, TIMERS);
    let per_timer = |cycles: u64| cycles as f64 * ns_per_cycle() / fired as f64;
    let [p50, p99, p999] = spread(&polls).map(|cycles| cycles / BATCH as f64);
    [
        per_timer(in_polls),
        per_timer(in_polls + in_releases),
        p50,
        p99,
        p999,
    ]
    .map(|value| Some(Figure { value, is_astray }))
    .to_vec()
}
