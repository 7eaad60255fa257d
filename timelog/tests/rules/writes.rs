use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use timelog::{Busy, Config, MemLog, Progress, Seq, Window, WriteErrorKind};

use crate::{in_every_state, log, rows, small};

#[test]
fn multimap() {
    let mut log = log();
    log.extend([(1, 10), (1, 10), (1, 11)]).unwrap();
    log.flush();
    log.append(1, 10).unwrap();
    in_every_state(&mut log, |log| {
        assert_eq!(
            rows(&log.snapshot(), ..),
            [(1, 10), (1, 10), (1, 11), (1, 10)]
        );
    });
}

/// Appends in order take a short way as long as nothing else is called.
#[test]
fn an_append_sees_what_was_called_before_it() {
    let limit = 40 * 16;
    let mut log = MemLog::new(Config::default().memory_limit_bytes(limit)).unwrap();
    let append = |log: &mut MemLog<u64>, ts| log.append(ts, 0).map(|it| it.first.0);
    for ts in 0..10 {
        assert_eq!(append(&mut log, ts).unwrap(), ts as u64 + 1);
    }
    let held = log.snapshot();
    append(&mut log, 10).unwrap();
    assert_eq!((held.count(..), log.snapshot().count(..)), (10, 11));
    append(&mut log, 10).unwrap();

    log.delete_at(10);
    append(&mut log, 10).unwrap();
    assert_eq!(log.snapshot().count(10..), 1, "deletes hide what is older");

    assert!(log.raise_floor(30).is_some());
    let refused = log.append(29, 0).unwrap_err().kind;
    assert!(matches!(refused, WriteErrorKind::BelowFloor { .. }));
    let mut accepted = log.stats().unflushed_bytes / 16;
    while append(&mut log, 30).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, 40, "the limit is of so many rows");
    log.flush();
    let first = append(&mut log, 30).unwrap();
    assert_eq!(
        (first, log.stats().seq),
        (log.snapshot().seq().0, Seq(first))
    );
    log.check().unwrap();
}

#[test]
fn batch_atomic() {
    let mut log = MemLog::new(small().floor(0)).unwrap();
    let first = log.extend([(3, 1), (1, 2), (2, 3)]).unwrap();
    assert_eq!((first.first, first.rows), (Seq(1), 3));
    assert_eq!(log.extend_columns(&[5, 4], &[4, 5]).unwrap().first, Seq(4));

    let refused = log.extend([(9, 6), (-1, 7), (8, 8)]).unwrap_err();
    assert_eq!(
        refused.kind,
        WriteErrorKind::BelowFloor {
            index: 1,
            ts: -1,
            floor: 0
        }
    );
    assert_eq!(refused.rejected, [(9, 6), (-1, 7), (8, 8)]);
    assert_eq!(
        log.extend_columns(&[9], &[]).unwrap_err().kind,
        WriteErrorKind::LengthMismatch {
            timestamps: 1,
            values: 0
        }
    );

    let empty = log.extend([]).unwrap();
    assert_eq!((empty.first, empty.rows), (Seq(6), 0));

    let panics = catch_unwind(AssertUnwindSafe(|| {
        log.extend((0..5).map(|ts| {
            assert!(ts < 3, "the iterator gives up");
            (ts, 9)
        }))
    }));
    assert!(panics.is_err());

    assert_eq!(
        log.append(6, 6).unwrap().first,
        Seq(6),
        "nothing but accepted rows took a place"
    );
    in_every_state(&mut log, |log| {
        assert_eq!(
            rows(&log.snapshot(), ..),
            [(1, 2), (2, 3), (3, 1), (4, 5), (5, 4), (6, 6)]
        );
    });
}

#[test]
fn a_batch_is_sealed_as_a_whole() {
    let mut log = log();
    log.extend((0..100).map(|ts| (ts, 0))).unwrap();
    assert_eq!(
        (
            log.stats().sealed_runs,
            log.stats().sealed_rows,
            log.stats().memtable_rows
        ),
        (1, 100, 0)
    );
    log.check().unwrap();
}

#[test]
fn floor() {
    let mut log = MemLog::new(small().floor(10)).unwrap();
    let below = |ts| WriteErrorKind::BelowFloor {
        index: 0,
        ts,
        floor: 10,
    };
    assert_eq!(log.append(9, 0).unwrap_err().kind, below(9));
    log.extend((10..40).map(|ts| (ts, 1))).unwrap();
    assert_eq!(log.raise_floor(5), None, "it never lowers");
    assert_eq!(log.raise_floor(10), None);
    assert_eq!(log.append(9, 0).unwrap_err().kind, below(9));

    assert_eq!(log.raise_floor(30), Some(Seq(31)));
    assert_eq!(log.stats().floor, Some(30));
    let refused = log.extend([(30, 2), (29, 2)]).unwrap_err();
    assert_eq!(
        refused.kind,
        WriteErrorKind::BelowFloor {
            index: 1,
            ts: 29,
            floor: 30
        }
    );
    log.append(30, 2).unwrap();
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        assert_eq!(
            (
                snapshot.first(),
                snapshot.count(..),
                snapshot.count(30..=30)
            ),
            (Some(30), 11, 2)
        );
    });
}

#[test]
fn pressure() {
    // Under `Flush` the writer has flushed one memtable when the next is full.
    for (busy, is_told, runs) in [
        (Busy::Signal, true, 2),
        (Busy::Silent, false, 2),
        (Busy::Flush, true, 1),
    ] {
        let mut log = MemLog::new(small().sealed_runs(runs).busy(busy)).unwrap();
        let mut told = 0;
        for ts in 0..100 {
            told += u64::from(log.append(ts, 0u64).unwrap().pressure);
        }
        let stats = log.stats();
        assert!(stats.pressure > 0, "counted under {busy:?}");
        assert_eq!(told, if is_told { stats.pressure } else { 0 }, "{busy:?}");
        assert_eq!(stats.sealed_runs < 2, busy == Busy::Flush, "{busy:?}");
        assert_eq!(stats.sealed_runs_max < 2, busy == Busy::Flush, "{busy:?}");
        assert_eq!(log.snapshot().count(..), 100, "accepted, and once");
        log.flush();
        assert!(!log.append(100, 0).unwrap().pressure, "relieved");
        log.check().unwrap();
    }
}

#[test]
fn memory_limit() {
    let mut log = MemLog::new(small().memory_limit_bytes(40 * 16)).unwrap();
    log.extend((0..38).map(|ts| (ts, 0u64))).unwrap();
    let full = WriteErrorKind::Full {
        needed_bytes: 41 * 16,
        limit_bytes: 40 * 16,
    };
    let refused = log.extend([(1, 1), (2, 2), (3, 3)]).unwrap_err();
    assert_eq!((refused.kind, refused.rejected.len()), (full, 3));
    log.extend([(1, 1), (2, 2)]).unwrap();
    assert_eq!(log.append(5, 7).unwrap_err().rejected, 7);
    assert_eq!(log.stats().seq, Seq(40));
    log.flush();
    log.append(5, 7).unwrap();
    assert_eq!(log.snapshot().count(..), 41);
    log.check().unwrap();

    let mut log = MemLog::new(small().memory_limit_bytes(40 * 16).busy(Busy::Flush)).unwrap();
    for ts in 0..100 {
        log.append(ts, 0u64).unwrap();
    }
    log.extend((0..40).map(|ts| (ts, 0))).unwrap();
    assert!(
        log.extend((0..41).map(|ts| (ts, 0))).is_err(),
        "no flush would make that fit"
    );
    log.check().unwrap();
}

/// Also where the limit is below the memtable, which never gets full then.
#[test]
fn steps_make_space_below_the_memory_limit() {
    for limit in [16, 40 * 16] {
        let mut log = MemLog::new(Config::default().memory_limit_bytes(limit)).unwrap();
        let mut refused = 0;
        for ts in 0..200 {
            while log.append(ts, 0u64).is_err() {
                refused += 1;
                while log.step(1_000) == Progress::More {}
            }
        }
        assert!((4..200).contains(&refused), "{refused}");
        assert_eq!(log.snapshot().count(..), 200);
        log.check().unwrap();
    }
}

#[test]
fn configurations_out_of_range_are_refused_by_name() {
    let second = Duration::from_secs(1);
    let adaptive = |rows, min, max| small().window(Window::Adaptive { rows, min, max });
    for (field, config) in [
        ("page_bytes", small().page_bytes(63)),
        ("page_bytes", small().page_bytes((1 << 20) + 1)),
        ("memtable_bytes", small().memtable_bytes(255)),
        ("memtable_bytes", small().memtable_bytes((1 << 30) + 1)),
        ("late_bytes", small().late_bytes(257)),
        ("sealed_runs", small().sealed_runs(0)),
        ("sealed_runs", small().sealed_runs(65)),
        ("l0_segments", small().l0_segments(0)),
        ("l0_segments", small().l0_segments(257)),
        ("delete_debt", small().delete_debt(1.5)),
        ("delete_debt", small().delete_debt(f64::NAN)),
        ("segment_bytes", small().segment_bytes(1)),
        ("compaction_inputs", small().compaction_inputs(1)),
        ("memory_limit_bytes", small().memory_limit_bytes(15)),
        ("window", small().window(Window::Fixed(Duration::ZERO))),
        ("window", adaptive(1, 2 * second, second)),
        ("window", adaptive(0, second, 2 * second)),
    ] {
        let error = MemLog::<u64>::new(config).unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.to_string().starts_with(field), "{error}");
    }
    for preset in [
        Config::streaming(),
        Config::bulk_ingest(),
        Config::low_latency(),
        small(),
    ] {
        MemLog::<u64>::new(preset.clone()).unwrap().check().unwrap();
        // A row larger than a page or a memtable has one of its own.
        let mut log = MemLog::<[u8; 5_000]>::new(preset).unwrap();
        log.extend((0..10).map(|ts| (ts, [ts as u8; 5_000])))
            .unwrap();
        in_every_state(&mut log, |log| assert_eq!(log.snapshot().count(..), 10));
    }
}
