//! Cases A, D and E: rows are written, deleted, flushed, merged.

use std::hint::black_box;

use Late::{Five, Twenty};
use support::generator::Rng;
use timelog::{Busy, Config, MemLog, Progress, Ts};

use super::case::{
    Case, Fixture, Form, Late, ROWS, SECOND, finish, load, new_log, pairs, read, write,
};
use super::sample::{Sample, timed};
use crate::dataset::Order;

pub const CASES: &[Case] = &[
    read(
        "A0",
        "load 50,000 parsed rows by 10,000",
        8.08e6,
        3.8e6,
        |f, form| batches(f, Five, 50_000, Config::bulk_ingest(), 0, form),
    ),
    Case {
        forms: &[Form::E2e],
        ..read(
            "A0",
            "parse; load; both: rows over the sum",
            16.6e3,
            229e3,
            parse_load_both,
        )
    },
    Case {
        forms: &[Form::E2e],
        ..read("A0-parse", "parse 50,000 rows alone", 38e3, 216e3, parse)
    },
    load(
        "A1",
        "`append` each of 10,000 rows, bulk",
        39e3,
        186e3,
        |f, form| append_each(f, 10_000, Config::bulk_ingest(), 0, form),
    ),
    load(
        "A2",
        "`extend` by 10,000, bulk, 5 % late",
        37.4e3,
        164e3,
        |f, form| batches(f, Five, ROWS, Config::bulk_ingest(), 0, form),
    ),
    load("A2_less", "same, 20 % late", 38.7e3, 166e3, |f, form| {
        batches(f, Twenty, ROWS, Config::bulk_ingest(), 0, form)
    }),
    load(
        "A2B",
        "same, streaming, steps between, 5 % late",
        36e3,
        132e3,
        |f, form| batches(f, Five, ROWS, Config::streaming(), BATCH_ROWS, form),
    ),
    load("A2B_less", "same, 20 % late", 37.5e3, 157e3, |f, form| {
        batches(f, Twenty, ROWS, Config::streaming(), BATCH_ROWS, form)
    }),
    load(
        "A3",
        "`append` each of 50,000, streaming, steps between",
        42.1e3,
        177e3,
        |f, form| append_each(f, 50_000, Config::streaming(), STEP_ROWS, form),
    ),
    load(
        "A4",
        "20,000 rows shuffled, by 5,000",
        37.3e3,
        168e3,
        shuffled,
    ),
    load(
        "A5",
        "`append` each of 20,000 under pressure",
        40.6e3,
        198e3,
        under_pressure,
    ),
    load(
        "A6",
        "20,000 rows of each file by 10,000",
        41.2e3,
        197e3,
        both_files,
    ),
    load(
        "D1",
        "load 50,000, delete five seconds",
        38.8e3,
        189e3,
        delete_range,
    ),
    load(
        "D2",
        "load 50,000, delete the first 30 s",
        35.7e3,
        192e3,
        delete_before,
    ),
    load(
        "D3",
        "load 10,000, delete at one timestamp",
        36.5e3,
        185e3,
        delete_at,
    ),
    load(
        "D4",
        "load 50,000, delete two ranges, read",
        35.9e3,
        148e3,
        delete_two_ranges,
    ),
    load("E1", "load 50,000, flush", 37.3e3, 190e3, |f, form| {
        load_and(f, 50_000, form, MemLog::flush)
    }),
    load(
        "E2",
        "five times 10,000 rows and a flush, then compact",
        28.4e3,
        194e3,
        flush_and_compact,
    ),
    load(
        "E3",
        "`append` each of 50,000, steps between",
        34.2e3,
        164e3,
        |f, form| append_each(f, 50_000, Config::default(), STEP_ROWS, form),
    ),
    load(
        "E4",
        "20,000 rows, maintenance stopped and started, 20,000",
        38.6e3,
        187e3,
        stop_and_start,
    ),
];

/// Rows of a batch. As many does maintenance move after it.
const BATCH_ROWS: usize = 10_000;

/// Rows that maintenance moves at once, and rows that are appended between: as much as a tick of a
/// task would do.
pub const STEP_ROWS: usize = 1_024;
pub const STEP_EVERY: usize = 64;

/// Appends rows one by one; maintenance takes a step of so many rows after each 64, if any.
pub fn append_rows(
    log: &mut MemLog<Order>,
    rows: impl IntoIterator<Item = (Ts, Order)>,
    step: usize,
) {
    for (number, (ts, order)) in (1..).zip(rows) {
        log.append(ts, order).expect("no limit is set");
        if step > 0 && number % STEP_EVERY == 0 {
            log.step(step);
        }
    }
}

fn append_each(fixture: &Fixture, rows: usize, config: Config, step: usize, form: Form) -> Sample {
    let mut log = new_log(config);
    let input = fixture.input(Five, rows, 1_000, form);
    let sample = timed(|| {
        append_rows(&mut log, input.open().flatten(), step);
        rows as u64
    });
    finish(log, rows);
    sample
}

fn batches(
    fixture: &Fixture,
    late: Late,
    rows: usize,
    config: Config,
    step: usize,
    form: Form,
) -> Sample {
    let mut log = new_log(config);
    let input = fixture.input(late, rows, BATCH_ROWS, form);
    let sample = timed(|| {
        for batch in input.open() {
            write(&mut log, batch);
            if step > 0 {
                log.step(step);
            }
        }
        rows as u64
    });
    // Maintenance keeps up: all but what the memtable holds at the end is flushed.
    let stats = log.stats();
    assert!(step == 0 || stats.segment_rows + stats.memtable_rows == rows);
    finish(log, rows);
    sample
}

fn parse(fixture: &Fixture, form: Form) -> Sample {
    let input = fixture.input(Five, 50_000, 10_000, form);
    let mut parsed = Vec::new();
    let sample = timed(|| {
        parsed.extend(input.open());
        50_000
    });
    assert!(parsed.concat() == pairs(&fixture.late05[..50_000]));
    sample
}

/// The published figure: rows over the sum of three times.
fn parse_load_both(fixture: &Fixture, form: Form) -> Sample {
    let load = |form| batches(fixture, Five, 50_000, Config::bulk_ingest(), 0, form);
    let mut sum = parse(fixture, form);
    for part in [load(Form::Engine), load(form)] {
        sum.elapsed += part.elapsed;
    }
    sum
}

/// Puts `rows` into an order of no meaning, the same one for each seed.
pub fn shuffle<T>(rows: &mut [T], seed: u64) {
    Rng::with_seed(seed).shuffle(rows);
}

fn shuffled(fixture: &Fixture, form: Form) -> Sample {
    let mut ready = pairs(&fixture.late05[..20_000]);
    shuffle(&mut ready, 42);
    let ready: Vec<_> = ready.chunks(5_000).map(<[_]>::to_vec).collect();
    let input = fixture.input(Five, 20_000, 20_000, form);
    let mut log = new_log(Config::bulk_ingest());
    let sample = timed(|| {
        if form == Form::Engine {
            ready.into_iter().for_each(|batch| write(&mut log, batch));
        } else {
            let mut rows: Vec<_> = input.open().flatten().collect();
            shuffle(&mut rows, 42);
            for batch in rows.chunks(5_000) {
                write(&mut log, batch.to_vec());
            }
        }
        20_000
    });
    finish(log, 20_000);
    sample
}

fn under_pressure(fixture: &Fixture, form: Form) -> Sample {
    let config = Config::default()
        .memtable_bytes(64 << 10)
        .sealed_runs(1)
        .busy(Busy::Flush);
    let mut log = new_log(config);
    let input = fixture.input(Five, 20_000, 1_000, form);
    let mut pressure = 0;
    let sample = timed(|| {
        for (ts, order) in input.open().flatten() {
            let appended = log.append(ts, order).expect("no limit is set");
            pressure += u64::from(appended.pressure);
        }
        20_000
    });
    assert!(pressure > 0 && pressure == log.stats().pressure);
    finish(log, 20_000);
    sample
}

fn both_files(fixture: &Fixture, form: Form) -> Sample {
    let mut logs = [Five, Twenty].map(|_| new_log(Config::bulk_ingest()));
    let inputs = [Five, Twenty].map(|late| fixture.input(late, 20_000, 10_000, form));
    let sample = timed(|| {
        for (log, input) in logs.iter_mut().zip(inputs) {
            input.open().for_each(|batch| write(log, batch));
        }
        40_000
    });
    logs.into_iter().for_each(|log| finish(log, 20_000));
    sample
}

/// Loads rows by 10,000 in the clock, then goes on with the log.
fn load_and(
    fixture: &Fixture,
    rows: usize,
    form: Form,
    work: impl FnOnce(&mut MemLog<Order>),
) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    let input = fixture.input(Five, rows, 10_000, form);
    let sample = timed(|| {
        input.open().for_each(|batch| write(&mut log, batch));
        work(&mut log);
        rows as u64
    });
    log.check().expect("the log is sound");
    sample
}

fn delete_range(fixture: &Fixture, form: Form) -> Sample {
    // The first 50,000 rows are 13.9 s, so the published range holds some.
    let range = fixture.t0 + 10 * SECOND..fixture.t0 + 15 * SECOND;
    load_and(fixture, 50_000, form, |log| {
        assert!(log.snapshot().count(range.clone()) > 0);
        log.delete(range.clone()).expect("the range is not empty");
        assert_eq!(log.snapshot().count(range.clone()), 0);
    })
}

fn delete_before(fixture: &Fixture, form: Form) -> Sample {
    let ts = fixture.t0 + 30 * SECOND;
    load_and(fixture, 50_000, form, |log| {
        log.delete_before(ts);
        assert_eq!(log.snapshot().count(..ts), 0);
    })
}

fn delete_at(fixture: &Fixture, form: Form) -> Sample {
    let mut loaded: Vec<Ts> = fixture.late05[..10_000].iter().map(|row| row.ts).collect();
    loaded.sort_unstable();
    let ts = loaded[5_000];
    load_and(fixture, 10_000, form, |log| {
        assert!(log.snapshot().at(ts).next().is_some());
        log.delete_at(ts);
        assert_eq!(log.snapshot().at(ts).count(), 0);
    })
}

fn delete_two_ranges(fixture: &Fixture, form: Form) -> Sample {
    let at = |seconds: i64| fixture.t0 + seconds * SECOND;
    let deleted = [at(20)..at(40), at(4)..at(8)];
    let is_deleted = |ts: Ts| deleted.iter().any(|range| range.contains(&ts));
    let left = fixture.late05[..50_000].iter();
    let left = left.filter(|row| !is_deleted(row.ts)).count();
    load_and(fixture, 50_000, form, |log| {
        for range in &deleted {
            log.delete(range.clone()).expect("the range is not empty");
        }
        let snapshot = log.snapshot();
        let mut rows = 0;
        for (ts, order) in snapshot.range(..at(60)) {
            black_box(*order);
            assert!(!is_deleted(ts));
            rows += 1;
        }
        assert_eq!(rows, left);
    })
}

fn flush_and_compact(fixture: &Fixture, form: Form) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    let input = fixture.input(Five, 50_000, 10_000, form);
    let sample = timed(|| {
        for batch in input.open() {
            write(&mut log, batch);
            log.flush();
        }
        log.request_compaction();
        while log.step(4_096) == Progress::More {}
        50_000
    });
    assert_eq!(log.stats().l0_segments, 0);
    finish(log, 50_000);
    sample
}

/// Maintenance runs beside the first rows, not beside the second: they only pile up.
fn stop_and_start(fixture: &Fixture, form: Form) -> Sample {
    let mut log = new_log(Config::default());
    let input = fixture.input(Five, 40_000, 1_000, form);
    let sample = timed(|| {
        let mut batches = input.open();
        append_rows(&mut log, batches.by_ref().take(20).flatten(), STEP_ROWS);
        while log.step(STEP_ROWS) == Progress::More {}
        append_rows(&mut log, batches.flatten(), STEP_ROWS);
        while log.step(STEP_ROWS) == Progress::More {}
        40_000
    });
    assert_eq!(log.stats().sealed_runs, 0);
    finish(log, 40_000);
    sample
}
