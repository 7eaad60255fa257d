//! What the log is held against: floors, which are bare loops over the same rows, and std's
//! collections.
//!
//! The rows are of 16 bytes here, so that the log has nothing to hide behind: the less there is to
//! copy, the more its own work weighs. A bar and its floor run one after the other in each round,
//! and the ratio of each round counts.

mod data;
mod floors;
mod ours;
mod peers;

use data::{Data, Pair, flushing, new, unflushed};
use floors::{
    column_moments, copy, merge, push, scan, scan_stretches, search, search_and_read, sort,
    stretches, sum, sum_apart, two_searches,
};
use ours::*;
use peers::*;
use support::process::resident_bytes;
use support::quantiles::{Samples, Spread};
use timelog::{Config, Ts};

use super::sample::Sample;
use super::writes::STEP_ROWS;
use crate::dataset::{Dataset, Lateness};

/// How a ratio is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// At least this share of the floor's rate.
    Rate(f64),
    /// At most so many times the floor's time.
    Time(f64),
    /// At most so many nanoseconds.
    Nanoseconds(f64),
    /// Nothing: told for comparison, as a share of the other's rate.
    Nothing,
}

impl Wanted {
    pub fn is_met(self, ratio: f64) -> Option<bool> {
        match self {
            Self::Rate(bar) => Some(ratio >= bar),
            Self::Time(bar) | Self::Nanoseconds(bar) => Some(ratio <= bar),
            Self::Nothing => None,
        }
    }
}

pub struct Bar {
    pub what: &'static str,
    pub floor: &'static str,
    pub wanted: Wanted,
    run: fn(&Data) -> (Sample, Sample),
}

/// The rounds of a bar.
pub struct Outcome {
    pub what: &'static str,
    pub floor: &'static str,
    pub wanted: Wanted,
    /// Nanoseconds of an operation of the log and of the floor, by the medians.
    pub ns: f64,
    pub floor_ns: f64,
    /// Of the rounds, in the terms of `wanted`.
    pub ratio: Spread,
    /// That of the quickest rounds of each, which noise has met least.
    pub quickest: f64,
}

impl Outcome {
    pub fn is_met(&self) -> Option<bool> {
        self.wanted.is_met(self.ratio.median)
    }
}

const fn bar(
    what: &'static str,
    floor: &'static str,
    wanted: Wanted,
    run: fn(&Data) -> (Sample, Sample),
) -> Bar {
    Bar {
        what,
        floor,
        wanted,
        run,
    }
}

use Wanted::{Nanoseconds, Nothing, Rate, Time};

pub const BARS: &[Bar] = &[
    bar("ingest by 10,000, unflushed", "copy", Rate(0.62), |d| {
        (ingest(&d.late05, unflushed(), false), copy(&d.late05))
    }),
    bar("same, flushed, in order", "copy", Rate(0.55), |d| {
        (ingest(&d.late00, flushing(), true), copy(&d.late00))
    }),
    bar("same, 5 % late", "copy", Rate(0.5), |d| {
        (ingest(&d.late05, flushing(), true), copy(&d.late05))
    }),
    bar("same, 20 % late", "copy", Rate(0.4), |d| {
        (ingest(&d.late20, flushing(), true), copy(&d.late20))
    }),
    bar("20 % late, flushed", "in order, flushed", Rate(0.3), |d| {
        (
            ingest(&d.late20, flushing(), true),
            ingest(&d.late00, flushing(), true),
        )
    }),
    bar("`append` each", "push to two columns", Rate(0.27), |d| {
        (append(&d.late05, unflushed(), None), push(&d.late05))
    }),
    bar(
        "`append` each, steps between, flushed",
        "same, flushed by the writer",
        Rate(0.85),
        |d| {
            (
                append(&d.late05, Config::default(), Some(STEP_ROWS)),
                append(&d.late05, flushing(), Some(0)),
            )
        },
    ),
    bar(
        "ingest, shuffled",
        "stable sort of 10,000",
        Rate(0.37),
        |d| (ingest(&d.shuffled, unflushed(), false), sort(&d.shuffled)),
    ),
    bar(
        "ingest, 5 % late by 10 s",
        "stable sort of 10,000 shuffled",
        Rate(0.37),
        |d| (ingest(&d.late_10s, unflushed(), false), sort(&d.shuffled)),
    ),
    bar(
        "ingest, 5 % late over all history",
        "stable sort of 10,000 shuffled",
        Rate(0.37),
        |d| (ingest(&d.late_all, unflushed(), false), sort(&d.shuffled)),
    ),
    bar(
        "`spans` of 100,000, timestamps summed",
        "sum, cut into its pages",
        Rate(0.8),
        |d| {
            let (end, rows) = first_rows(d);
            (span_sum(&d.log, end, rows), sum_apart(&d.apart, rows))
        },
    ),
    bar(
        "`spans` of 100,000, timestamps summed",
        "sum",
        Nothing,
        |d| {
            let (end, rows) = first_rows(d);
            (span_sum(&d.log, end, rows), sum(&d.ts[..rows]))
        },
    ),
    bar(
        "`spans` of all, timestamps summed",
        "sum, cut into its pages",
        Nothing,
        |d| {
            let rows = d.ts.len();
            (span_sum(&d.log, Ts::MAX, rows), sum_apart(&d.apart, rows))
        },
    ),
    bar("`spans` of all, timestamps summed", "sum", Nothing, |d| {
        (span_sum(&d.log, Ts::MAX, d.ts.len()), sum(&d.ts))
    }),
    bar(
        "`spans` of all in pages of 65,536, summed",
        "sum",
        Rate(0.85),
        |d| (span_sum(&d.wide, Ts::MAX, d.ts.len()), sum(&d.ts)),
    ),
    bar(
        "`spans`: least, greatest, mean, deviation",
        "the same over a column",
        Rate(0.8),
        |d| (span_moments(d), column_moments(d)),
    ),
    bar("scan by `next`", "scan", Rate(0.18), |d| {
        (scan_rows(&d.log, d.ts.len()), scan(d))
    }),
    bar("scan by `next_slice`", "scan", Rate(0.7), |d| {
        (scan_slices(d), scan(d))
    }),
    bar("scan by `fold`", "scan", Nothing, |d| {
        (scan_fold(&d.log), scan(d))
    }),
    bar(
        "scan backward by `next_back`",
        "scan by `next`",
        Nothing,
        |d| (scan_back(d), scan_rows(&d.log, d.ts.len())),
    ),
    bar(
        "scan of eight disjoint sources",
        "scan of one",
        Rate(0.8),
        |d| {
            (
                scan_rows(&d.disjoint, d.ts.len()),
                scan_rows(&d.log, d.ts.len()),
            )
        },
    ),
    bar(
        "scan of four interleaved sources",
        "merge of four columns",
        Rate(0.37),
        |d| (scan_rows(&d.interleaved, d.ts.len()), merge(d)),
    ),
    bar("point", "search", Time(1.7), |d| {
        (points(&d.log, &d.wanted), search(d))
    }),
    bar("`count` of any width", "two searches", Time(1.7), |d| {
        (counts(&d.log, d), two_searches(d))
    }),
    bar(
        "range of 100 rows by `fold`",
        "search, and read",
        Time(1.2),
        |d| (short_ranges_folded(&d.log, d), search_and_read(d)),
    ),
    bar(
        "range of 100 rows by `next`",
        "search, and read",
        Time(1.5),
        |d| (short_ranges(&d.log, d), search_and_read(d)),
    ),
    bar("point, many segments", "search", Nothing, |d| {
        (points(&d.many, &d.wanted), search(d))
    }),
    bar("`count`, many segments", "two searches", Nothing, |d| {
        (counts(&d.many, d), two_searches(d))
    }),
    bar(
        "range of 100 rows by `next`, many segments",
        "search, and read",
        Nothing,
        |d| (short_ranges(&d.many, d), search_and_read(d)),
    ),
    bar(
        "scan by `next`, many segments",
        "one segment",
        Nothing,
        |d| {
            (
                scan_rows(&d.many, d.ts.len()),
                scan_rows(&d.log, d.ts.len()),
            )
        },
    ),
    bar("point, lived in", "one segment", Nothing, |d| {
        (points(&d.lived, &d.lived_wanted), points(&d.log, &d.wanted))
    }),
    bar("`count`, lived in", "one segment", Nothing, |d| {
        (counts(&d.lived, d), counts(&d.log, d))
    }),
    bar(
        "range of 100 rows by `next`, lived in",
        "one segment",
        Nothing,
        |d| (short_ranges(&d.lived, d), short_ranges(&d.log, d)),
    ),
    bar("scan by `next`, lived in", "one segment", Nothing, |d| {
        let rows = d.lived.count(..) as usize;
        (scan_rows(&d.lived, rows), scan_rows(&d.log, d.ts.len()))
    }),
    bar(
        "deletes of one row, a step after each",
        "",
        Nanoseconds(10_000.0),
        |d| twice(point_deletes(d)),
    ),
    bar("`prev_before`", "`next_after`", Time(1.3), |d| {
        (prev_before(d), next_after(d))
    }),
    bar("`last`", "`first`", Time(1.3), |d| (last(d), first(d))),
    bar("snapshot, nothing written", "", Nanoseconds(50.0), |d| {
        twice(snapshots(d, false))
    }),
    bar("append and snapshot", "", Nanoseconds(300.0), |d| {
        twice(snapshots(d, true))
    }),
    bar(
        "delete, the median of 2,000",
        "",
        Nanoseconds(1_300.0),
        |d| twice(deletes(d).0),
    ),
    bar("scan after 2,000 deletes", "before them", Rate(0.8), |d| {
        let (_, mut log) = deletes(d);
        let snapshot = log.snapshot();
        let rows = snapshot.count(..) as usize;
        (scan_rows(&snapshot, rows), scan_rows(&d.log, d.ts.len()))
    }),
    bar(
        "scan by `fold` after 2,000 deletes",
        "scan of what they leave",
        Nothing,
        |d| {
            let (_, mut log) = deletes(d);
            let snapshot = log.snapshot();
            let stretches = stretches(d, &snapshot);
            (scan_fold(&snapshot), scan_stretches(d, &stretches))
        },
    ),
    bar(
        "scan by `fold` after 2,000 deletes",
        "before them",
        Nothing,
        |d| {
            let (_, mut log) = deletes(d);
            (scan_fold(&log.snapshot()), scan_fold(&d.log))
        },
    ),
    bar(
        "scan of what 2,000 deletes leave, bare",
        "scan",
        Nothing,
        |d| {
            let (_, mut log) = deletes(d);
            let stretches = stretches(d, &log.snapshot());
            (scan_stretches(d, &stretches), scan(d))
        },
    ),
    bar(
        "ingest by 10,000, 5 % late, flushed",
        "`BTreeMap`",
        Rate(1.0),
        |d| (ingest(&d.late05, flushing(), true), btree_ingest(d).0),
    ),
    bar("scan by `next`", "`BTreeMap`", Rate(1.0), |d| {
        (scan_rows(&d.log, d.ts.len()), btree_scan(d))
    }),
    bar("`count` of a thousandth", "`BTreeMap`", Rate(1.0), |d| {
        (thousandths(d), btree_thousandths(d))
    }),
    bar("delete of 100 rows", "`BTreeMap`", Rate(1.0), |d| {
        (deletes(d).0, btree_deletes(d))
    }),
    bar("point", "`BTreeMap`", Time(1.3), |d| {
        (points(&d.log, &d.wanted), btree_points(d))
    }),
    bar(
        "ingest by 10,000, 5 % late, flushed",
        "sorted `Vec`",
        Nothing,
        |d| (ingest(&d.late05, flushing(), true), vec_ingest(d)),
    ),
    bar(
        "scan by `next_slice`",
        "sorted `Vec` of pairs",
        Nothing,
        |d| (scan_slices(d), vec_scan(d)),
    ),
    bar("point", "sorted `Vec` of pairs", Nothing, |d| {
        (points(&d.log, &d.wanted), vec_points(d))
    }),
];

/// The first 100,000 rows, and those with the timestamp of the last of them: that, and their number.
fn first_rows(data: &Data) -> (Ts, usize) {
    let end = data.ts[data.ts.len().min(100_000) - 1];
    (end, data.ts.partition_point(|ts| *ts <= end))
}

/// Runs those that are chosen, interleaved.
pub fn measure(
    rows: usize,
    rounds: u32,
    is_chosen: impl Fn(&Bar) -> bool,
    mut tick: impl FnMut(),
) -> Vec<Outcome> {
    let bars: Vec<&Bar> = BARS.iter().filter(|bar| is_chosen(bar)).collect();
    let data = Data::new(rows);
    let mut measured = vec![Vec::new(); bars.len()];
    for round in 0..=rounds {
        for (bar, samples) in bars.iter().zip(&mut measured) {
            tick();
            let pair = (bar.run)(&data);
            // The first round warms up.
            if round > 0 {
                samples.push(pair);
            }
        }
    }
    let outcomes = bars.iter().zip(measured);
    outcomes.map(|(bar, pairs)| outcome(bar, &pairs)).collect()
}

fn outcome(bar: &Bar, pairs: &[(Sample, Sample)]) -> Outcome {
    let ns = |sample: &Sample| sample.elapsed.as_nanos() as f64 / sample.operations.max(1) as f64;
    let ratio = |ours: f64, floor: f64| match bar.wanted {
        Rate(_) | Nothing => floor / ours,
        Time(_) => ours / floor,
        Nanoseconds(_) => ours,
    };
    let spread = |values: Samples| values.spread().expect("there is a round at least");
    let ours = spread(pairs.iter().map(|pair| ns(&pair.0)).collect());
    let floor = spread(pairs.iter().map(|pair| ns(&pair.1)).collect());
    let ratios = pairs.iter().map(|pair| ratio(ns(&pair.0), ns(&pair.1)));
    Outcome {
        what: bar.what,
        floor: bar.floor,
        wanted: bar.wanted,
        ns: ours.median,
        floor_ns: floor.median,
        ratio: spread(ratios.collect()),
        quickest: ratio(ours.min, floor.min),
    }
}

/// Bytes that the process holds for a flushed row, over the bytes of the row. To be called first,
/// as memory that was freed before would serve the log unseen.
pub fn memory(rows: usize) -> Option<f64> {
    let before = resident_bytes().ok()?;
    let mut log = new(flushing());
    let mut dataset = Dataset::new(rows as u64, 50_000, Lateness::DEFAULT, 42);
    loop {
        let batch: Vec<Pair> = dataset
            .by_ref()
            .take(10_000)
            .map(|row| (row.ts, row.order.id))
            .collect();
        if batch.is_empty() {
            break;
        }
        log.extend(batch).expect("no limit is set");
    }
    log.flush();
    let after = resident_bytes().ok()?;
    assert_eq!(log.stats().segment_rows, rows);
    Some(after.saturating_sub(before) as f64 / (rows * 16) as f64)
}

fn twice(sample: Sample) -> (Sample, Sample) {
    (sample, sample)
}
