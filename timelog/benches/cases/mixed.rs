//! Cases I, J, K2 to K5: rows are written and read in turn.

use std::hint::black_box;
use std::ops::{Range, RangeBounds};

use timelog::{Busy, Config, MemLog, Snapshot, Ts};

use crate::dataset::{Dataset, Order, Row};
use crate::fixture::{FIVE, Fixture, Form, ROWS, SECOND, Sample, TWENTY};
use crate::fixture::{again, finish, load, new_log, pairs, timed, write};
use crate::reads::{amounts, iterate};
use crate::writes::STEP_ROWS;

pub fn run(id: &str, f: &Fixture, _: Form) -> Sample {
    match id {
        "I1" => write_and_read(f),
        "I2" => iterate(f, f.t0..f.t0 + SECOND),
        "I3" => with_a_future(f),
        "J1" => read_amplification(f),
        "J2" => sum([1_000, 2_000, 4_000, 8_000, 16_000].map(|rows| grow(rows, false))),
        "J3" => sum([2_000, 4_000, 8_000, 16_000].map(|rows| grow(rows, true))),
        "K2" => read_what_was_written(f),
        "K3" => read_what_was_flushed(f),
        "K4" => deletes_in_two_states(f),
        "K5" => sum((0..16).map(|number| cell(f, number))),
        _ => unreachable!("no workload for {id}"),
    }
}

fn sum(samples: impl IntoIterator<Item = Sample>) -> Sample {
    let add = |sum: Sample, part: Sample| Sample {
        operations: sum.operations + part.operations,
        elapsed: sum.elapsed + part.elapsed,
    };
    samples.into_iter().reduce(add).expect("there are some")
}

/// A log whose memtable no case here fills.
fn unflushed() -> MemLog<Order> {
    new_log(Config::default().memtable_bytes(32 << 20))
}

fn write_and_read(f: &Fixture) -> Sample {
    let batch = f.rows[FIVE][..10_000].to_vec();
    let expected = amounts(pairs(&batch));
    let mut log = unflushed();
    let sample = timed(10_000, || {
        write(&mut log, batch);
        assert_eq!(amounts(log.snapshot().range(..)), expected);
    });
    assert_eq!(log.stats().segment_rows, 0);
    finish(log, 10_000);
    sample
}

fn with_a_future(f: &Fixture) -> Sample {
    let mut log = load(&f.rows[FIVE]);
    let mut ahead = f.rows[FIVE][..1_000].to_vec();
    ahead.iter_mut().for_each(|row| row.0 += 1_000_000 * SECOND);
    write(&mut log, ahead);
    let snapshot = log.snapshot();
    let sample = again(ROWS + 1_000, ROWS as u64 + 1_000, || scan(&snapshot, ..));
    finish(log, ROWS + 1_000);
    sample
}

/// Iterates a range; time must not go back.
fn scan(snapshot: &Snapshot<Order>, range: impl RangeBounds<Ts>) -> u64 {
    let (mut before, mut rows) = (Ts::MIN, 0);
    for (ts, order) in snapshot.range(range) {
        black_box(*order);
        assert!(before <= ts);
        before = ts;
        rows += 1;
    }
    rows
}

/// `count` rows, a millisecond apart.
fn rows_1_ms_apart(f: &Fixture, count: usize) -> Vec<Row> {
    let orders = f.rows[FIVE][..count].iter().map(|row| row.1);
    (0..).map(|ms| ms * 1_000_000).zip(orders).collect()
}

/// What a cursor passes are the slices that it hands out: none of them may hold a row beyond the
/// window.
fn read_amplification(f: &Fixture) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    write(&mut log, rows_1_ms_apart(f, 20_000));
    log.flush();
    let snapshot = log.snapshot();
    let windows = [100, 1_000, 5_000, 10_000].map(|rows| {
        let first = 3_000_000_000;
        first..first + rows * 1_000_000
    });
    let scanned = |window: &Range<Ts>| scan(&snapshot, window.clone());
    let sample = again(16_100, 16_100, || windows.iter().map(scanned).sum::<u64>());
    let mut passed = 0;
    for window in windows {
        let mut rows = snapshot.range(window);
        while let Some(slice) = rows.next_slice() {
            passed += slice.len();
        }
    }
    assert_eq!(passed, 16_100);
    sample
}

/// Loads and scans so many rows. Deletes a tenth in the middle, adds rows all over and compacts,
/// too, if that is wanted.
fn grow(rows: usize, is_reclaimed: bool) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    let made: Vec<Row> = Dataset::new(rows, 50_000).collect();
    let first = made.iter().map(|row| row.0).min().expect("there are rows");
    let last = made.iter().map(|row| row.0).max().expect("there are rows");
    let batches: Vec<_> = made.chunks(10_000).map(<[_]>::to_vec).collect();
    let load = timed(rows, || {
        batches.into_iter().for_each(|batch| write(&mut log, batch));
        log.flush();
    });
    let snapshot = log.snapshot();
    let scan = timed(0, || assert_eq!(amounts(snapshot.range(..)).0, rows));
    if !is_reclaimed {
        return sum([load, scan]);
    }
    let tenth = (last - first) / 10;
    let middle = first + 4 * tenth..first + 5 * tenth;
    let left = snapshot.count(..) - snapshot.count(middle.clone());
    drop(snapshot);
    let added = rows / 20;
    let between = (last - first) / added as Ts;
    let late: Vec<Row> = Dataset::new(added, 50_000)
        .zip(0..)
        .map(|((_, order), number)| (first + between * number, order))
        .collect();
    let reclaim = timed(0, || {
        log.delete(middle).expect("the range is not empty");
        write(&mut log, late);
        log.flush();
        log.compact();
    });
    assert_eq!(log.stats().delete_intervals, 0);
    finish(log, left as usize + added);
    sum([load, scan, reclaim])
}

/// The rows of a batch are among those read from its least timestamp on; late rows of earlier
/// batches may be too.
fn assert_holds(snapshot: &Snapshot<Order>, batch: &[Row]) {
    let ends = batch.iter().fold((Ts::MAX, Ts::MIN), |(first, last), row| {
        (first.min(row.0), last.max(row.0))
    });
    let rows = scan(snapshot, ends.0..=ends.1);
    assert!(rows >= batch.len() as u64);
}

fn read_what_was_written(f: &Fixture) -> Sample {
    let batches: Vec<_> = f.rows[FIVE][..20_000].chunks(1_000).collect();
    let copies: Vec<_> = batches.iter().map(|batch| batch.to_vec()).collect();
    let mut log = unflushed();
    let sample = timed(20_000, || {
        for (batch, copy) in batches.into_iter().zip(copies) {
            write(&mut log, copy);
            assert_holds(&log.snapshot(), batch);
        }
    });
    assert_eq!(log.stats().segment_rows, 0);
    finish(log, 20_000);
    sample
}

fn read_what_was_flushed(f: &Fixture) -> Sample {
    let batches: Vec<_> = f.rows[FIVE][..15_000].chunks(1_000).collect();
    let copies: Vec<_> = batches.iter().map(|batch| batch.to_vec()).collect();
    let mut log = new_log(Config::default());
    let sample = timed(15_000, || {
        for (round, copy) in copies.into_iter().enumerate() {
            write(&mut log, copy);
            log.flush();
            assert_holds(&log.snapshot(), batches[round.saturating_sub(3)]);
        }
    });
    finish(log, 15_000);
    sample
}

/// The published case gives a rate for each state, unflushed and flushed; they are the same work
/// here, so the sum is one figure.
fn deletes_in_two_states(f: &Fixture) -> Sample {
    let rows = rows_1_ms_apart(f, 10_000);
    let mut logs = [0, 1].map(|_| new_log(Config::bulk_ingest()));
    for log in &mut logs {
        write(log, rows.clone());
    }
    logs[1].flush();
    let sample = timed(20_000, || {
        for log in &mut logs {
            assert_eq!(scan(&log.snapshot(), ..), 10_000);
            for row in (0..10_000).step_by(1_000) {
                log.delete_at(row * 1_000_000);
            }
            assert_eq!(scan(&log.snapshot(), ..), 9_990);
            log.flush();
            log.compact();
            assert_eq!(scan(&log.snapshot(), ..), 9_990);
        }
    });
    for log in logs {
        let stats = log.stats();
        assert_eq!((stats.segment_rows, stats.delete_intervals), (9_990, 0));
        finish(log, 9_990);
    }
    sample
}

/// One of sixteen configurations: rows of which a fifth is late, the last second read after each
/// batch.
fn cell(f: &Fixture, number: usize) -> Sample {
    let is_background = number & 8 != 0;
    let busy = [Busy::Signal, Busy::Flush][number >> 2 & 1];
    let sealed_runs = 1 + (number & 1);
    let config = Config::default()
        .memtable_bytes([64 << 10, 512 << 10][number >> 1 & 1])
        .sealed_runs(sealed_runs)
        .busy(busy);
    let mut log = new_log(config);
    let batches = f.rows[TWENTY][..20_000].chunks(1_000);
    let batches: Vec<_> = batches.map(<[_]>::to_vec).collect();
    let mut pressure = 0;
    let mut latest = Ts::MIN;
    let sample = timed(20_000, || {
        for batch in batches {
            latest = batch.iter().fold(latest, |latest, row| latest.max(row.0));
            let appended = log.extend(batch).expect("no limit is set");
            pressure += u64::from(appended.pressure);
            if is_background {
                log.step(STEP_ROWS);
            }
            let snapshot = log.snapshot();
            let read = scan(&snapshot, latest - SECOND..=latest);
            assert_eq!(read, snapshot.count(latest - SECOND..=latest));
        }
    });
    let stats = log.stats();
    assert_eq!(
        pressure, stats.pressure,
        "pressure is told as it is counted"
    );
    // The last one may be on its way.
    assert!(busy == Busy::Signal || stats.sealed_runs <= sealed_runs);
    finish(log, 20_000);
    sample
}
