//! Bare loops over the same rows.

use std::hint::black_box;

use timelog::Ts;

use super::super::reads::{NO_MOMENTS, moments};
use super::super::sample::{Sample, timed, timed_again};
use super::data::{Data, PAGE_ROWS, Pair};

pub fn copy(rows: &[Pair]) -> Sample {
    let batches: Vec<Vec<Pair>> = rows.chunks(10_000).map(<[_]>::to_vec).collect();
    let (mut ts, mut values) = (Vec::new(), Vec::new());
    let sample = timed(|| {
        for batch in batches {
            for (at, value) in batch {
                ts.push(at);
                values.push(value);
            }
        }
        rows.len() as u64
    });
    assert_eq!((ts.len(), values.len()), (rows.len(), rows.len()));
    sample
}

pub fn push(rows: &[Pair]) -> Sample {
    let (mut ts, mut values) = (Vec::new(), Vec::new());
    let sample = timed(|| {
        for (at, value) in rows {
            ts.push(*at);
            values.push(*value);
        }
        rows.len() as u64
    });
    assert_eq!((ts.len(), values.len()), (rows.len(), rows.len()));
    sample
}

pub fn sort(rows: &[Pair]) -> Sample {
    let mut batches: Vec<Vec<Pair>> = rows.chunks(10_000).map(<[_]>::to_vec).collect();
    let sample = timed(|| {
        for batch in &mut batches {
            batch.sort_by_key(|row| row.0);
        }
        rows.len() as u64
    });
    assert!(
        batches
            .iter()
            .all(|batch| batch.is_sorted_by_key(|row| row.0))
    );
    sample
}

pub fn sum_of(ts: &[Ts]) -> Ts {
    ts.iter().fold(0, |sum: Ts, ts| sum.wrapping_add(*ts))
}

pub fn sum(ts: &[Ts]) -> Sample {
    timed_again(|| {
        black_box(sum_of(black_box(ts)));
        ts.len() as u64
    })
}

pub fn column_moments(data: &Data) -> Sample {
    timed_again(|| {
        black_box(moments(black_box(&data.ts), data.ts[0], NO_MOMENTS));
        data.ts.len() as u64
    })
}

/// The same in all scans: both columns are read.
pub fn add(sum: u64, (ts, value): (Ts, &u64)) -> u64 {
    sum.wrapping_add(*value).wrapping_add(ts as u64)
}

pub fn scan(data: &Data) -> Sample {
    let (ts, values) = (&data.ts, &data.values);
    timed_again(|| {
        let rows = black_box(ts).iter().copied().zip(black_box(values));
        black_box(rows.fold(0, add));
        ts.len() as u64
    })
}

/// The least of four heads, row by row.
pub fn merge(data: &Data) -> Sample {
    timed_again(|| {
        let mut at = [0; 4];
        let mut heads = [0, 1, 2, 3].map(|column: usize| data.four[column].0.first().copied());
        let (mut found, mut read) = (0, 0);
        loop {
            let mut least = None;
            for (column, head) in heads.iter().enumerate() {
                if let Some(head) = head
                    && least.is_none_or(|(_, other)| head < other)
                {
                    least = Some((column, head));
                }
            }
            let Some((column, head)) = least else { break };
            let (ts, values) = &data.four[column];
            found = add(found, (*head, &values[at[column]]));
            at[column] += 1;
            heads[column] = ts.get(at[column]).copied();
            read += 1;
        }
        black_box(found);
        assert_eq!(read, data.ts.len());
        read as u64
    })
}

/// Fences, then a page.
pub fn search(data: &Data) -> Sample {
    timed_again(|| {
        for ts in data.wanted.iter().copied() {
            let page = data.fences.partition_point(|fence| *fence <= ts) - 1;
            let end = data.ts.len().min((page + 1) * PAGE_ROWS);
            let rows = &data.ts[page * PAGE_ROWS..end];
            let place = rows.partition_point(|other| *other < ts);
            assert!(rows.get(place) == Some(&ts));
        }
        data.probes.len() as u64
    })
}
