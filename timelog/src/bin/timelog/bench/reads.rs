//! Cases B, F and G: iteration, points, spans.

use std::collections::HashSet;
use std::hint::black_box;

use timelog::{Batch, Config, Every, Ts};

use super::case::{Case, Fixture, Form, ROWS, SECOND, finish, new_log, pairs, read, write};
use super::sample::{Sample, timed, timed_again};

pub const CASES: &[Case] = &[
    read("B1", "iterate the first second", 976e3, 13e6, |f, _| {
        iterate(f, f.t0..f.t0 + SECOND)
    }),
    read("B2", "iterate from the 1,000th on", 681e3, 9.3e6, |f, _| {
        iterate(f, f.sorted[1_000].ts..Ts::MAX)
    }),
    read("B3", "iterate up to 60 s", 776e3, 10.3e6, |f, _| {
        iterate(f, Ts::MIN..f.t0 + 60 * SECOND)
    }),
    read("B4", "iterate all", 1.07e6, 10.9e6, |f, _| {
        iterate(f, Ts::MIN..Ts::MAX)
    }),
    Case {
        forms: &[Form::Engine, Form::E2e],
        ..read(
            "B5",
            "`at` every 100th timestamp; e2e: with the scan that picks them",
            9.1e3,
            66e3,
            points,
        )
    },
    read(
        "B6",
        "1,000 adjacent windows of 1 µs",
        158e3,
        839e3,
        adjacent_windows,
    ),
    Case {
        published: None,
        ..read(
            "B7",
            "`count(..)`, a row appended between calls",
            0.0,
            249e3,
            count_after_append,
        )
    },
    Case {
        published: None,
        ..read(
            "B8",
            "`remaining()` of a fresh range of 1 s",
            0.0,
            123e3,
            remaining,
        )
    },
    lived("L1", "iterate all; overlap, deletes, memtable", |f, _| {
        lived_scan(f)
    }),
    lived("L2", "`at` every 100th timestamp, same", |f, _| {
        lived_points(f)
    }),
    lived("L3", "count of 1,000 ranges of 1 s, same", |f, _| {
        lived_counts(f)
    }),
    lived(
        "L4",
        "windows of 100 ms: count, sum, least, greatest, last",
        |f, _| lived_windows(f),
    ),
    read("F1", "spans of 60 s: lengths", 103.9e6, 2.1e9, span_lengths),
    read(
        "F1-summed",
        "same, every timestamp summed",
        103.9e6,
        2.1e9,
        |f, _| span_sums(f, 60),
    ),
    read(
        "F2",
        "spans of 10 s: first and last",
        302.5e6,
        2.2e9,
        span_ends,
    ),
    read(
        "F2-summed",
        "same, every timestamp summed",
        302.5e6,
        2.2e9,
        |f, _| span_sums(f, 10),
    ),
    read(
        "F3",
        "each row's value in spans of 10 s: set of tickers",
        8.73e6,
        8.8e6,
        span_values,
    ),
    read(
        "F4",
        "first span: gaps and their mean",
        12.9e6,
        88.5e6,
        span_gaps,
    ),
    read(
        "F5",
        "least, greatest, mean, deviation of timestamps",
        28.6e6,
        134e6,
        statistics,
    ),
    read("G1", "`next_batch(1000)`", 792e3, 10.2e6, next_batch),
    read("G2", "open, iterate, drop", 912e3, 8.9e6, open_iterate_drop),
    read("G3", "stop after 10,000", 938e3, 8.7e6, stop_early),
    read(
        "G4",
        "five open iterators of 10 s, in turn",
        1.62e6,
        8.9e6,
        five_at_once,
    ),
];

fn iterate(fixture: &Fixture, range: std::ops::Range<Ts>) -> Sample {
    let mut sum = 0u64;
    let sample = timed_again(|| {
        sum = 0;
        let mut rows = 0;
        for (_, order) in fixture.loaded.range(range.clone()) {
            sum += u64::from(order.amount);
            rows += 1;
        }
        rows
    });
    let at = |ts: Ts| fixture.sorted.partition_point(|row| row.ts < ts);
    let expected = &fixture.sorted[at(range.start)..at(range.end)];
    assert_eq!(sample.operations, expected.len() as u64);
    let amounts = expected.iter().map(|row| u64::from(row.order.amount));
    assert_eq!(sum, amounts.sum::<u64>());
    sample
}

/// Looks every so manieth timestamp up and gives the rows found to `look`; in `e2e` a scan picks
/// them first.
pub fn look_up(
    fixture: &Fixture,
    step: usize,
    form: Form,
    mut look: impl FnMut(Ts, timelog::Rows<'_, crate::dataset::Order>),
) -> Sample {
    let every: Vec<Ts> = fixture
        .sorted
        .iter()
        .step_by(step)
        .map(|row| row.ts)
        .collect();
    timed_again(|| {
        let scanned: Vec<Ts>;
        let timestamps = if form == Form::E2e {
            // Row by row, as the published one: `step_by` would pass over whole pages.
            let rows = fixture.loaded.range(..).enumerate();
            let picked = rows.filter(|(number, _)| number % step == 0);
            scanned = picked.map(|(_, row)| row.0).collect();
            &scanned
        } else {
            &every
        };
        for ts in timestamps {
            look(*ts, fixture.loaded.at(*ts));
        }
        timestamps.len() as u64
    })
}

fn points(fixture: &Fixture, form: Form) -> Sample {
    let sample = look_up(fixture, 100, form, |ts, mut rows| {
        let row = black_box(rows.next().map(|(ts, order)| (ts, *order)));
        assert!(row.is_some_and(|row| row.0 == ts));
    });
    assert_eq!(sample.operations, 1_000);
    sample
}

fn adjacent_windows(fixture: &Fixture, _: Form) -> Sample {
    let window = |number: Ts| fixture.t0 + number * 1_000;
    let mut rows = 0;
    let sample = timed_again(|| {
        rows = 0;
        for number in 0..1_000 {
            for row in fixture.loaded.range(window(number)..window(number + 1)) {
                black_box((row.0, *row.1));
                rows += 1;
            }
        }
        1_000
    });
    assert_eq!(rows, fixture.within(0, 1_000_000).len());
    sample
}

fn count_after_append(fixture: &Fixture, _: Form) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    for batch in fixture.late05.chunks(10_000) {
        write(&mut log, pairs(batch));
    }
    log.flush();
    let row = fixture.sorted[ROWS - 1];
    let sample = timed(|| {
        for number in 0..1_000 {
            log.append(row.ts + number, row.order)
                .expect("no limit is set");
            assert_eq!(log.snapshot().count(..), 100_001 + number as u64);
        }
        1_000
    });
    finish(log, ROWS + 1_000);
    sample
}

fn remaining(fixture: &Fixture, _: Form) -> Sample {
    let start = |number: Ts| fixture.t0 + number * 10_000_000;
    let mut sum = 0;
    let sample = timed_again(|| {
        sum = 0;
        for number in 0..1_000 {
            sum += fixture
                .loaded
                .range(start(number)..start(number) + SECOND)
                .remaining();
        }
        1_000
    });
    let expected = (0..1_000).map(|number| {
        let start = number * 10_000_000;
        fixture.within(start, start + SECOND).len() as u64
    });
    assert_eq!(sum, expected.sum::<u64>());
    sample
}

/// A case that was not published.
const fn lived(id: &'static str, what: &'static str, run: fn(&Fixture, Form) -> Sample) -> Case {
    Case {
        published: None,
        newer: None,
        ..read(id, what, 0.0, 0.0, run)
    }
}

fn lived_scan(fixture: &Fixture) -> Sample {
    let mut amounts = 0u64;
    let sample = timed_again(|| {
        amounts = 0;
        let mut rows = 0;
        for (_, order) in fixture.lived.range(..) {
            amounts += u64::from(order.amount);
            rows += 1;
        }
        rows
    });
    let expected = fixture.lived_rows.iter();
    assert_eq!(sample.operations, fixture.lived_rows.len() as u64);
    assert_eq!(
        amounts,
        expected.map(|row| u64::from(row.order.amount)).sum::<u64>()
    );
    sample
}

fn lived_points(fixture: &Fixture) -> Sample {
    let every = fixture.lived_rows.iter().step_by(100);
    let every: Vec<Ts> = every.map(|row| row.ts).collect();
    timed_again(|| {
        for ts in &every {
            let row = black_box(fixture.lived.at(*ts).next().map(|(ts, order)| (ts, *order)));
            assert!(row.is_some_and(|row| row.0 == *ts));
        }
        every.len() as u64
    })
}

fn lived_counts(fixture: &Fixture) -> Sample {
    let start = |number: Ts| fixture.t0 + number * 10_000_000;
    let mut sum = 0;
    let sample = timed_again(|| {
        sum = 0;
        for number in 0..1_000 {
            sum += fixture.lived.count(start(number)..start(number) + SECOND);
        }
        1_000
    });
    let at = |ts: Ts| fixture.lived_rows.partition_point(|row| row.ts < ts) as u64;
    let expected = (0..1_000).map(|number| at(start(number) + SECOND) - at(start(number)));
    assert_eq!(sum, expected.sum::<u64>());
    sample
}

/// Operations are rows.
fn lived_windows(fixture: &Fixture) -> Sample {
    let every = Every::ticks(SECOND as u64 / 10).expect("not nothing");
    let (mut counts, mut sums, mut last) = (0, 0, 0);
    let sample = timed_again(|| {
        (counts, sums) = (0, 0);
        for window in fixture.lived.fold(.., every, |order| order.amount) {
            counts += window.count;
            sums += window.sum;
            last = window.last;
        }
        counts
    });
    let rows = &fixture.lived_rows;
    let amounts = rows.iter().map(|row| u128::from(row.order.amount));
    assert_eq!((counts, sums), (rows.len() as u64, amounts.sum()));
    assert_eq!(last, rows[rows.len() - 1].order.amount);
    sample
}

fn span_lengths(fixture: &Fixture, _: Form) -> Sample {
    timed_again(|| {
        let spans = fixture.loaded.spans(..fixture.t0 + 60 * SECOND);
        let rows = spans.map(|span| span.len() as u64).sum();
        assert_eq!(rows, ROWS as u64);
        rows
    })
}

fn span_sums(fixture: &Fixture, seconds: i64) -> Sample {
    let mut sum = 0i64;
    let sample = timed_again(|| {
        sum = 0;
        let mut rows = 0;
        for span in fixture.loaded.spans(..fixture.t0 + seconds * SECOND) {
            let add = |sum: i64, ts: &Ts| sum.wrapping_add(*ts);
            sum = span.timestamps().iter().fold(sum, add);
            rows += span.len() as u64;
        }
        rows
    });
    let rows = fixture.within(0, seconds * SECOND);
    let expected = rows
        .iter()
        .fold(0, |sum: i64, row| sum.wrapping_add(row.ts));
    assert_eq!((sample.operations, sum), (rows.len() as u64, expected));
    sample
}

fn span_ends(fixture: &Fixture, _: Form) -> Sample {
    let expected = fixture.within(0, 10 * SECOND);
    timed_again(|| {
        let (mut rows, mut first, mut last) = (0, Ts::MAX, Ts::MIN);
        for span in fixture.loaded.spans(fixture.t0..fixture.t0 + 10 * SECOND) {
            first = first.min(span.first());
            last = last.max(span.last());
            rows += span.len();
        }
        assert_eq!(
            (rows, first, last),
            (expected.len(), fixture.t0, expected[rows - 1].ts)
        );
        rows as u64
    })
}

fn span_values(fixture: &Fixture, _: Form) -> Sample {
    let rows = fixture.within(0, 10 * SECOND);
    let expected: HashSet<u8> = rows.iter().map(|row| row.order.ticker).collect();
    timed_again(|| {
        let spans = fixture.loaded.spans(fixture.t0..fixture.t0 + 10 * SECOND);
        let values = spans.flat_map(|span| span.values());
        let tickers: HashSet<u8> = values.map(|order| order.ticker).collect();
        assert_eq!(tickers, expected);
        rows.len() as u64
    })
}

fn span_gaps(fixture: &Fixture, _: Form) -> Sample {
    let mut mean = 0;
    let sample = timed_again(|| {
        let span = fixture.loaded.spans(..).next().expect("there are rows");
        let ts = span.timestamps();
        let gaps = ts.windows(2).map(|pair| pair[1] - pair[0]);
        mean = gaps.sum::<Ts>() / (ts.len() as Ts - 1);
        ts.len() as u64
    });
    let rows = sample.operations as usize;
    assert!((2..=4_096).contains(&rows));
    let span = fixture.sorted[rows - 1].ts - fixture.t0;
    assert_eq!(mean, span / (rows as Ts - 1));
    sample
}

/// Least, greatest, sum and sum of squares of what lies after `t0`. Once for all callers, as
/// `sum_of`.
#[inline(never)]
pub fn moments(ts: &[Ts], t0: Ts, so_far: (Ts, Ts, i64, f64)) -> (Ts, Ts, i64, f64) {
    let (mut least, mut greatest, mut sum, squares) = so_far;
    // Four sums of squares, since one would wait for each addition.
    let mut lanes = [0.0; 4];
    let mut chunks = ts.chunks_exact(4);
    for chunk in chunks.by_ref() {
        for (lane, ts) in lanes.iter_mut().zip(chunk) {
            let offset = *ts - t0;
            least = least.min(*ts);
            greatest = greatest.max(*ts);
            sum += offset;
            *lane += offset as f64 * offset as f64;
        }
    }
    for (lane, ts) in lanes.iter_mut().zip(chunks.remainder()) {
        let offset = *ts - t0;
        least = least.min(*ts);
        greatest = greatest.max(*ts);
        sum += offset;
        *lane += offset as f64 * offset as f64;
    }
    (least, greatest, sum, squares + lanes.iter().sum::<f64>())
}

pub const NO_MOMENTS: (Ts, Ts, i64, f64) = (Ts::MAX, Ts::MIN, 0, 0.0);

fn statistics(fixture: &Fixture, _: Form) -> Sample {
    let mut found = (0, 0, 0.0, 0.0);
    let sample = timed_again(|| {
        let mut rows = 0;
        let mut so_far = NO_MOMENTS;
        for span in fixture.loaded.spans(..) {
            so_far = moments(span.timestamps(), fixture.t0, so_far);
            rows += span.len();
        }
        let (least, greatest, sum, squares) = so_far;
        let mean = sum as f64 / rows as f64;
        let deviation = (squares / rows as f64 - mean * mean).sqrt();
        found = (least, greatest, mean, deviation);
        rows as u64
    });
    let offsets = fixture
        .sorted
        .iter()
        .map(|row| (row.ts - fixture.t0) as f64);
    let mean = offsets.clone().sum::<f64>() / ROWS as f64;
    let squares = offsets.map(|offset| (offset - mean).powi(2));
    let deviation = (squares.sum::<f64>() / ROWS as f64).sqrt();
    assert_eq!(
        (found.0, found.1),
        (fixture.t0, fixture.sorted[ROWS - 1].ts)
    );
    assert!((found.2 / mean - 1.0).abs() < 1e-9 && (found.3 / deviation - 1.0).abs() < 1e-6);
    sample
}

fn next_batch(fixture: &Fixture, _: Form) -> Sample {
    let mut batch = Batch::default();
    timed_again(|| {
        let mut rows = fixture.loaded.range(..);
        let (mut read, mut last) = (0, Ts::MIN);
        while rows.next_batch(1_000, &mut batch) > 0 {
            assert!(last <= batch.timestamps[0]);
            last = batch.timestamps[batch.timestamps.len() - 1];
            read += batch.values.len();
        }
        assert_eq!(read, ROWS);
        read as u64
    })
}

fn open_iterate_drop(fixture: &Fixture, _: Form) -> Sample {
    timed_again(|| {
        let snapshot = fixture.loaded.clone();
        let mut rows = snapshot.range(..);
        let (mut read, mut amounts) = (0, 0u64);
        for (_, order) in rows.by_ref() {
            amounts += u64::from(order.amount);
            read += 1;
        }
        assert!(rows.next().is_none() && black_box(amounts) > 0);
        assert_eq!(read, ROWS);
        read as u64
    })
}

fn stop_early(fixture: &Fixture, _: Form) -> Sample {
    let (mut last, mut amounts) = (0, 0);
    let sample = timed_again(|| {
        amounts = 0;
        let mut read = 0;
        for (ts, order) in fixture.loaded.range(..) {
            amounts += u64::from(order.amount);
            last = ts;
            read += 1;
            if read == 10_000 {
                break;
            }
        }
        read
    });
    let expected = fixture.sorted[..10_000].iter();
    assert_eq!(last, fixture.sorted[9_999].ts);
    assert_eq!(
        amounts,
        expected.map(|row| u64::from(row.order.amount)).sum::<u64>()
    );
    sample
}

/// A row of each of five ranges of 10 s in turn: they start five seconds apart, and the last ends
/// beyond the data.
fn five_at_once(fixture: &Fixture, _: Form) -> Sample {
    let starts = [0, 5, 10, 15, 20].map(|seconds| seconds * SECOND);
    let expected = starts.map(|start| fixture.within(start, start + 10 * SECOND));
    let mut sums = [0u64; 5];
    let sample = timed_again(|| {
        sums = [0; 5];
        let ranges = starts.map(|start| fixture.t0 + start..fixture.t0 + start + 10 * SECOND);
        let mut open = ranges.map(|range| Some(fixture.loaded.range(range)));
        let mut rows = 0;
        let mut left = open.len();
        while left > 0 {
            for (iterator, sum) in open.iter_mut().zip(&mut sums) {
                match iterator.as_mut().map(Iterator::next) {
                    Some(Some((_, order))) => {
                        *sum += u64::from(order.amount);
                        rows += 1;
                    }
                    Some(None) => {
                        *iterator = None;
                        left -= 1;
                    }
                    None => {}
                }
            }
        }
        rows
    });
    let amounts = expected.map(|rows| {
        rows.iter()
            .map(|row| u64::from(row.order.amount))
            .sum::<u64>()
    });
    assert_eq!(sums, amounts);
    assert_eq!(
        sample.operations,
        expected.map(|rows| rows.len() as u64).iter().sum::<u64>()
    );
    sample
}
