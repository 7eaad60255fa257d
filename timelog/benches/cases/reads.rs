//! Cases B, F, G and L: iteration, points, spans.

use std::collections::HashSet;
use std::hint::black_box;
use std::ops::Range;

use timelog::{Batch, Every, Rows, Ts};

use crate::dataset::Order;
use crate::fixture::{FIVE, Fixture, Form, ROWS, SECOND, Sample};
use crate::fixture::{again, between, both, finish, load, pairs, timed};

pub fn run(id: &str, f: &Fixture, form: Form) -> Sample {
    match id {
        "B1" => iterate(f, f.t0..f.t0 + SECOND),
        "B2" => iterate(f, f.sorted[1_000].0..Ts::MAX),
        "B3" => iterate(f, Ts::MIN..f.t0 + 60 * SECOND),
        "B4" => iterate(f, Ts::MIN..Ts::MAX),
        "B5" => points(f, form),
        "B6" => adjacent_windows(f),
        "B7" => count_after_append(f),
        "B8" => {
            let expected = seconds(f)
                .map(|it| between(&f.sorted, it).len() as u64)
                .sum();
            again(1_000, expected, || {
                let fresh = seconds(f).map(|range| f.loaded.range(range));
                fresh.map(|rows| rows.remaining()).sum::<u64>()
            })
        }
        "L1" => both!(&f.lived_rows[..], f.lived.range(..), |rows| amounts(rows)),
        "L2" => lived_points(f),
        "L3" => {
            let expected = seconds(f).map(|it| between(&f.lived_rows, it).len() as u64);
            again(1_000, expected.sum(), || {
                seconds(f).map(|range| f.lived.count(range)).sum::<u64>()
            })
        }
        "L4" => lived_windows(f),
        "F1" => again(ROWS, ROWS, || {
            let spans = f.loaded.spans(..f.t0 + 60 * SECOND);
            spans.map(|span| span.len()).sum::<usize>()
        }),
        "F1-summed" => span_sums(f, 60 * SECOND),
        "F2" => span_ends(f),
        "F2-summed" => span_sums(f, 10 * SECOND),
        "F3" => span_values(f),
        "F4" => span_gaps(f),
        "F5" => statistics(f),
        "G1" => next_batch(f),
        "G2" => again(ROWS, amounts(pairs(&f.sorted)), || {
            let snapshot = f.loaded.clone();
            let mut rows = snapshot.range(..);
            let found = amounts(rows.by_ref());
            assert!(rows.next().is_none());
            found
        }),
        "G3" => both!(&f.sorted[..10_000], f.loaded.range(..), |rows| {
            stop_after_10_000(rows)
        }),
        "G4" => five_at_once(f),
        _ => unreachable!("no workload for {id}"),
    }
}

/// How many rows, and the sum of their amounts.
pub fn amounts<'a>(rows: impl Iterator<Item = (Ts, &'a Order)>) -> (usize, u64) {
    let (mut count, mut sum) = (0, 0);
    for (_, order) in rows {
        sum += u64::from(order.amount);
        count += 1;
    }
    (count, sum)
}

fn stop_after_10_000<'a>(rows: impl Iterator<Item = (Ts, &'a Order)>) -> (Ts, u64) {
    let (mut last, mut read, mut sum) = (0, 0, 0);
    for (ts, order) in rows {
        sum += u64::from(order.amount);
        last = ts;
        read += 1;
        if read == 10_000 {
            break;
        }
    }
    (last, sum)
}

pub fn iterate(f: &Fixture, range: Range<Ts>) -> Sample {
    let expected = between(&f.sorted, range.clone());
    both!(expected, f.loaded.range(range.clone()), |rows| amounts(
        rows
    ))
}

/// A thousand of them, which overlap.
fn seconds(f: &Fixture) -> impl Iterator<Item = Range<Ts>> {
    let starts = (0..1_000).map(|number| f.t0 + number * 10_000_000);
    starts.map(|start| start..start + SECOND)
}

/// Looks every so manieth timestamp up and gives the rows found to `look`; in `e2e` a scan picks
/// them first.
pub fn look_up(
    f: &Fixture,
    step: usize,
    form: Form,
    mut look: impl FnMut(Ts, Rows<'_, Order>),
) -> Sample {
    let every: Vec<Ts> = f.sorted.iter().step_by(step).map(|row| row.0).collect();
    again(every.len(), (), || {
        let scanned: Vec<Ts>;
        let timestamps = if form == Form::E2e {
            // Row by row, as the published one: `step_by` would pass over whole pages.
            let rows = f.loaded.range(..).enumerate();
            let picked = rows.filter(|(number, _)| number % step == 0);
            scanned = picked.map(|(_, row)| row.0).collect();
            &scanned
        } else {
            &every
        };
        assert_eq!(timestamps.len(), every.len());
        for ts in timestamps {
            look(*ts, f.loaded.at(*ts));
        }
    })
}

fn points(f: &Fixture, form: Form) -> Sample {
    look_up(f, 100, form, |ts, mut rows| {
        let row = black_box(rows.next().map(|(ts, order)| (ts, *order)));
        assert!(row.is_some_and(|row| row.0 == ts));
    })
}

fn adjacent_windows(f: &Fixture) -> Sample {
    let windows = || (0..1_000).map(|number| f.t0 + number * 1_000);
    again(1_000, f.within(1_000_000).len(), || {
        let mut rows = 0;
        for start in windows() {
            for row in f.loaded.range(start..start + 1_000) {
                black_box((row.0, *row.1));
                rows += 1;
            }
        }
        rows
    })
}

fn count_after_append(f: &Fixture) -> Sample {
    let mut log = load(&f.rows[FIVE]);
    let (ts, order) = f.sorted[ROWS - 1];
    let sample = timed(1_000, || {
        for number in 0..1_000 {
            log.append(ts + number, order).expect("no limit is set");
            assert_eq!(log.snapshot().count(..), 100_001 + number as u64);
        }
    });
    finish(log, ROWS + 1_000);
    sample
}

fn lived_points(f: &Fixture) -> Sample {
    let every = f.lived_rows.iter().step_by(100);
    let every: Vec<Ts> = every.map(|row| row.0).collect();
    again(every.len(), (), || {
        for ts in &every {
            let row = black_box(f.lived.at(*ts).next().map(|(ts, order)| (ts, *order)));
            assert!(row.is_some_and(|row| row.0 == *ts));
        }
    })
}

/// Operations are rows.
fn lived_windows(f: &Fixture) -> Sample {
    let every = Every::ticks(SECOND as u64 / 10).expect("not nothing");
    let rows = &f.lived_rows;
    let sum = rows.iter().map(|row| u128::from(row.1.amount)).sum();
    let last = rows[rows.len() - 1].1.amount;
    again(rows.len(), (rows.len() as u64, sum, last), || {
        let mut found = (0, 0, 0);
        for window in f.lived.fold(.., every, |order| order.amount) {
            found.0 += window.count;
            found.1 += window.sum;
            found.2 = window.last;
        }
        found
    })
}

fn span_sums(f: &Fixture, ns: Ts) -> Sample {
    let rows = f.within(ns);
    let add = |sum: i64, ts: &Ts| sum.wrapping_add(*ts);
    let expected = rows.iter().map(|row| &row.0).fold(0, add);
    again(rows.len(), (rows.len(), expected), || {
        let (mut count, mut sum) = (0, 0);
        for span in f.loaded.spans(..f.t0 + ns) {
            sum = span.timestamps().iter().fold(sum, add);
            count += span.len();
        }
        (count, sum)
    })
}

fn span_ends(f: &Fixture) -> Sample {
    let expected = f.within(10 * SECOND);
    let (count, end) = (expected.len(), expected[expected.len() - 1].0);
    again(count, (count, f.t0, end), || {
        let (mut rows, mut first, mut last) = (0, Ts::MAX, Ts::MIN);
        for span in f.loaded.spans(f.t0..f.t0 + 10 * SECOND) {
            first = first.min(span.first());
            last = last.max(span.last());
            rows += span.len();
        }
        (rows, first, last)
    })
}

fn span_values(f: &Fixture) -> Sample {
    let rows = f.within(10 * SECOND);
    let expected: HashSet<u8> = rows.iter().map(|row| row.1.ticker).collect();
    again(rows.len(), expected, || {
        let spans = f.loaded.spans(f.t0..f.t0 + 10 * SECOND);
        let values = spans.flat_map(|span| span.values());
        values.map(|order| order.ticker).collect()
    })
}

fn span_gaps(f: &Fixture) -> Sample {
    let first = || f.loaded.spans(..).next().expect("there are rows");
    let rows = first().len();
    assert!((2..=4_096).contains(&rows));
    let mean = (f.sorted[rows - 1].0 - f.t0) / (rows as Ts - 1);
    again(rows, mean, || {
        let span = first();
        let gaps = span.timestamps().windows(2).map(|pair| pair[1] - pair[0]);
        gaps.sum::<Ts>() / (span.len() as Ts - 1)
    })
}

fn statistics(f: &Fixture) -> Sample {
    let offsets = || f.sorted.iter().map(|row| row.0 - f.t0);
    let sum: i64 = offsets().sum();
    let ends = (f.t0, f.sorted[ROWS - 1].0);
    let mut deviation = 0.0;
    let sample = again(ROWS, (ends, sum), || {
        let (mut ends, mut sum, mut squares) = ((Ts::MAX, Ts::MIN), 0, 0.0);
        for span in f.loaded.spans(..) {
            // Four sums of squares, since one would wait for each addition.
            let mut lanes = [0.0; 4];
            let mut add = |lane: usize, ts: Ts| {
                let offset = ts - f.t0;
                ends = (ends.0.min(ts), ends.1.max(ts));
                sum += offset;
                lanes[lane] += offset as f64 * offset as f64;
            };
            let (fours, rest) = span.timestamps().as_chunks::<4>();
            for four in fours {
                four.iter().zip(0..).for_each(|(ts, lane)| add(lane, *ts));
            }
            rest.iter().for_each(|ts| add(0, *ts));
            squares += lanes.iter().sum::<f64>();
        }
        let mean = sum as f64 / ROWS as f64;
        deviation = (squares / ROWS as f64 - mean * mean).sqrt();
        (ends, sum)
    });
    let mean = sum as f64 / ROWS as f64;
    let squares = offsets().map(|offset| (offset as f64 - mean).powi(2));
    let expected = (squares.sum::<f64>() / ROWS as f64).sqrt();
    assert!((deviation / expected - 1.0).abs() < 1e-6);
    sample
}

fn next_batch(f: &Fixture) -> Sample {
    let mut batch = Batch::default();
    again(ROWS, ROWS, || {
        let mut rows = f.loaded.range(..);
        let (mut read, mut last) = (0, Ts::MIN);
        while rows.next_batch(1_000, &mut batch) > 0 {
            assert!(last <= batch.timestamps[0]);
            last = batch.timestamps[batch.timestamps.len() - 1];
            read += batch.values.len();
        }
        read
    })
}

/// A row of each of five ranges of 10 s in turn: they start five seconds apart, and the last ends
/// beyond the data.
fn five_at_once(f: &Fixture) -> Sample {
    let ranges = [0, 5, 10, 15, 20].map(|seconds| {
        let start = f.t0 + seconds * SECOND;
        start..start + 10 * SECOND
    });
    let expected = ranges
        .clone()
        .map(|range| amounts(pairs(between(&f.sorted, range))));
    let operations = expected.iter().map(|(count, _)| count).sum();
    again(operations, expected.map(|(_, sum)| sum), || {
        let mut sums = [0; 5];
        let mut open = ranges.clone().map(|range| Some(f.loaded.range(range)));
        let mut left = open.len();
        while left > 0 {
            for (iterator, sum) in open.iter_mut().zip(&mut sums) {
                match iterator.as_mut().map(Iterator::next) {
                    Some(Some((_, order))) => *sum += u64::from(order.amount),
                    Some(None) => {
                        *iterator = None;
                        left -= 1;
                    }
                    None => {}
                }
            }
        }
        sums
    })
}
