//! Cases C and H: what users compute from orders.

use std::array;
use std::hint::black_box;
use std::ops::Range;

use timelog::Ts;

use crate::dataset::{Direction, Order, Status};
use crate::fixture::{Fixture, Form, SECOND, Sample, again, between, both};
use crate::reads::look_up;

/// Computes the same from the rows of the first seconds in the log, and from the expected ones.
macro_rules! of_first {
    ($f:expr, $seconds:expr, |$rows:ident| $work:expr) => {{
        let ns = $seconds * SECOND;
        both!($f.within(ns), $f.loaded.range($f.t0..$f.t0 + ns), |$rows| {
            $work
        })
    }};
}

pub fn run(id: &str, f: &Fixture, form: Form) -> Sample {
    match id {
        "C1" => again(
            f.within(10 * SECOND).len(),
            expected_counts::<10>(f),
            || counts_by_window(f, |window| iterated(f, window)),
        ),
        "C1-count" => again(
            f.within(10 * SECOND).len(),
            expected_counts::<10>(f),
            || counts_by_window(f, |window| f.loaded.count(window)),
        ),
        "C1B" => of_first!(f, 10, |rows| counts::<10>(rows, |ts, _| {
            ((ts - f.t0) / SECOND) as usize
        })),
        "C2" => of_first!(f, 60, |rows| counts::<2>(rows, |_, order| {
            usize::from(order.direction == Direction::Sell)
        })),
        "C3" => of_first!(f, 300, |rows| weighted_price(rows)),
        "C4" => of_first!(f, 60, |rows| counts::<3>(rows, |_, order| {
            order.status as usize
        })),
        "C5" => of_first!(f, 300, |rows| {
            first_five(&counts::<100>(rows, |_, order| usize::from(order.ticker)))
        }),
        "C6" => of_first!(f, 300, |rows| spread(rows)),
        "C7" => of_first!(f, 300, |rows| {
            let mut sum = 0;
            for (_, order) in rows {
                sum += u64::from(order.commission);
            }
            sum
        }),
        "C8" => of_first!(f, 10, |rows| gaps(rows, f.t0)),
        "H1" => life_of_an_order(f),
        "H2" => of_first!(f, 60, |rows| replay(rows)),
        "H3" => {
            let expected = above_twice_the_mean(expected_counts(f));
            again(f.within(60 * SECOND).len(), expected, || {
                above_twice_the_mean(counts_by_window(f, |window| iterated(f, window)))
            })
        }
        "H3B" => of_first!(f, 60, |rows| {
            above_twice_the_mean(counts(rows, |ts, order| {
                black_box(*order);
                ((ts - f.t0) / SECOND) as usize
            }))
        }),
        "H4" => samples(f, form),
        _ => unreachable!("no workload for {id}"),
    }
}

/// How many rows belong where.
fn counts<'a, const N: usize>(
    rows: impl Iterator<Item = (Ts, &'a Order)>,
    place: impl Fn(Ts, &Order) -> usize,
) -> [u64; N] {
    let mut counts = [0; N];
    for (ts, order) in rows {
        counts[place(ts, order)] += 1;
    }
    counts
}

/// Of windows of a second.
fn counts_by_window<const N: usize>(f: &Fixture, count: impl Fn(Range<Ts>) -> u64) -> [u64; N] {
    array::from_fn(|number| {
        let start = f.t0 + number as Ts * SECOND;
        count(start..start + SECOND)
    })
}

fn expected_counts<const N: usize>(f: &Fixture) -> [u64; N] {
    counts_by_window(f, |window| between(&f.sorted, window).len() as u64)
}

fn iterated(f: &Fixture, window: Range<Ts>) -> u64 {
    let mut count = 0;
    for row in f.loaded.range(window) {
        black_box((row.0, *row.1));
        count += 1;
    }
    count
}

fn weighted_price<'a>(rows: impl Iterator<Item = (Ts, &'a Order)>) -> [i128; 2] {
    let mut sums = [0; 2];
    for (_, order) in rows {
        if order.status == Status::Filled {
            sums[0] += i128::from(order.ask) * i128::from(order.amount);
            sums[1] += i128::from(order.amount);
        }
    }
    sums
}

fn first_five(counts: &[u64]) -> Vec<(u64, usize)> {
    let mut best: Vec<(u64, usize)> = counts.iter().copied().zip(0..).collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    best.truncate(5);
    best
}

/// Count, sum, least and greatest.
fn spread<'a>(rows: impl Iterator<Item = (Ts, &'a Order)>) -> (i64, i64, i64, i64) {
    let mut found = (0, 0, i64::MAX, i64::MIN);
    for (_, order) in rows {
        if let Some(bid) = order.bid() {
            let spread = order.ask - bid;
            let (count, sum, least, greatest) = found;
            found = (
                count + 1,
                sum + spread,
                least.min(spread),
                greatest.max(spread),
            );
        }
    }
    found
}

fn gaps<'a>(rows: impl Iterator<Item = (Ts, &'a Order)>, mut before: Ts) -> [u64; 5] {
    let mut counts = [0; 5];
    for (ts, _) in rows {
        let size = match ts - before {
            ..1_000 => 0,
            1_000..10_000 => 1,
            10_000..100_000 => 2,
            100_000..1_000_000 => 3,
            _ => 4,
        };
        before = ts;
        counts[size] += 1;
    }
    counts
}

/// From the first row to the last of order 1; those of it alone are looked at.
fn life_of_an_order(f: &Fixture) -> Sample {
    let of_first = f.sorted.iter().filter(|row| row.1.id == 1);
    let of_first: Vec<Ts> = of_first.map(|row| row.0).collect();
    let range = of_first[0]..of_first[of_first.len() - 1] + 1;
    both!(
        between(&f.sorted, range.clone()),
        f.loaded.range(range.clone()),
        |rows| {
            let mut amounts = [0; 3];
            for (_, order) in rows {
                if order.id == 1 {
                    amounts[order.status as usize] += order.amount;
                }
            }
            assert_eq!(
                amounts[0],
                amounts[1] + amounts[2],
                "filled by what it opened"
            );
            amounts
        }
    )
}

fn replay<'a>(rows: impl Iterator<Item = (Ts, &'a Order)>) -> (usize, u64) {
    let (mut before, mut count, mut sum) = (Ts::MIN, 0, 0);
    for (ts, order) in rows {
        assert!(before <= ts);
        before = ts;
        sum += u64::from(order.amount);
        count += 1;
    }
    (count, sum)
}

/// Which of the windows hold more than twice the mean of those that hold any.
fn above_twice_the_mean(counts: [u64; 60]) -> Vec<usize> {
    let held = counts.iter().filter(|count| **count > 0).count() as u64;
    let rows: u64 = counts.iter().sum();
    let is_burst = |count: u64| count * held > 2 * rows;
    (0..60).filter(|number| is_burst(counts[*number])).collect()
}

fn samples(f: &Fixture, form: Form) -> Sample {
    let mut copies: Vec<(Ts, Order)> = Vec::with_capacity(1_000);
    look_up(f, 1_000, form, |ts, rows| {
        copies.clear();
        copies.extend(rows.map(|(ts, order)| (ts, *order)));
        assert!(copies.first().is_some_and(|row| row.0 == ts));
    })
}
