//! Cases A, D and E: rows are written, deleted, flushed, merged.

use std::hint::black_box;

use support::generator::Rng;
use timelog::{Busy, Config, MemLog, Progress, Ts};

use crate::dataset::{Order, Row};
use crate::fixture::{FIVE, Fixture, Form, ROWS, SECOND, Sample, TWENTY};
use crate::fixture::{finish, new_log, timed, write};

/// Rows of a batch. As many does maintenance move after it.
const BATCH_ROWS: usize = 10_000;

/// Rows that maintenance moves at once, and rows that are appended between: as much as a tick of a
/// task would do.
pub const STEP_ROWS: usize = 1_024;
pub const STEP_EVERY: usize = 64;

pub fn run(id: &str, f: &Fixture, form: Form) -> Sample {
    let (bulk, streaming) = (Config::bulk_ingest(), Config::streaming());
    match id {
        "A0" if form == Form::E2e => parse_load_both(f),
        "A0" => batches(f, FIVE, 50_000, bulk, 0, form),
        "A0-parse" => parse(f),
        "A1" => append_each(f, 10_000, bulk, 0, form),
        "A2" => batches(f, FIVE, ROWS, bulk, 0, form),
        "A2_less" => batches(f, TWENTY, ROWS, bulk, 0, form),
        "A2B" => batches(f, FIVE, ROWS, streaming, BATCH_ROWS, form),
        "A2B_less" => batches(f, TWENTY, ROWS, streaming, BATCH_ROWS, form),
        "A3" => append_each(f, 50_000, streaming, STEP_ROWS, form),
        "A4" => shuffled(f, form),
        "A5" => under_pressure(f, form),
        "A6" => both_files(f, form),
        // The first 50,000 rows are 13.9 s, so the published range holds some.
        "D1" => delete_range(f, f.t0 + 10 * SECOND..f.t0 + 15 * SECOND, form),
        "D2" => delete_before(f, f.t0 + 30 * SECOND, form),
        "D3" => delete_at(f, form),
        "D4" => delete_two_ranges(f, form),
        "E1" => load_and(f, 50_000, form, MemLog::flush),
        "E2" => flush_and_compact(f, form),
        "E3" => append_each(f, 50_000, Config::default(), STEP_ROWS, form),
        "E4" => stop_and_start(f, form),
        _ => unreachable!("no workload for {id}"),
    }
}

/// Appends rows one by one; maintenance takes a step of so many rows after each 64, if any.
fn append_rows(log: &mut MemLog<Order>, rows: impl IntoIterator<Item = Row>, step: usize) {
    for (number, (ts, order)) in (1..).zip(rows) {
        log.append(ts, order).expect("no limit is set");
        if step > 0 && number % STEP_EVERY == 0 {
            log.step(step);
        }
    }
}

fn append_each(f: &Fixture, rows: usize, config: Config, step: usize, form: Form) -> Sample {
    let mut log = new_log(config);
    let input = f.input(FIVE, rows, 1_000, form);
    let sample = timed(rows, || append_rows(&mut log, input().flatten(), step));
    finish(log, rows);
    sample
}

fn batches(
    f: &Fixture,
    late: usize,
    rows: usize,
    config: Config,
    step: usize,
    form: Form,
) -> Sample {
    let mut log = new_log(config);
    let input = f.input(late, rows, BATCH_ROWS, form);
    let sample = timed(rows, || {
        for batch in input() {
            write(&mut log, batch);
            if step > 0 {
                log.step(step);
            }
        }
    });
    // Maintenance keeps up: all but what the memtable holds at the end is flushed.
    let stats = log.stats();
    assert!(step == 0 || stats.segment_rows + stats.memtable_rows == rows);
    finish(log, rows);
    sample
}

fn parse(f: &Fixture) -> Sample {
    let input = f.input(FIVE, 50_000, BATCH_ROWS, Form::E2e);
    let mut parsed = Vec::new();
    let sample = timed(50_000, || parsed.extend(input()));
    assert!(parsed.concat() == f.rows[FIVE][..50_000]);
    sample
}

/// The published figure: rows over the sum of three times.
fn parse_load_both(f: &Fixture) -> Sample {
    let load = |form| batches(f, FIVE, 50_000, Config::bulk_ingest(), 0, form);
    let mut sum = parse(f);
    for part in [load(Form::Engine), load(Form::E2e)] {
        sum.elapsed += part.elapsed;
    }
    sum
}

fn shuffled(f: &Fixture, form: Form) -> Sample {
    let shuffle = |rows: &mut Vec<Row>| Rng::with_seed(42).shuffle(rows);
    let mut ready = f.rows[FIVE][..20_000].to_vec();
    shuffle(&mut ready);
    let ready: Vec<_> = ready.chunks(5_000).map(<[_]>::to_vec).collect();
    let input = f.input(FIVE, 20_000, 20_000, form);
    let mut log = new_log(Config::bulk_ingest());
    let sample = timed(20_000, || {
        if form == Form::Engine {
            ready.into_iter().for_each(|batch| write(&mut log, batch));
        } else {
            let mut rows: Vec<_> = input().flatten().collect();
            shuffle(&mut rows);
            for batch in rows.chunks(5_000) {
                write(&mut log, batch.to_vec());
            }
        }
    });
    finish(log, 20_000);
    sample
}

fn under_pressure(f: &Fixture, form: Form) -> Sample {
    let config = Config::default().memtable_bytes(64 << 10).sealed_runs(1);
    let mut log = new_log(config.busy(Busy::Flush));
    let input = f.input(FIVE, 20_000, 1_000, form);
    let mut pressure = 0;
    let sample = timed(20_000, || {
        for (ts, order) in input().flatten() {
            let appended = log.append(ts, order).expect("no limit is set");
            pressure += u64::from(appended.pressure);
        }
    });
    assert!(pressure > 0 && pressure == log.stats().pressure);
    finish(log, 20_000);
    sample
}

fn both_files(f: &Fixture, form: Form) -> Sample {
    let files = [FIVE, TWENTY];
    let mut logs = files.map(|_| new_log(Config::bulk_ingest()));
    let inputs = files.map(|late| f.input(late, 20_000, BATCH_ROWS, form));
    let sample = timed(40_000, || {
        for (log, input) in logs.iter_mut().zip(inputs) {
            input().for_each(|batch| write(log, batch));
        }
    });
    logs.into_iter().for_each(|log| finish(log, 20_000));
    sample
}

/// Loads rows by 10,000 in the clock, then goes on with the log.
fn load_and(f: &Fixture, rows: usize, form: Form, work: impl FnOnce(&mut MemLog<Order>)) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    let input = f.input(FIVE, rows, BATCH_ROWS, form);
    let sample = timed(rows, || {
        input().for_each(|batch| write(&mut log, batch));
        work(&mut log);
    });
    log.check().expect("the log is sound");
    sample
}

fn delete_range(f: &Fixture, range: std::ops::Range<Ts>, form: Form) -> Sample {
    load_and(f, 50_000, form, |log| {
        assert!(log.snapshot().count(range.clone()) > 0);
        log.delete(range.clone()).expect("the range is not empty");
        assert_eq!(log.snapshot().count(range), 0);
    })
}

fn delete_before(f: &Fixture, ts: Ts, form: Form) -> Sample {
    load_and(f, 50_000, form, |log| {
        log.delete_before(ts);
        assert_eq!(log.snapshot().count(..ts), 0);
    })
}

fn delete_at(f: &Fixture, form: Form) -> Sample {
    let mut loaded: Vec<Ts> = f.rows[FIVE][..10_000].iter().map(|row| row.0).collect();
    loaded.sort_unstable();
    let ts = loaded[5_000];
    load_and(f, 10_000, form, |log| {
        assert!(log.snapshot().at(ts).next().is_some());
        log.delete_at(ts);
        assert_eq!(log.snapshot().at(ts).count(), 0);
    })
}

fn delete_two_ranges(f: &Fixture, form: Form) -> Sample {
    let at = |seconds: i64| f.t0 + seconds * SECOND;
    let deleted = [at(20)..at(40), at(4)..at(8)];
    let is_deleted = |ts: Ts| deleted.iter().any(|range| range.contains(&ts));
    let mut left = f.rows[FIVE][..50_000].to_vec();
    left.retain(|row| !is_deleted(row.0));
    load_and(f, 50_000, form, |log| {
        for range in &deleted {
            log.delete(range.clone()).expect("the range is not empty");
        }
        let mut rows = 0;
        for (ts, order) in log.snapshot().range(..at(60)) {
            black_box(*order);
            assert!(!is_deleted(ts));
            rows += 1;
        }
        assert_eq!(rows, left.len());
    })
}

fn flush_and_compact(f: &Fixture, form: Form) -> Sample {
    let mut log = new_log(Config::bulk_ingest());
    let input = f.input(FIVE, 50_000, BATCH_ROWS, form);
    let sample = timed(50_000, || {
        for batch in input() {
            write(&mut log, batch);
            log.flush();
        }
        log.request_compaction();
        while log.step(4_096) == Progress::More {}
    });
    assert_eq!(log.stats().l0_segments, 0);
    finish(log, 50_000);
    sample
}

/// Maintenance is brought to its end between the halves.
fn stop_and_start(f: &Fixture, form: Form) -> Sample {
    let mut log = new_log(Config::default());
    let input = f.input(FIVE, 40_000, 1_000, form);
    let sample = timed(40_000, || {
        let mut batches = input();
        append_rows(&mut log, batches.by_ref().take(20).flatten(), STEP_ROWS);
        while log.step(STEP_ROWS) == Progress::More {}
        append_rows(&mut log, batches.flatten(), STEP_ROWS);
        while log.step(STEP_ROWS) == Progress::More {}
    });
    assert_eq!(log.stats().sealed_runs, 0);
    finish(log, 40_000);
    sample
}
