//! What the machine allows, and what std's collections do.

use std::collections::BTreeMap;

use timelog::Ts;

use super::sample::{Sample, timed};
use super::writes::pairs;
use super::{Case, Fixture, unpublished};
use crate::dataset::Order;

pub const CASES: &[Case] = &[
    unpublished("floor-push", push),
    unpublished("floor-copy", copy),
    unpublished("floor-scan", scan),
    unpublished("floor-sum", sum),
    unpublished("floor-search", search),
    unpublished("btree-ingest", btree_ingest),
    unpublished("btree-scan", btree_scan),
    unpublished("btree-point", btree_point),
    unpublished("vec-ingest", vec_ingest),
];

/// Rows onto two columns.
fn push(fixture: &Fixture) -> Sample {
    let (mut ts, mut values) = (Vec::with_capacity(100_000), Vec::with_capacity(100_000));
    let sample = timed(|| {
        for row in &fixture.late05 {
            ts.push(row.ts);
            values.push(row.order);
        }
        ts.len() as u64
    });
    assert_eq!(values.len(), 100_000);
    sample
}

/// Batches of 10,000 into two columns that grow.
fn copy(fixture: &Fixture) -> Sample {
    let batches: Vec<_> = fixture.late05.chunks(10_000).map(pairs).collect();
    let (mut ts, mut values): (Vec<Ts>, Vec<Order>) = (Vec::new(), Vec::new());
    let sample = timed(|| {
        for batch in batches {
            for (at, order) in batch {
                ts.push(at);
                values.push(order);
            }
        }
        ts.len() as u64
    });
    assert_eq!(values.len(), 100_000);
    sample
}

fn columns(fixture: &Fixture) -> (Vec<Ts>, Vec<Order>) {
    fixture.sorted.iter().map(|row| (row.ts, row.order)).unzip()
}

fn scan(fixture: &Fixture) -> Sample {
    let (ts, values) = columns(fixture);
    let expected: u64 = values.iter().map(|order| u64::from(order.amount)).sum();
    timed(|| {
        let mut found = 0;
        for (_, order) in ts.iter().zip(&values) {
            found += u64::from(order.amount);
        }
        assert_eq!(found, expected);
        ts.len() as u64
    })
}

fn sum(fixture: &Fixture) -> Sample {
    let (ts, _) = columns(fixture);
    let expected = fixture
        .late05
        .iter()
        .fold(0, |sum: i64, row| sum.wrapping_add(row.ts));
    timed(|| {
        assert_eq!(
            ts.iter().fold(0, |sum: i64, ts| sum.wrapping_add(*ts)),
            expected
        );
        ts.len() as u64
    })
}

/// A binary search over fences of 1,365 rows, then one in the page.
fn search(fixture: &Fixture) -> Sample {
    let (ts, _) = columns(fixture);
    let fences: Vec<Ts> = ts.iter().copied().step_by(1_365).collect();
    let wanted: Vec<Ts> = ts.iter().copied().step_by(100).collect();
    timed(|| {
        for ts_wanted in &wanted {
            let page = fences.partition_point(|fence| fence <= ts_wanted) - 1;
            let rows = &ts[page * 1_365..ts.len().min((page + 1) * 1_365)];
            assert!(rows.binary_search(ts_wanted).is_ok());
        }
        wanted.len() as u64
    })
}

fn btree(fixture: &Fixture) -> BTreeMap<(Ts, u64), Order> {
    (0..)
        .zip(&fixture.late05)
        .map(|(seq, row)| ((row.ts, seq), row.order))
        .collect()
}

fn btree_ingest(fixture: &Fixture) -> Sample {
    let mut map = BTreeMap::new();
    let sample = timed(|| {
        for (seq, row) in (0u64..).zip(&fixture.late05) {
            map.insert((row.ts, seq), row.order);
        }
        map.len() as u64
    });
    assert_eq!(sample.operations, 100_000);
    sample
}

fn btree_scan(fixture: &Fixture) -> Sample {
    let map = btree(fixture);
    let expected: u64 = fixture
        .sorted
        .iter()
        .map(|row| u64::from(row.order.amount))
        .sum();
    timed(|| {
        assert_eq!(
            map.values()
                .map(|order| u64::from(order.amount))
                .sum::<u64>(),
            expected
        );
        map.len() as u64
    })
}

fn btree_point(fixture: &Fixture) -> Sample {
    let map = btree(fixture);
    let wanted: Vec<Ts> = fixture
        .sorted
        .iter()
        .step_by(100)
        .map(|row| row.ts)
        .collect();
    timed(|| {
        assert!(
            wanted
                .iter()
                .all(|ts| map.range((*ts, 0)..=(*ts, u64::MAX)).next().is_some())
        );
        wanted.len() as u64
    })
}

/// A vector that is kept sorted by (timestamp, arrival).
fn vec_ingest(fixture: &Fixture) -> Sample {
    let mut sorted: Vec<(Ts, Order)> = Vec::new();
    let sample = timed(|| {
        for row in &fixture.late05 {
            let place = sorted.partition_point(|other| other.0 <= row.ts);
            sorted.insert(place, (row.ts, row.order));
        }
        sorted.len() as u64
    });
    assert!(
        sorted
            .iter()
            .map(|row| row.0)
            .eq(fixture.sorted.iter().map(|row| row.ts))
    );
    sample
}
