//! Cases I, J1, K2 to K4: rows are written and read in turn.

use std::hint::black_box;
use std::ops::RangeBounds;

use timelog::{Config, MemLog, Snapshot, Ts};

use super::case::{Case, Fixture, Form, ROWS, SECOND, finish, new_log, pairs, read, write};
use super::sample::{Sample, timed, timed_again};
use super::{matrix, scaling};
use crate::dataset::Order;

pub const CASES: &[Case] = &[
    read(
        "I1",
        "write 10,000 rows, read them; memtable of 32 MiB",
        118e3,
        505e3,
        write_and_read,
    ),
    read(
        "I2",
        "1 s from segments, resident",
        660e3,
        11.9e6,
        from_segments,
    ),
    read(
        "I3",
        "1,000 rows from the future in the memtable, iterate all",
        552e3,
        9.7e6,
        with_a_future,
    ),
    read(
        "J1",
        "windows of 100, 1k, 5k, 10k rows: passed = returned",
        158e3,
        1.1e6,
        read_amplification,
    ),
    read(
        "J2",
        "load and scan of 1k to 16k rows",
        114e3,
        792e3,
        |_, _| scaling::published_sizes(&scaling::J2),
    ),
    read(
        "J3",
        "same from 2k to 16k, then delete and compact",
        67.9e3,
        408e3,
        |_, _| scaling::published_sizes(&scaling::J3),
    ),
    read(
        "K2",
        "20 × (write 1,000, read them), unflushed",
        147e3,
        755e3,
        read_what_was_written,
    ),
    read(
        "K3",
        "15 × (write 1,000, flush, read those of three rounds ago)",
        146e3,
        776e3,
        read_what_was_flushed,
    ),
    Case {
        published: None,
        ..read(
            "K4",
            "two logs: read, delete, read, flush, compact, read",
            0.0,
            362e3,
            deletes_in_two_states,
        )
    },
    Case {
        published: None,
        ..read(
            "K5",
            "sixteen configurations, the last second read after each batch",
            0.0,
            121e3,
            matrix::all,
        )
    },
];

fn write_and_read(fixture: &Fixture, _: Form) -> Sample {
    let batch = pairs(&fixture.late05[..10_000]);
    let expected: u64 = batch.iter().map(|row| u64::from(row.1.amount)).sum();
    let mut log = new_log(Config::default().memtable_bytes(32 << 20));
    let sample = timed(|| {
        write(&mut log, batch);
        let (mut rows, mut amounts) = (0, 0);
        for (_, order) in log.snapshot().range(..) {
            amounts += u64::from(order.amount);
            rows += 1;
        }
        assert_eq!(amounts, expected);
        rows
    });
    assert_eq!(log.stats().segment_rows, 0);
    finish(log, 10_000);
    sample
}

fn from_segments(fixture: &Fixture, _: Form) -> Sample {
    let mut amounts = 0u64;
    let sample = timed_again(|| {
        amounts = 0;
        let mut rows = 0;
        for (_, order) in fixture.loaded.range(fixture.t0..fixture.t0 + SECOND) {
            amounts += u64::from(order.amount);
            rows += 1;
        }
        rows
    });
    let expected = fixture.within(0, SECOND);
    assert_eq!(sample.operations, expected.len() as u64);
    assert_eq!(
        amounts,
        expected
            .iter()
            .map(|row| u64::from(row.order.amount))
            .sum::<u64>()
    );
    sample
}

fn with_a_future(fixture: &Fixture, _: Form) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    for batch in fixture.late05.chunks(10_000) {
        write(&mut log, pairs(batch));
    }
    log.flush();
    let mut ahead = pairs(&fixture.late05[..1_000]);
    ahead.iter_mut().for_each(|row| row.0 += 1_000_000 * SECOND);
    write(&mut log, ahead);
    let snapshot = log.snapshot();
    let sample = timed_again(|| scan(&snapshot, ..));
    assert_eq!(sample.operations, ROWS as u64 + 1_000);
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
fn rows_1_ms_apart(fixture: &Fixture, count: usize) -> Vec<(Ts, Order)> {
    let orders = fixture.late05[..count].iter().map(|row| row.order);
    (0..).map(|ms| ms * 1_000_000).zip(orders).collect()
}

/// What a cursor passes are the slices that it hands out: none of them may hold a row beyond the
/// window.
fn read_amplification(fixture: &Fixture, _: Form) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    write(&mut log, rows_1_ms_apart(fixture, 20_000));
    log.flush();
    let snapshot = log.snapshot();
    let windows = [100, 1_000, 5_000, 10_000].map(|rows| {
        let first = 3_000_000_000;
        first..first + rows * 1_000_000
    });
    let sample = timed_again(|| {
        windows
            .iter()
            .map(|window| scan(&snapshot, window.clone()))
            .sum()
    });
    let mut passed = 0;
    for window in windows {
        let mut rows = snapshot.range(window);
        while let Some(slice) = rows.next_slice() {
            passed += slice.len() as u64;
        }
    }
    assert_eq!((sample.operations, passed), (16_100, 16_100));
    sample
}

/// The rows of a batch are among those read from its least timestamp on; late rows of earlier
/// batches may be too.
fn assert_holds(snapshot: &Snapshot<Order>, batch: &[(Ts, Order)]) {
    let ends = batch.iter().fold((Ts::MAX, Ts::MIN), |(first, last), row| {
        (first.min(row.0), last.max(row.0))
    });
    let rows = scan(snapshot, ends.0..=ends.1);
    assert!(rows >= batch.len() as u64);
}

fn read_what_was_written(fixture: &Fixture, _: Form) -> Sample {
    let batches: Vec<_> = fixture.late05[..20_000].chunks(1_000).map(pairs).collect();
    let copies = batches.clone();
    let mut log = new_log(Config::default().memtable_bytes(32 << 20));
    let sample = timed(|| {
        for (batch, copy) in batches.into_iter().zip(&copies) {
            write(&mut log, batch);
            assert_holds(&log.snapshot(), copy);
        }
        20_000
    });
    assert_eq!(log.stats().segment_rows, 0);
    finish(log, 20_000);
    sample
}

fn read_what_was_flushed(fixture: &Fixture, _: Form) -> Sample {
    let batches: Vec<_> = fixture.late05[..15_000].chunks(1_000).map(pairs).collect();
    let copies = batches.clone();
    let mut log = new_log(Config::default());
    let sample = timed(|| {
        for (round, batch) in batches.into_iter().enumerate() {
            write(&mut log, batch);
            log.flush();
            assert_holds(&log.snapshot(), &copies[round.saturating_sub(3)]);
        }
        15_000
    });
    finish(log, 15_000);
    sample
}

/// The published case gives a rate for each state; they are the same work here, so the sum is one
/// figure.
fn deletes_in_two_states(fixture: &Fixture, _: Form) -> Sample {
    let rows = rows_1_ms_apart(fixture, 10_000);
    let mut logs = [0, 1].map(|_| new_log(Config::bulk_ingest()));
    for log in &mut logs {
        write(log, rows.clone());
    }
    logs[1].flush();
    let sample = timed(|| {
        logs.iter_mut().for_each(delete_and_reclaim);
        20_000
    });
    for log in logs {
        assert_eq!(log.stats().segment_rows, 9_990);
        assert_eq!(log.stats().delete_intervals, 0);
        finish(log, 9_990);
    }
    sample
}

fn delete_and_reclaim(log: &mut MemLog<Order>) {
    assert_eq!(scan(&log.snapshot(), ..), 10_000);
    for row in (0..10_000).step_by(1_000) {
        log.delete_at(row * 1_000_000);
    }
    assert_eq!(scan(&log.snapshot(), ..), 9_990);
    log.flush();
    log.compact();
    assert_eq!(scan(&log.snapshot(), ..), 9_990);
}
