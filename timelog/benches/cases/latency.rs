//! Cases K1 and K1B: how long single appends take, each timed by itself.
//!
//! Reading the clock costs about as much as an append, and the machine may pause at any time: a
//! twin that does nothing but read the clock shows both.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::quantiles::{Durations, histogram};
use timelog::Config;

use crate::dataset::Dataset;
use crate::fixture::{finish, new_log};
use crate::writes::{STEP_EVERY, STEP_ROWS};

pub const APPENDS: usize = 100_000;

/// What is measured in a round, in nanoseconds.
pub const FIGURES: [&str; 6] = [
    "p50",
    "p99",
    "p99.9",
    "clock p50",
    "clock p99",
    "a row in all",
];

/// In K1B each 10,000 appends are followed by a flush, and each fifth flush by a compaction.
pub fn round(id: &str) -> [f64; 6] {
    let mut log = new_log(Config::default().memtable_bytes(64 << 10).sealed_runs(2));
    let (mut append, mut clock) = (histogram(), histogram());
    let mut elapsed = Duration::ZERO;
    for (number, (ts, order)) in (1..).zip(Dataset::new(APPENDS, 50_000)) {
        let start = Instant::now();
        let appended = log.append(ts, order);
        let took = start.elapsed();
        black_box(appended.expect("no limit is set"));
        append.enter(took);
        elapsed += took;

        let start = Instant::now();
        clock.enter(start.elapsed());

        let is_flushed = id == "K1B" && number % 10_000 == 0;
        if number % STEP_EVERY == 0 || is_flushed {
            let start = Instant::now();
            black_box(log.step(STEP_ROWS));
            if is_flushed {
                log.flush();
            }
            if is_flushed && number % 50_000 == 0 {
                log.compact();
            }
            elapsed += start.elapsed();
        }
    }
    finish(log, APPENDS);
    let of_append = |part| append.value_at_quantile(part) as f64;
    let of_clock = |part| clock.value_at_quantile(part) as f64;
    [
        of_append(0.5),
        of_append(0.99),
        of_append(0.999),
        of_clock(0.5),
        of_clock(0.99),
        elapsed.as_nanos() as f64 / APPENDS as f64,
    ]
}
