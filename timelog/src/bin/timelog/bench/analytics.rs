//! Cases C and H: what users compute from orders.

use std::hint::black_box;

use timelog::Ts;

use super::case::{Case, Fixture, Form, ROWS, SECOND, read};
use super::reads::look_up;
use super::sample::{Sample, timed_again};
use crate::dataset::{Direction, Order, Status};

pub const CASES: &[Case] = &[
    read(
        "C1",
        "ten windows of 1 s, a query each, iterated",
        1.63e6,
        10.3e6,
        windows,
    ),
    Case {
        published: None,
        newer: None,
        ..read("C1-count", "same windows, counted", 0.0, 0.0, window_counts)
    },
    read(
        "C1B",
        "same in one pass, a bucket for each row",
        276e3,
        4.6e6,
        buckets,
    ),
    read(
        "C2",
        "BUY and SELL counts, 60 s",
        836e3,
        6.2e6,
        by_direction,
    ),
    read(
        "C3",
        "mean price of FILLED by amount, 300 s",
        636e3,
        5e6,
        weighted_price,
    ),
    read("C4", "counts by status, 60 s", 802e3, 5.7e6, by_status),
    read(
        "C5",
        "count by ticker, the first five",
        473e3,
        3.9e6,
        by_ticker,
    ),
    read(
        "C6",
        "ask − bid where present: mean, least, greatest",
        489e3,
        4.4e6,
        spread,
    ),
    read("C7", "sum of the commissions", 729e3, 6.3e6, commission),
    read("C8", "gaps over 10 s by size", 418e3, 3.1e6, gaps),
    read(
        "H1",
        "rows from order 1's OPEN to its FILLED",
        415e3,
        344e3,
        life_of_an_order,
    ),
    read(
        "H2",
        "replay 60 s, time never goes back",
        871e3,
        8e6,
        replay,
    ),
    read(
        "H3",
        "sixty windows of 1 s, those above twice the mean",
        1.55e6,
        8.4e6,
        bursts,
    ),
    read("H3B", "same in one pass", 302e3, 3.4e6, bursts_in_one_pass),
    Case {
        forms: &[Form::Engine, Form::E2e],
        ..read(
            "H4",
            "`at` every 1,000th timestamp, rows copied; e2e: with the scan",
            974.0,
            6e3,
            samples,
        )
    },
];

/// Folds the orders of the first seconds in time order, by iterating in the clock, and beside it
/// for the result.
fn fold<T: PartialEq + std::fmt::Debug>(
    fixture: &Fixture,
    seconds: i64,
    start: impl Fn() -> T,
    mut add: impl FnMut(&mut T, Ts, &Order),
) -> Sample {
    let mut found = start();
    let sample = timed_again(|| {
        found = start();
        let mut rows = 0;
        for (ts, order) in fixture
            .loaded
            .range(fixture.t0..fixture.t0 + seconds * SECOND)
        {
            add(&mut found, ts, order);
            rows += 1;
        }
        rows
    });
    let rows = fixture.within(0, seconds * SECOND);
    let mut expected = start();
    rows.iter()
        .for_each(|row| add(&mut expected, row.ts, &row.order));
    assert_eq!(sample.operations, rows.len() as u64);
    assert_eq!(found, expected);
    sample
}

fn windows(fixture: &Fixture, _: Form) -> Sample {
    let mut counts = [0; 10];
    let sample = timed_again(|| {
        counts = [0; 10];
        for (number, count) in (0..).zip(&mut counts) {
            let start = fixture.t0 + number * SECOND;
            for row in fixture.loaded.range(start..start + SECOND) {
                black_box((row.0, *row.1));
                *count += 1;
            }
        }
        counts.iter().sum()
    });
    assert_eq!(counts, expected_counts(fixture));
    sample
}

fn window_counts(fixture: &Fixture, _: Form) -> Sample {
    let mut counts = [0; 10];
    let sample = timed_again(|| {
        for (number, count) in (0..).zip(&mut counts) {
            let start = fixture.t0 + number * SECOND;
            *count = fixture.loaded.count(start..start + SECOND);
        }
        counts.iter().sum()
    });
    assert_eq!(counts, expected_counts(fixture));
    sample
}

fn expected_counts<const N: usize>(fixture: &Fixture) -> [u64; N] {
    std::array::from_fn(|number| {
        let start = number as Ts * SECOND;
        fixture.within(start, start + SECOND).len() as u64
    })
}

fn buckets(fixture: &Fixture, _: Form) -> Sample {
    let t0 = fixture.t0;
    let sample = fold(
        fixture,
        10,
        || [0u64; 10],
        |counts, ts, _| {
            counts[((ts - t0) / SECOND) as usize] += 1;
        },
    );
    assert_eq!(
        sample.operations,
        expected_counts::<10>(fixture).iter().sum::<u64>()
    );
    sample
}

fn by_direction(fixture: &Fixture, _: Form) -> Sample {
    fold(
        fixture,
        60,
        || [0u64; 2],
        |counts, _, order| {
            counts[usize::from(order.direction == Direction::Sell)] += 1;
        },
    )
}

fn weighted_price(fixture: &Fixture, _: Form) -> Sample {
    fold(
        fixture,
        300,
        || [0i128; 2],
        |sums, _, order| {
            if order.status == Status::Filled {
                sums[0] += i128::from(order.ask) * i128::from(order.amount);
                sums[1] += i128::from(order.amount);
            }
        },
    )
}

fn by_status(fixture: &Fixture, _: Form) -> Sample {
    fold(
        fixture,
        60,
        || [0u64; 3],
        |counts, _, order| {
            counts[order.status as usize] += 1;
        },
    )
}

fn by_ticker(fixture: &Fixture, _: Form) -> Sample {
    let mut best = Vec::new();
    let sample = timed_again(|| {
        let mut counts = [0u64; 100];
        let mut rows = 0;
        for (_, order) in fixture.loaded.range(..) {
            counts[usize::from(order.ticker)] += 1;
            rows += 1;
        }
        best = first_five(&counts);
        rows
    });
    let mut expected = [0; 100];
    for row in &fixture.late05 {
        expected[usize::from(row.order.ticker)] += 1;
    }
    assert_eq!(best, first_five(&expected));
    assert_eq!(sample.operations, ROWS as u64);
    sample
}

fn first_five(counts: &[u64]) -> Vec<(u64, usize)> {
    let mut best: Vec<(u64, usize)> = counts.iter().copied().zip(0..).collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    best.truncate(5);
    best
}

fn spread(fixture: &Fixture, _: Form) -> Sample {
    fold(
        fixture,
        300,
        || (0i64, 0i64, i64::MAX, i64::MIN),
        |found, _, order| {
            if let Some(bid) = order.bid() {
                let spread = order.ask - bid;
                *found = (
                    found.0 + 1,
                    found.1 + spread,
                    found.2.min(spread),
                    found.3.max(spread),
                );
            }
        },
    )
}

fn commission(fixture: &Fixture, _: Form) -> Sample {
    fold(
        fixture,
        300,
        || 0u64,
        |sum, _, order| {
            *sum += u64::from(order.commission);
        },
    )
}

fn gaps(fixture: &Fixture, _: Form) -> Sample {
    let start = || ([0u64; 5], fixture.t0);
    let sample = fold(fixture, 10, start, |(counts, before), ts, _| {
        let gap = ts - *before;
        *before = ts;
        let size = match gap {
            ..1_000 => 0,
            1_000..10_000 => 1,
            10_000..100_000 => 2,
            100_000..1_000_000 => 3,
            _ => 4,
        };
        counts[size] += 1;
    });
    assert!(sample.operations > 30_000);
    sample
}

/// From the first row to the last of order 1; those of it alone are looked at.
fn life_of_an_order(fixture: &Fixture, _: Form) -> Sample {
    let rows_of_first = fixture.sorted.iter().filter(|row| row.order.id == 1);
    let span = |mut rows: Vec<Ts>| {
        rows.sort_unstable();
        (rows[0], rows[rows.len() - 1])
    };
    let (first, last) = span(rows_of_first.map(|row| row.ts).collect());
    let mut amounts = [0u32; 3];
    let sample = timed_again(|| {
        amounts = [0; 3];
        let mut rows = 0;
        for (_, order) in fixture.loaded.range(first..=last) {
            rows += 1;
            if order.id == 1 {
                amounts[order.status as usize] += order.amount;
            }
        }
        rows
    });
    assert_eq!(
        amounts[0],
        amounts[1] + amounts[2],
        "filled by what it opened"
    );
    let expected = fixture.within(first - fixture.t0, last + 1 - fixture.t0);
    assert_eq!(sample.operations, expected.len() as u64);
    sample
}

fn replay(fixture: &Fixture, _: Form) -> Sample {
    timed_again(|| {
        let (mut before, mut rows, mut amounts) = (Ts::MIN, 0, 0u64);
        for (ts, order) in fixture.loaded.range(fixture.t0..fixture.t0 + 60 * SECOND) {
            assert!(before <= ts);
            before = ts;
            amounts = amounts.wrapping_add(u64::from(order.amount));
            rows += 1;
        }
        assert_eq!(rows, ROWS as u64);
        black_box(amounts);
        rows
    })
}

/// Which of the windows hold more than twice the mean of those that hold any.
fn above_twice_the_mean(counts: &[u64; 60]) -> Vec<usize> {
    let held = counts.iter().filter(|count| **count > 0).count() as u64;
    let rows: u64 = counts.iter().sum();
    let is_burst = |count: u64| count * held > 2 * rows;
    (0..60).filter(|number| is_burst(counts[*number])).collect()
}

fn bursts(fixture: &Fixture, _: Form) -> Sample {
    let mut found = Vec::new();
    let sample = timed_again(|| {
        let mut counts = [0u64; 60];
        for (number, count) in (0..).zip(&mut counts) {
            let start = fixture.t0 + number * SECOND;
            for row in fixture.loaded.range(start..start + SECOND) {
                black_box((row.0, *row.1));
                *count += 1;
            }
        }
        found = above_twice_the_mean(&counts);
        counts.iter().sum()
    });
    assert_eq!(found, above_twice_the_mean(&expected_counts(fixture)));
    assert_eq!(sample.operations, ROWS as u64);
    sample
}

fn bursts_in_one_pass(fixture: &Fixture, _: Form) -> Sample {
    let mut found = Vec::new();
    let sample = timed_again(|| {
        let (mut counts, mut rows) = ([0u64; 60], 0);
        for (ts, order) in fixture.loaded.range(fixture.t0..fixture.t0 + 60 * SECOND) {
            black_box(*order);
            counts[((ts - fixture.t0) / SECOND) as usize] += 1;
            rows += 1;
        }
        found = above_twice_the_mean(&counts);
        rows
    });
    assert_eq!(found, above_twice_the_mean(&expected_counts(fixture)));
    assert_eq!(sample.operations, ROWS as u64);
    sample
}

fn samples(fixture: &Fixture, form: Form) -> Sample {
    let mut copies: Vec<(Ts, Order)> = Vec::with_capacity(1_000);
    let sample = look_up(fixture, 1_000, form, |ts, rows| {
        copies.clear();
        copies.extend(rows.map(|(ts, order)| (ts, *order)));
        assert!(copies.first().is_some_and(|row| row.0 == ts));
    });
    assert_eq!(sample.operations, 100);
    sample
}
