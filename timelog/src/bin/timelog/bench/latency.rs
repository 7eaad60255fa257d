//! Cases K1 and K1B: how long single appends take, each timed by itself.
//!
//! Reading the clock costs about as much as an append, and the machine may pause at any time: a
//! twin that does nothing but read the clock shows both.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::quantiles::{Durations, Histogram, histogram};
use timelog::Config;

use super::case::{finish, new_log};
use super::writes::{STEP_EVERY, STEP_ROWS};
use crate::dataset::{Dataset, Lateness, Row};

pub struct Case {
    pub id: &'static str,
    pub what: &'static str,
    /// p50 and p99 in nanoseconds, for version 0.4.5 and 1.3.0.
    pub published: [f64; 2],
    pub newer: [f64; 2],
    /// Appends between flushes; every fifth flush is followed by a compaction.
    flush_every: Option<u64>,
}

pub const CASES: &[Case] = &[
    Case {
        id: "K1",
        what: "steps between, memtable 64 KiB, two runs",
        published: [1_300.0, 2_800.0],
        newer: [267.0, 524.0],
        flush_every: None,
    },
    Case {
        id: "K1B",
        what: "same, a flush each 10,000, a compaction each five flushes",
        published: [1_300.0, 2_900.0],
        newer: [267.0, 399.0],
        flush_every: Some(10_000),
    },
];

pub struct Outcome {
    pub case: &'static Case,
    pub appends: u64,
    pub append: Histogram<u64>,
    pub clock: Histogram<u64>,
    /// Each call of maintenance.
    pub steps: Histogram<u64>,
    /// Appends and maintenance together.
    pub elapsed: Duration,
}

/// p50, p99, p99.9 and the greatest, in nanoseconds.
pub fn quantiles(times: &Histogram<u64>) -> [f64; 4] {
    let at = |quantile| times.value_at_quantile(quantile) as f64;
    [at(0.5), at(0.99), at(0.999), times.max() as f64]
}

/// The times of appends, and of nothing, in turn.
pub fn measure(case: &'static Case, appends: u64) -> Outcome {
    let mut log = new_log(Config::default().memtable_bytes(64 << 10).sealed_runs(2));
    let mut append = histogram();
    let mut clock = histogram();
    let mut steps = histogram();
    let mut elapsed = Duration::ZERO;
    let rows = Dataset::new(appends, 50_000, Lateness::DEFAULT, 42);
    for (number, Row { ts, order }) in (1..).zip(rows) {
        let start = Instant::now();
        let appended = log.append(ts, order);
        let took = start.elapsed();
        black_box(appended.expect("no limit is set"));
        append.enter(took);
        elapsed += took;

        let start = Instant::now();
        clock.enter(start.elapsed());

        let is_flushed = case.flush_every.is_some_and(|every| number % every == 0);
        if number % STEP_EVERY as u64 == 0 || is_flushed {
            let start = Instant::now();
            black_box(log.step(STEP_ROWS));
            if is_flushed {
                log.flush();
                if case
                    .flush_every
                    .is_some_and(|every| number % (5 * every) == 0)
                {
                    log.compact();
                }
            }
            let took = start.elapsed();
            steps.enter(took);
            elapsed += took;
        }
    }
    finish(log, appends as usize);
    Outcome {
        case,
        appends,
        append,
        clock,
        steps,
        elapsed,
    }
}
