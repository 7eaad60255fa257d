//! Cases that write.

use std::collections::HashSet;

use timelog::{Busy, Config, MemLog, Progress};

use super::sample::{Sample, timed};
use super::{Case, Fixture, SECOND, case, unpublished};
use crate::dataset::{Order, Row};

pub const CASES: &[Case] = &[
    case("A1", 39e3, |f| {
        append_each(&f.late05[..10_000], Config::bulk_ingest(), 0)
    }),
    case("A2", 37.4e3, |f| {
        batches(&f.late05, 10_000, Config::bulk_ingest(), 0)
    }),
    case("A2_less", 38.7e3, |f| {
        batches(&f.late20, 10_000, Config::bulk_ingest(), 0)
    }),
    case("A2B", 36e3, |f| {
        batches(&f.late05, 10_000, Config::streaming(), 4_096)
    }),
    case("A2B_less", 37.5e3, |f| {
        batches(&f.late20, 10_000, Config::streaming(), 4_096)
    }),
    case("A3", 42.1e3, |f| {
        append_each(&f.late05[..50_000], Config::streaming(), 16)
    }),
    case("A4", 37.3e3, shuffled),
    case("A5", 40.6e3, under_pressure),
    case("D1", 38.8e3, delete_range),
    case("D2", 35.7e3, delete_before),
    case("D3", 36.5e3, delete_at),
    case("D4", 35.9e3, delete_two_ranges),
    case("E1", 37.3e3, load_and_flush),
    case("E2", 28.4e3, flush_and_compact),
    unpublished("ingest-flushed-late05", |f| ingest_flushed(&f.late05)),
    unpublished("ingest-flushed-late20", |f| ingest_flushed(&f.late20)),
    case("K2", 147e3, read_what_was_written),
];

pub fn pairs(rows: &[Row]) -> Vec<(i64, Order)> {
    rows.iter().map(|row| (row.ts, row.order)).collect()
}

fn new(config: Config) -> MemLog<Order> {
    MemLog::new(config).expect("a configuration of ours")
}

fn write(log: &mut MemLog<Order>, batch: Vec<(i64, Order)>) {
    log.extend(batch).expect("no limit is set");
}

/// The rows loaded by 10,000 and flushed.
pub fn loaded(rows: &[Row], config: Config) -> MemLog<Order> {
    let mut log = new(config);
    rows.chunks(10_000)
        .for_each(|chunk| write(&mut log, pairs(chunk)));
    log.flush();
    log
}

fn finish(mut log: MemLog<Order>, rows: u64) {
    assert_eq!(log.snapshot().count(..), rows);
    log.check().expect("the log is sound");
}

fn append_each(rows: &[Row], config: Config, step: usize) -> Sample {
    let mut log = new(config);
    let sample = timed(|| {
        for row in rows {
            log.append(row.ts, row.order).expect("no limit is set");
            if step > 0 {
                log.step(step);
            }
        }
        rows.len() as u64
    });
    finish(log, sample.operations);
    sample
}

fn batches(rows: &[Row], size: usize, config: Config, step: usize) -> Sample {
    let mut log = new(config);
    let batches: Vec<_> = rows.chunks(size).map(pairs).collect();
    let sample = timed(|| {
        for batch in batches {
            write(&mut log, batch);
            if step > 0 {
                log.step(step);
            }
        }
        rows.len() as u64
    });
    finish(log, sample.operations);
    sample
}

/// Fisher and Yates, with the constants of Knuth's MMIX generator.
fn shuffle(rows: &mut [Row], mut seed: u64) {
    for last in (1..rows.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = ((u128::from(seed) * (last as u128 + 1)) >> 64) as usize;
        rows.swap(last, other);
    }
}

fn shuffled(fixture: &Fixture) -> Sample {
    let mut rows = fixture.late05[..20_000].to_vec();
    shuffle(&mut rows, 42);
    batches(&rows, 5_000, Config::bulk_ingest(), 0)
}

fn under_pressure(fixture: &Fixture) -> Sample {
    let config = Config::default()
        .memtable_bytes(64 << 10)
        .sealed_runs(1)
        .busy(Busy::Flush);
    let mut log = new(config);
    let rows = &fixture.late05[..20_000];
    let mut pressure = 0u64;
    let sample = timed(|| {
        for row in rows {
            pressure += u64::from(
                log.append(row.ts, row.order)
                    .expect("no limit is set")
                    .pressure,
            );
        }
        rows.len() as u64
    });
    assert!(pressure > 0 && pressure == log.stats().pressure);
    finish(log, sample.operations);
    sample
}

/// Loads 50,000 rows in the clock, then goes on with the log.
fn load_and(fixture: &Fixture, rows: usize, work: impl FnOnce(&mut MemLog<Order>)) -> Sample {
    let batches: Vec<_> = fixture.late05[..rows].chunks(10_000).map(pairs).collect();
    let mut log = new(Config::bulk_ingest());
    let sample = timed(|| {
        batches.into_iter().for_each(|batch| write(&mut log, batch));
        work(&mut log);
        rows as u64
    });
    log.check().expect("the log is sound");
    sample
}

fn delete_range(fixture: &Fixture) -> Sample {
    let range = fixture.t0 + 5 * SECOND..fixture.t0 + 10 * SECOND;
    load_and(fixture, 50_000, |log| {
        assert!(log.snapshot().count(range.clone()) > 0);
        log.delete(range.clone()).expect("the range is not empty");
        assert_eq!(log.snapshot().count(range.clone()), 0);
    })
}

fn delete_before(fixture: &Fixture) -> Sample {
    let ts = fixture.t0 + 30 * SECOND;
    load_and(fixture, 50_000, |log| {
        log.delete_before(ts);
        assert_eq!(log.snapshot().count(..ts), 0);
    })
}

fn delete_at(fixture: &Fixture) -> Sample {
    let ts = fixture.late05[5_000].ts;
    load_and(fixture, 10_000, |log| {
        assert!(log.snapshot().at(ts).next().is_some());
        log.delete_at(ts);
        assert!(!log.snapshot().contains(ts));
    })
}

fn delete_two_ranges(fixture: &Fixture) -> Sample {
    let at = |seconds: i64| fixture.t0 + seconds * SECOND;
    let deleted = [at(20)..at(40), at(4)..at(8)];
    load_and(fixture, 50_000, |log| {
        for range in &deleted {
            log.delete(range.clone()).expect("the range is not empty");
        }
        let snapshot = log.snapshot();
        let is_deleted = |ts: i64| deleted.iter().any(|range| range.contains(&ts));
        assert!(snapshot.range(..at(60)).all(|(ts, _)| !is_deleted(ts)));
    })
}

fn load_and_flush(fixture: &Fixture) -> Sample {
    load_and(fixture, 50_000, MemLog::flush)
}

fn flush_and_compact(fixture: &Fixture) -> Sample {
    let batches: Vec<_> = fixture.late05[..50_000].chunks(10_000).map(pairs).collect();
    let mut log = new(Config::bulk_ingest());
    let sample = timed(|| {
        for batch in batches {
            write(&mut log, batch);
            log.flush();
        }
        log.request_compaction();
        while log.step(4_096) == Progress::More {}
        50_000
    });
    finish(log, 50_000);
    sample
}

fn ingest_flushed(rows: &[Row]) -> Sample {
    let batches: Vec<_> = rows.chunks(10_000).map(pairs).collect();
    let mut log = new(Config::default().busy(Busy::Flush));
    let sample = timed(|| {
        batches.into_iter().for_each(|batch| write(&mut log, batch));
        log.flush();
        rows.len() as u64
    });
    finish(log, sample.operations);
    sample
}

fn read_what_was_written(fixture: &Fixture) -> Sample {
    let batches: Vec<_> = fixture.late05[..20_000].chunks(1_000).map(pairs).collect();
    let mut log = new(Config::default());
    timed(|| {
        let mut seen = HashSet::new();
        for batch in batches {
            let first = batch
                .iter()
                .map(|row| row.0)
                .min()
                .expect("batches have rows");
            write(&mut log, batch);
            let snapshot = log.snapshot();
            let rows = snapshot.range(first..).fold(0, |rows, _| rows + 1);
            assert!(rows >= 1_000);
            seen.insert(snapshot.seq());
        }
        assert_eq!(seen.len(), 20);
        20_000
    })
}
