//! Cases that read what was loaded.

use std::collections::HashSet;

use timelog::{Batch, Config, Ts};

use super::sample::{Sample, timed};
use super::{Case, Fixture, SECOND, case, unpublished};
use crate::dataset::{Direction, Order, Status};

pub const CASES: &[Case] = &[
    case("B1", 976e3, |f| iterate(f, f.t0..f.t0 + SECOND)),
    case("B2", 681e3, |f| iterate(f, f.sorted[1_000].ts..Ts::MAX)),
    case("B3", 776e3, |f| iterate(f, Ts::MIN..f.t0 + 60 * SECOND)),
    case("B4", 1.07e6, |f| iterate(f, Ts::MIN..Ts::MAX)),
    unpublished("B4-backward", backward),
    unpublished("B4-slices", slices),
    case("B5", 9.1e3, points),
    case("B6", 158e3, adjacent_windows),
    unpublished("B7", count_after_append),
    unpublished("B8", remaining),
    case("C1", 1.63e6, ten_windows),
    case("C2", 836e3, by_direction),
    case("C3", 636e3, weighted_price),
    case("C4", 802e3, by_status),
    case("C5", 473e3, by_ticker),
    case("C7", 729e3, commission),
    case("F1", 103.9e6, span_lengths),
    case("F1-summed", 103.9e6, span_sums),
    case("F2", 302.5e6, span_ends),
    case("F3", 8.73e6, span_values),
    case("G1", 792e3, next_batch),
    case("G3", 938e3, stop_early),
    unpublished("first-last", first_and_last),
    unpublished("next-after", next_after),
    unpublished("prev-before", prev_before),
];

fn iterate(fixture: &Fixture, range: std::ops::Range<Ts>) -> Sample {
    let at = |ts: Ts| fixture.sorted.partition_point(|row| row.ts < ts);
    let expected = &fixture.sorted[at(range.start)..at(range.end)];
    let mut sum = 0u64;
    let sample = timed(|| {
        let mut rows = 0;
        for (_, order) in fixture.loaded.range(range) {
            sum += u64::from(order.amount);
            rows += 1;
        }
        rows
    });
    assert_eq!(sample.operations, expected.len() as u64);
    assert_eq!(
        sum,
        expected.iter().map(|row| u64::from(row.order.amount)).sum()
    );
    sample
}

fn backward(fixture: &Fixture) -> Sample {
    let mut before = Ts::MAX;
    timed(|| {
        let mut rows = 0;
        for (ts, _) in fixture.loaded.range(..).rev() {
            assert!(ts <= before);
            before = ts;
            rows += 1;
        }
        assert_eq!(rows, 100_000);
        rows
    })
}

fn slices(fixture: &Fixture) -> Sample {
    let expected: u64 = fixture
        .sorted
        .iter()
        .map(|row| u64::from(row.order.amount))
        .sum();
    timed(|| {
        let (mut rows, mut sum) = (0, 0);
        let mut reader = fixture.loaded.range(..);
        while let Some(span) = reader.next_slice() {
            sum += span
                .values()
                .iter()
                .map(|order| u64::from(order.amount))
                .sum::<u64>();
            rows += span.len() as u64;
        }
        assert_eq!((rows, sum), (100_000, expected));
        rows
    })
}

fn every(fixture: &Fixture, step: usize) -> Vec<Ts> {
    fixture
        .sorted
        .iter()
        .step_by(step)
        .map(|row| row.ts)
        .collect()
}

fn points(fixture: &Fixture) -> Sample {
    let timestamps = every(fixture, 100);
    timed(|| {
        let found = timestamps
            .iter()
            .filter(|ts| fixture.loaded.at(**ts).next().is_some());
        assert_eq!(found.count(), 1_000);
        1_000
    })
}

fn adjacent_windows(fixture: &Fixture) -> Sample {
    let window = |number: Ts| fixture.t0 + number * 1_000;
    let mut rows = 0;
    let sample = timed(|| {
        for number in 0..1_000 {
            rows += fixture
                .loaded
                .range(window(number)..window(number + 1))
                .fold(0, |rows, _| rows + 1);
        }
        1_000
    });
    assert_eq!(rows, fixture.within(0, 1_000_000).len());
    sample
}

fn count_after_append(fixture: &Fixture) -> Sample {
    let mut log = super::writes::loaded(&fixture.late05, Config::bulk_ingest());
    let row = fixture.sorted[99_999];
    timed(|| {
        for number in 0..1_000 {
            log.append(row.ts + number, row.order)
                .expect("no limit is set");
            assert_eq!(log.snapshot().count(..), 100_001 + number as u64);
        }
        1_000
    })
}

fn remaining(fixture: &Fixture) -> Sample {
    let expected = fixture.within(0, SECOND).len() as u64;
    timed(|| {
        for _ in 0..1_000 {
            assert_eq!(
                fixture
                    .loaded
                    .range(fixture.t0..fixture.t0 + SECOND)
                    .remaining(),
                expected
            );
        }
        1_000
    })
}

fn ten_windows(fixture: &Fixture) -> Sample {
    let expected = fixture.within(0, 10 * SECOND).len() as u64;
    timed(|| {
        let mut rows = 0;
        for window in 0..10 {
            let start = fixture.t0 + window * SECOND;
            rows += fixture
                .loaded
                .range(start..start + SECOND)
                .fold(0, |rows, _| rows + 1);
        }
        assert_eq!(rows, expected);
        rows
    })
}

/// Folds the first `seconds`, and compares the result with that over sorted rows.
fn fold<T: PartialEq + std::fmt::Debug + Default>(
    fixture: &Fixture,
    seconds: Ts,
    add: impl Fn(&mut T, &Order),
) -> Sample {
    let rows = fixture.within(0, seconds * SECOND);
    let mut expected = T::default();
    rows.iter().for_each(|row| add(&mut expected, &row.order));
    let mut found = T::default();
    let sample = timed(|| {
        let range = fixture.t0..fixture.t0 + seconds * SECOND;
        fixture.loaded.range(range).fold(0, |rows, (_, order)| {
            add(&mut found, order);
            rows + 1
        })
    });
    assert_eq!((sample.operations, found), (rows.len() as u64, expected));
    sample
}

fn by_direction(fixture: &Fixture) -> Sample {
    fold(fixture, 60, |counts: &mut [u64; 2], order| {
        counts[usize::from(order.direction == Direction::Sell)] += 1;
    })
}

fn weighted_price(fixture: &Fixture) -> Sample {
    fold(fixture, 300, |sums: &mut [i128; 2], order| {
        if order.status == Status::Filled {
            sums[0] += i128::from(order.ask) * i128::from(order.amount);
            sums[1] += i128::from(order.amount);
        }
    })
}

fn by_status(fixture: &Fixture) -> Sample {
    fold(fixture, 60, |counts: &mut [u64; 3], order| {
        counts[order.status as usize] += 1
    })
}

fn by_ticker(fixture: &Fixture) -> Sample {
    fold(fixture, 60, |counts: &mut Vec<u64>, order| {
        counts.resize(100, 0);
        counts[usize::from(order.ticker)] += 1;
    })
}

fn commission(fixture: &Fixture) -> Sample {
    fold(fixture, 60, |sum: &mut u64, order| {
        *sum += u64::from(order.commission)
    })
}

fn span_lengths(fixture: &Fixture) -> Sample {
    timed(|| {
        let rows = fixture
            .loaded
            .spans(..fixture.t0 + 60 * SECOND)
            .map(|span| span.len() as u64)
            .sum();
        assert_eq!(rows, 100_000);
        rows
    })
}

fn span_sums(fixture: &Fixture) -> Sample {
    let expected = fixture
        .sorted
        .iter()
        .fold(0, |sum: i64, row| sum.wrapping_add(row.ts));
    timed(|| {
        let spans = fixture.loaded.spans(..fixture.t0 + 60 * SECOND);
        let add = |sum: i64, ts: &Ts| sum.wrapping_add(*ts);
        assert_eq!(
            spans.fold(0, |sum, span| span.timestamps().iter().fold(sum, add)),
            expected
        );
        100_000
    })
}

fn span_ends(fixture: &Fixture) -> Sample {
    let expected = fixture.within(0, 10 * SECOND).len() as u64;
    timed(|| {
        let (mut rows, mut first, mut last) = (0, Ts::MAX, Ts::MIN);
        for span in fixture.loaded.spans(fixture.t0..fixture.t0 + 10 * SECOND) {
            first = first.min(span.first());
            last = last.max(span.last());
            rows += span.len() as u64;
        }
        assert_eq!((rows, first), (expected, fixture.t0));
        assert!(last < fixture.t0 + 10 * SECOND);
        rows
    })
}

fn span_values(fixture: &Fixture) -> Sample {
    let rows = fixture.within(0, 10 * SECOND);
    let expected: HashSet<u8> = rows.iter().map(|row| row.order.ticker).collect();
    timed(|| {
        let spans = fixture.loaded.spans(fixture.t0..fixture.t0 + 10 * SECOND);
        let tickers: HashSet<u8> = spans
            .flat_map(|span| span.values())
            .map(|order| order.ticker)
            .collect();
        assert_eq!(tickers, expected);
        rows.len() as u64
    })
}

fn next_batch(fixture: &Fixture) -> Sample {
    let mut batch = Batch::default();
    timed(|| {
        let mut rows = fixture.loaded.range(..);
        let mut read = 0;
        loop {
            match rows.next_batch(1_000, &mut batch) {
                0 => break,
                more => read += more as u64,
            }
        }
        assert_eq!(read, 100_000);
        read
    })
}

fn stop_early(fixture: &Fixture) -> Sample {
    timed(|| {
        let last = fixture.loaded.range(..).nth(9_999).expect("there are more");
        assert_eq!(last.0, fixture.sorted[9_999].ts);
        10_000
    })
}

fn first_and_last(fixture: &Fixture) -> Sample {
    timed(|| {
        for _ in 0..500 {
            assert_eq!(fixture.loaded.first(), Some(fixture.t0));
            assert_eq!(fixture.loaded.last(), Some(fixture.sorted[99_999].ts));
        }
        1_000
    })
}

fn next_after(fixture: &Fixture) -> Sample {
    let timestamps = every(fixture, 100);
    timed(|| {
        assert!(timestamps.iter().all(|ts| {
            fixture
                .loaded
                .next_after(*ts)
                .is_some_and(|next| next > *ts)
        }));
        1_000
    })
}

fn prev_before(fixture: &Fixture) -> Sample {
    let timestamps = every(fixture, 100);
    timed(|| {
        let found = timestamps.iter().filter(|ts| {
            fixture
                .loaded
                .prev_before(**ts)
                .is_some_and(|prev| prev < **ts)
        });
        assert_eq!(found.count(), 999);
        1_000
    })
}
