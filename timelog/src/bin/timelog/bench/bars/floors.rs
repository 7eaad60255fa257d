//! Bare loops over the same rows.

use std::hint::black_box;
use std::ops::Range;

use timelog::{Snapshot, Ts};

use super::super::reads::{NO_MOMENTS, moments};
use super::super::sample::{Sample, timed, timed_again, timed_warm};
use super::data::{Columns, Data, PAGE_ROWS, Pair};

pub fn copy(rows: &[Pair]) -> Sample {
    let batches: Vec<Vec<Pair>> = rows.chunks(10_000).map(<[_]>::to_vec).collect();
    let (mut ts, mut values) = with_capacity(rows.len());
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

/// Memory that was written to before: neither the allocator nor the kernel is in the clock.
fn with_capacity(rows: usize) -> (Vec<Ts>, Vec<u64>) {
    let (mut ts, mut values) = (vec![1; rows], vec![1; rows]);
    ts.clear();
    values.clear();
    (black_box(ts), black_box(values))
}

pub fn push(rows: &[Pair]) -> Sample {
    let (mut ts, mut values) = with_capacity(rows.len());
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

/// Once for the floor and for the log: as a part of its caller, it is compiled to loops of which one
/// takes half as long again as another.
#[inline(never)]
pub fn sum_of(ts: &[Ts]) -> Ts {
    ts.iter().fold(0, |sum: Ts, ts| sum.wrapping_add(*ts))
}

pub fn sum(ts: &[Ts]) -> Sample {
    timed_warm(|| {
        black_box(sum_of(black_box(ts)));
        ts.len() as u64
    })
}

/// Of the first rows of columns that lie apart, as the pages of a log do.
pub fn sum_apart(columns: &[Columns], rows: usize) -> Sample {
    timed_warm(|| {
        let (mut found, mut read) = (0, 0);
        for (ts, _) in black_box(columns) {
            let ts = &ts[..ts.len().min(rows - read)];
            found = sum_of(ts).wrapping_add(found);
            read += ts.len();
            if read == rows {
                break;
            }
        }
        black_box(found);
        assert_eq!(read, rows);
        read as u64
    })
}

pub fn column_moments(data: &Data) -> Sample {
    timed_warm(|| {
        black_box(moments(black_box(&data.ts), data.ts[0], NO_MOMENTS));
        data.ts.len() as u64
    })
}

/// The same in all scans: both columns are read.
pub fn add(sum: u64, (ts, value): (Ts, &u64)) -> u64 {
    sum.wrapping_add(*value).wrapping_add(ts as u64)
}

/// Which of the rows are left in a log.
pub fn stretches(data: &Data, left: &Snapshot<u64>) -> Vec<Range<usize>> {
    let mut next = 0;
    let stretches = left.spans(..).map(|span| {
        let start = next + data.ts[next..].partition_point(|ts| *ts < span.first());
        next = start + span.len();
        start..next
    });
    stretches.collect()
}

/// Both columns, by stretches whose ends are known.
pub fn scan_stretches(data: &Data, stretches: &[Range<usize>]) -> Sample {
    timed_again(|| {
        let (mut found, mut read) = (0, 0);
        for rows in black_box(stretches) {
            let ts = data.ts[rows.clone()].iter().copied();
            found = ts.zip(&data.values[rows.clone()]).fold(found, add);
            read += rows.len() as u64;
        }
        black_box(found);
        read
    })
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
fn place(data: &Data, ts: Ts) -> usize {
    let page = data.fences.partition_point(|fence| *fence < ts).max(1) - 1;
    let end = data.ts.len().min((page + 1) * PAGE_ROWS);
    let rows = &data.ts[page * PAGE_ROWS..end];
    page * PAGE_ROWS + rows.partition_point(|other| *other < ts)
}

/// A search and the row.
pub fn search(data: &Data) -> Sample {
    timed_again(|| {
        let mut found = 0;
        for ts in data.wanted.iter().copied() {
            let row = place(data, ts);
            assert!(data.ts.get(row) == Some(&ts));
            found = add(found, (ts, &data.values[row]));
        }
        black_box(found);
        data.probes.len() as u64
    })
}

/// Two searches, for both ends of a count.
pub fn two_searches(data: &Data) -> Sample {
    timed_again(|| {
        let mut before = data.ts[0];
        for ts in data.wanted.iter().copied() {
            black_box(place(data, before.max(ts)) - place(data, before.min(ts)));
            before = ts;
        }
        data.probes.len() as u64
    })
}

/// A search, and the hundred rows that follow.
pub fn search_and_read(data: &Data) -> Sample {
    timed_again(|| {
        let mut found = 0;
        for range in data.hundreds.iter().cloned() {
            let start = place(data, range.start);
            let rows = data.ts[start..].iter().copied().zip(&data.values[start..]);
            for row in rows.take_while(|row| row.0 < range.end) {
                found = add(found, row);
            }
        }
        black_box(found);
        data.probes.len() as u64
    })
}
