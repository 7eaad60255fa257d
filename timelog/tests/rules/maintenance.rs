use timelog::{Busy, MemLog, Progress, Stats, Ts};

use crate::{in_every_state, log, rows, small};

#[test]
fn maintenance_invisible() {
    let mut log = MemLog::new(small().l0_segments(2)).unwrap();
    let mut held = Vec::new();
    for round in 0..40 {
        log.extend((0..30).map(|row| ((row * 13 + round * 20) % 500, round as u64)))
            .unwrap();
        log.delete(round..round + 3).unwrap();
        let snapshot = log.snapshot();
        let seen = rows(&snapshot, ..);
        held.push((snapshot, seen));
        log.step(17);
        let now = log.snapshot();
        assert_eq!(
            rows(&now, ..),
            held[round as usize].1,
            "a new snapshot after a step"
        );
        if round % 9 == 0 {
            log.flush();
        }
    }
    in_every_state(&mut log, |log| {
        assert_eq!(rows(&log.snapshot(), ..), held[39].1);
        for (snapshot, seen) in &held {
            assert_eq!(rows(snapshot, ..), *seen);
        }
    });
}

#[test]
fn step_bounded() {
    let mut log = MemLog::new(small().memtable_bytes(16 << 10)).unwrap();
    assert_eq!(log.step(1), Progress::Idle);
    for round in 0..10 {
        log.extend((0..1_024).map(|row| ((row * 7 + round * 300) % 5_000, 0u64)))
            .unwrap();
    }
    log.request_compaction();
    let mut moved = 0;
    let mut steps = 0u64;
    while log.step(10) == Progress::More {
        let stats = log.stats();
        assert!(
            stats.rows_moved - moved < 10 + 4,
            "a step of 10 rows and a page"
        );
        moved = stats.rows_moved;
        steps += 1;
    }
    let Stats {
        rows_flushed,
        rows_rewritten,
        ..
    } = log.stats();
    assert_eq!(moved, rows_flushed + rows_rewritten, "nothing is hidden");
    // What is replaced is dropped in as many steps again.
    assert!(steps <= 3 * moved, "each step makes progress");
    assert_eq!(log.step(1), Progress::Idle);
    assert_eq!(log.stats().segment_rows, 10_240);
    assert_eq!(log.stats().l0_segments, 0);
    log.check().unwrap();
}

#[test]
fn reclaim() {
    let mut log = log();
    for round in 0..20 {
        log.extend((0..50).map(|row| (row * 3 + round, 0))).unwrap();
        log.delete(round * 5..round * 5 + 4).unwrap();
    }
    log.delete_before(30);
    let visible = log.snapshot().count(..) as usize;
    // What is hidden before a flush is not written by it.
    for reclaim in [MemLog::flush, MemLog::compact] {
        reclaim(&mut log);
        let stats = log.stats();
        let unflushed = stats.memtable_rows + stats.sealed_rows;
        assert_eq!((stats.segment_rows, unflushed), (visible, 0));
        assert_eq!((stats.hidden_rows, stats.delete_intervals), (0, 0));
        log.check().unwrap();
    }
}

#[test]
fn hidden_rows_start_a_compaction() {
    let mut log = MemLog::new(small().delete_debt(0.5)).unwrap();
    log.extend((0..100).map(|ts| (ts, 0u64))).unwrap();
    log.flush();
    log.delete(0..40).unwrap();
    assert_eq!(log.step(1_000), Progress::Idle);
    log.delete(40..60).unwrap();
    while log.step(1_000) == Progress::More {}
    assert_eq!(
        (log.stats().segment_rows, log.stats().delete_intervals),
        (40, 0)
    );
    log.check().unwrap();
}

/// Also beside a row from the far future.
#[test]
fn rows_in_order_are_written_once() {
    for future in [0, 1] {
        let mut log = MemLog::new(small().busy(Busy::Flush)).unwrap();
        log.extend((0..future).map(|_| (Ts::MAX - 1, 0u64)))
            .unwrap();
        for ts in 0..10_000 {
            // Every tenth is late by two.
            log.append(if ts % 10 == 0 { ts - 2 } else { ts }, 0)
                .unwrap();
            log.step(8);
        }
        log.flush();
        let stats = log.stats();
        let rows = 10_000 + future;
        assert_eq!(
            (stats.rows_flushed, stats.segment_rows as u64),
            (rows, rows)
        );
        assert!(stats.rows_rewritten <= 1_000, "{}", stats.rows_rewritten);
        assert_eq!(log.snapshot().last() > Some(10_000), future == 1);
        log.check().unwrap();
    }
}

#[test]
fn late_rows_do_not_rewrite_history() {
    let mut log = MemLog::new(small().l0_segments(2)).unwrap();
    log.extend((0..10_000).map(|ts| (ts, 0u64))).unwrap();
    log.flush();
    for row in 0..100 {
        log.extend((0..4).map(|late| ((row * 97 + late * 2_311) % 10_000, 1)))
            .unwrap();
        log.flush();
        while log.step(1_000) == Progress::More {}
    }
    let stats = log.stats();
    assert!(
        stats.rows_rewritten < 10_000 + 400 * 10,
        "{} rows written again",
        stats.rows_rewritten
    );
    assert!(
        stats.l0_segments <= 10,
        "{} segments overlap",
        stats.l0_segments
    );
    in_every_state(&mut log, |log| assert_eq!(log.snapshot().count(..), 10_400));
}

#[test]
fn overlap_does_not_stay_when_there_is_time() {
    let mut log = log();
    for round in 0..3 {
        log.extend((0..100).map(|ts| (ts * 3 + round, 0))).unwrap();
        log.flush();
    }
    assert!(log.stats().l0_segments > 0);
    for _ in 0..50 {
        log.step(1_000);
    }
    assert_eq!(log.stats().l0_segments, 0);
    log.check().unwrap();
}
