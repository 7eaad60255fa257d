//! How long single appends take, each timed by itself.
//!
//! Reading the clock costs about as much as an append, and the machine may pause at any time: a twin that does nothing
//! but read the clock shows both.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use timelog::{Config, MemLog};

use crate::dataset::{Dataset, Lateness, Order, Row};

pub struct Case {
    pub id: &'static str,
    published: &'static str,
    /// Appends between flushes; every fifth flush is followed by a compaction.
    flush_every: Option<u64>,
}

pub const CASES: &[Case] = &[
    Case {
        id: "K1",
        published: "1.3, 2.8 µs",
        flush_every: None,
    },
    Case {
        id: "K1B",
        published: "1.3, 2.9 µs",
        flush_every: Some(10_000),
    },
];

/// Rows that maintenance moves between two appends.
const STEP_ROWS: usize = 16;

pub fn run(cases: &[&Case], appends: u64, mut out: impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n| Case | Appends | p50 | p99 | p99.9 | max | Published p50, p99 |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;
    for case in cases {
        let (append, clock) = measure(case, appends);
        for (name, times, published) in [("", append, case.published), (" clock alone", clock, "–")]
        {
            let at = |quantile| ns(times.value_at_quantile(quantile));
            let (id, max) = (case.id, ns(times.max()));
            let (p50, p99, p999) = (at(0.5), at(0.99), at(0.999));
            writeln!(
                out,
                "| {id}{name} | {appends} | {p50} | {p99} | {p999} | {max} | {published} |"
            )?;
        }
    }
    Ok(())
}

/// The times of appends, and of nothing, in turn.
fn measure(case: &Case, appends: u64) -> (Histogram<u64>, Histogram<u64>) {
    let config = Config::default().memtable_bytes(64 << 10).sealed_runs(2);
    let mut log = MemLog::<Order>::new(config).expect("a configuration of ours");
    let mut times = [histogram(), histogram()];
    let rows = Dataset::new(appends, 50_000, Lateness::UpTo(500_000), 42);
    for (number, Row { ts, order }) in (1..).zip(rows) {
        let start = Instant::now();
        let appended = log.append(ts, order);
        let took = start.elapsed();
        black_box(appended.expect("no limit is set"));
        record(&mut times[0], took);

        let start = Instant::now();
        record(&mut times[1], start.elapsed());

        match case.flush_every {
            Some(every) if number % every == 0 => {
                log.flush();
                if number % (5 * every) == 0 {
                    log.compact();
                }
            }
            _ => drop(black_box(log.step(STEP_ROWS))),
        }
    }
    assert_eq!(log.snapshot().count(..), appends);
    log.check().expect("the log is sound");
    times.into()
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are supported")
}

fn record(times: &mut Histogram<u64>, took: Duration) {
    let took = u64::try_from(took.as_nanos()).expect("an append takes less than centuries");
    times.record(took).expect("the histogram grows");
}

fn ns(ns: u64) -> String {
    if ns < 10_000 {
        format!("{ns} ns")
    } else {
        format!("{:.1} µs", ns as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_case_and_its_twin() {
        let mut out = Vec::new();
        run(&CASES.iter().collect::<Vec<_>>(), 20_000, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        for id in ["K1", "K1 clock alone", "K1B", "K1B clock alone"] {
            assert_eq!(
                out.matches(&format!("| {id} | 20000 |")).count(),
                1,
                "{out}"
            );
        }
    }
}
