//! What the log does.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::quantiles::Samples;
use timelog::{Config, MemLog, Snapshot, Ts};

use super::super::reads::{NO_MOMENTS, moments};
use super::super::sample::{Sample, timed, timed_again, timed_warm};
use super::super::writes::STEP_EVERY;
use super::data::{Data, PROBES, Pair, flushing, new, unflushed};
use super::floors::{add, sum_of};

pub fn ingest(rows: &[Pair], config: Config, is_flushed: bool) -> Sample {
    let batches: Vec<Vec<Pair>> = rows.chunks(10_000).map(<[_]>::to_vec).collect();
    let mut log = new(config);
    let sample = timed(|| {
        for batch in batches {
            log.extend(batch).expect("no limit is set");
        }
        if is_flushed {
            log.flush();
        }
        rows.len() as u64
    });
    assert_eq!(log.snapshot().count(..), sample.operations);
    sample
}

/// `Some(0)`: the writer flushes; else steps of so many rows after each 64. Flushed at the end
/// then.
pub fn append(rows: &[Pair], config: Config, step: Option<usize>) -> Sample {
    let mut log = new(config);
    let sample = timed(|| {
        for (number, (ts, value)) in (1..).zip(rows) {
            log.append(*ts, *value).expect("no limit is set");
            if let Some(rows @ 1..) = step
                && number % STEP_EVERY == 0
            {
                log.step(rows);
            }
        }
        if step.is_some() {
            log.flush();
        }
        rows.len() as u64
    });
    assert_eq!(log.snapshot().count(..), sample.operations);
    sample
}

pub fn span_sum(log: &Snapshot<u64>, end: Ts, rows: usize) -> Sample {
    timed_warm(|| {
        let (mut found, mut read) = (0, 0);
        for span in log.spans(..=end) {
            found = sum_of(span.timestamps()).wrapping_add(found);
            read += span.len();
        }
        black_box(found);
        assert_eq!(read, rows);
        read as u64
    })
}

pub fn span_moments(data: &Data) -> Sample {
    let t0 = data.ts[0];
    timed_warm(|| {
        let spans = data.log.spans(..);
        let found = spans.fold(NO_MOMENTS, |so_far, span| {
            moments(span.timestamps(), t0, so_far)
        });
        black_box(found);
        data.ts.len() as u64
    })
}

pub fn scan_rows(log: &Snapshot<u64>, rows: usize) -> Sample {
    timed_again(|| {
        let (mut found, mut read) = (0, 0);
        for row in log.range(..) {
            found = add(found, row);
            read += 1;
        }
        black_box(found);
        assert_eq!(read, rows);
        read as u64
    })
}

pub fn scan_slices(data: &Data) -> Sample {
    timed_again(|| {
        let (mut found, mut read) = (0, 0);
        let mut rows = data.log.range(..);
        while let Some(slice) = rows.next_slice() {
            let rows = slice.timestamps().iter().copied().zip(slice.values());
            found = rows.fold(found, add);
            read += slice.len();
        }
        black_box(found);
        assert_eq!(read, data.ts.len());
        read as u64
    })
}

pub fn scan_fold(log: &Snapshot<u64>) -> Sample {
    timed_again(|| {
        let mut read = 0;
        let found = log.range(..).fold(0, |found, row| {
            read += 1;
            add(found, row)
        });
        black_box(found);
        read
    })
}

pub fn scan_back(data: &Data) -> Sample {
    timed_again(|| {
        let (mut found, mut read) = (0, 0);
        let mut rows = data.log.range(..);
        while let Some(row) = rows.next_back() {
            found = add(found, row);
            read += 1;
        }
        black_box(found);
        assert_eq!(read, data.ts.len());
        read as u64
    })
}

pub fn points(log: &Snapshot<u64>, wanted: &[Ts]) -> Sample {
    timed_again(|| {
        let mut found = 0;
        for ts in wanted.iter().copied() {
            let row = log.at(ts).next();
            assert!(row.is_some_and(|row| row.0 == ts));
            found = row.map_or(found, |row| add(found, row));
        }
        black_box(found);
        wanted.len() as u64
    })
}

/// Between two rows at random, so of any width.
pub fn counts(log: &Snapshot<u64>, data: &Data) -> Sample {
    timed_again(|| {
        let mut before = data.ts[0];
        for ts in data.wanted.iter().copied() {
            black_box(log.count(before.min(ts)..before.max(ts)));
            before = ts;
        }
        data.probes.len() as u64
    })
}

pub fn short_ranges(log: &Snapshot<u64>, data: &Data) -> Sample {
    timed_again(|| {
        let mut found = 0;
        for range in data.hundreds.iter().cloned() {
            for row in log.range(range) {
                found = add(found, row);
            }
        }
        black_box(found);
        data.probes.len() as u64
    })
}

pub fn short_ranges_folded(log: &Snapshot<u64>, data: &Data) -> Sample {
    timed_again(|| {
        let mut found = 0;
        for range in data.hundreds.iter().cloned() {
            found = log.range(range).fold(found, add);
        }
        black_box(found);
        data.probes.len() as u64
    })
}

/// Deletes of one row each, with a step of maintenance after each: what it costs to keep up.
pub fn point_deletes(data: &Data) -> Sample {
    let mut log = new(flushing());
    data.late05
        .chunks(10_000)
        .for_each(|batch| drop(log.extend(batch.to_vec())));
    log.flush();
    log.compact();
    timed(|| {
        for ts in data.wanted.iter().copied() {
            log.delete_at(ts);
            black_box(log.step(128));
        }
        data.wanted.len() as u64
    })
}

pub fn next_after(data: &Data) -> Sample {
    timed_again(|| {
        for ts in data.wanted.iter().copied() {
            assert!(data.log.next_after(ts) > Some(ts));
        }
        data.probes.len() as u64
    })
}

pub fn prev_before(data: &Data) -> Sample {
    timed_again(|| {
        for ts in data.wanted.iter().copied() {
            assert!(data.log.prev_before(ts).is_none_or(|prev| prev < ts));
        }
        data.probes.len() as u64
    })
}

pub fn first(data: &Data) -> Sample {
    timed_again(|| {
        for _ in 0..PROBES {
            assert_eq!(black_box(&data.log).first(), Some(data.ts[0]));
        }
        PROBES as u64
    })
}

pub fn last(data: &Data) -> Sample {
    timed_again(|| {
        for _ in 0..PROBES {
            assert_eq!(black_box(&data.log).last(), data.ts.last().copied());
        }
        PROBES as u64
    })
}

/// Of a log with rows in its memtable.
pub fn snapshots(data: &Data, is_written: bool) -> Sample {
    let mut log = new(unflushed());
    log.extend(data.late05.iter().copied().take(10_000))
        .expect("no limit is set");
    let rows = data.late05.iter().skip(10_000).take(PROBES);
    timed(|| {
        let mut snapshots = 0;
        for (ts, value) in rows {
            if is_written {
                log.append(*ts, *value).expect("no limit is set");
            }
            black_box(log.snapshot());
            snapshots += 1;
        }
        snapshots
    })
}

const DELETES: usize = 2_000;

/// Each deletes a hundred rows at random; the sample is the median.
pub fn deletes(data: &Data) -> (Sample, MemLog<u64>) {
    let mut log = new(flushing());
    data.late05
        .chunks(10_000)
        .for_each(|batch| drop(log.extend(batch.to_vec())));
    log.flush();
    log.compact();
    let mut times = Vec::with_capacity(DELETES);
    for row in &data.probes[..DELETES.min(data.probes.len())] {
        let range = data.ts[*row]..=data.ts[*row + 99];
        let start = Instant::now();
        log.delete(range).expect("the range is not empty");
        times.push(start.elapsed());
    }
    (median(times), log)
}

pub fn median(times: Vec<Duration>) -> Sample {
    let median = times.into_iter().collect::<Samples>().median();
    Sample {
        operations: 1,
        elapsed: Duration::from_nanos(median.expect("there is a time at least") as u64),
    }
}

pub fn thousandths(data: &Data) -> Sample {
    let width = data.ts.len() / 1_000;
    timed_again(|| {
        for rows in data.ts.chunks(width).take(500) {
            black_box(data.log.count(rows[0]..rows[rows.len() - 1]));
        }
        500
    })
}
