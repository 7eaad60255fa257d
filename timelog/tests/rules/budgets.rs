use timelog::{Busy, Config, MemLog, Progress, Stats, Ts};

use crate::{log, rows, small};

/// Timestamps in no order.
fn shuffled(rows: u64, range: Ts) -> impl Iterator<Item = Ts> {
    let mut random = fastrand::Rng::with_seed(3);
    (0..rows).map(move |_| random.i64(0..range))
}

/// A delete of one row has few others written again, whatever the number of rows.
#[test]
fn point_deletes_rewrite_few_rows() {
    for count in [20_000, 160_000] {
        let config = Config::default().page_bytes(1 << 10).delete_debt(0.0);
        let mut log = MemLog::new(config).unwrap();
        log.extend((0..count).map(|ts| (ts, 0u64))).unwrap();
        log.flush();
        while log.step(10_000) == Progress::More {}
        let deletes = count as u64 / 4;
        for number in 0..deletes as Ts {
            log.delete_at(number * 7_919 % count);
            log.step(256);
        }
        while log.step(10_000) == Progress::More {}
        let Stats {
            rows_rewritten,
            delete_intervals,
            ..
        } = log.stats();
        assert!(
            rows_rewritten <= 80 * deletes,
            "{rows_rewritten} rows for {deletes} deletes of {count}"
        );
        assert!(
            delete_intervals <= 1_024.max(count as usize / 32),
            "{delete_intervals} intervals"
        );
        assert_eq!(log.snapshot().count(..), count as u64 - deletes);
        log.check().unwrap();
    }
}

/// Hidden rows are written again where there are most of them.
#[test]
fn the_fullest_segment_goes_first() {
    let config = small().segment_bytes(100 * 16).delete_debt(0.3);
    let mut log = MemLog::new(config).unwrap();
    log.extend((0..1_000).map(|ts| (ts, 0u64))).unwrap();
    log.flush();
    // A few in each segment, and nearly all of three of them.
    for segment in 0..10 {
        log.delete_at(100 * segment);
    }
    for segment in [3, 5, 8] {
        log.delete(100 * segment + 5..100 * segment + 105).unwrap();
    }
    while log.step(50) == Progress::More {}
    let stats = log.stats();
    assert!(stats.rows_rewritten < 150, "{}", stats.rows_rewritten);
    assert!(
        (1..300).contains(&stats.hidden_rows),
        "{}",
        stats.hidden_rows
    );
    assert_eq!(log.snapshot().count(..), 693);
    log.check().unwrap();
}

/// An append, a step: however many rows there are.
#[test]
fn no_call_does_more_than_its_budget() {
    let mut most = Vec::new();
    for count in [5_000, 40_000] {
        let config = Config::default()
            .page_bytes(512)
            .memtable_bytes(16 << 10)
            .l0_segments(4)
            .busy(Busy::Flush);
        let mut log = MemLog::new(config).unwrap();
        let mut moved = 0;
        let mut longest = 0;
        for (number, ts) in (0u64..).zip(shuffled(count, 1_000_000)) {
            log.append(ts, number).unwrap();
            let stats = log.stats();
            longest = longest.max(stats.rows_moved - moved);
            moved = stats.rows_moved;
        }
        log.request_compaction();
        while log.step(100) == Progress::More {
            let stats = log.stats();
            assert!(stats.rows_moved - moved <= 100 + 32, "a step of 100 rows");
            moved = stats.rows_moved;
        }
        assert_eq!(log.snapshot().count(..), count);
        most.push(longest);
        log.check().unwrap();
    }
    // 32 rows a page, twice, and what an append owes.
    assert!(most.iter().all(|rows| *rows <= 200), "{most:?}");
}

/// Where rows come from another source each time, a step takes fewer of them: each costs more.
#[test]
fn a_step_takes_fewer_rows_where_sources_interleave() {
    let moved_by_steps = |stride: Ts, apart: Ts| {
        let mut log = MemLog::new(small().memtable_bytes(64 << 10)).unwrap();
        for round in 0..4 {
            log.extend((0..1_000).map(|row| (row * stride + round * apart, 0u64)))
                .unwrap();
            log.flush();
        }
        log.request_compaction();
        let mut most = 0;
        let mut moved = log.stats().rows_moved;
        while log.step(200) == Progress::More {
            most = most.max(log.stats().rows_moved - moved);
            moved = log.stats().rows_moved;
        }
        assert_eq!(log.snapshot().count(..), 4_000);
        log.check().unwrap();
        most
    };
    assert!(moved_by_steps(4, 1) <= 200 / 3);
    // Each overlaps the next one at its end.
    assert!(moved_by_steps(1, 990) > 200 / 3);
}

/// A compaction is parked while there is something to flush, and then goes on where it was.
#[test]
fn a_flush_overtakes_a_compaction() {
    let mut log = log();
    for round in 0..3 {
        log.extend((0..1_000).map(|ts| (ts * 3 + round, 0)))
            .unwrap();
        log.flush();
    }
    log.request_compaction();
    let flushed = log.stats().rows_moved;
    while log.stats().rows_moved < flushed + 1_000 {
        log.step(10);
    }
    let parked = log.stats();
    assert_eq!(parked.rows_rewritten, 0);
    // In the midst of what is compacted, after it, and over all of it.
    log.extend((0..40).map(|row| (row * 70, 1))).unwrap();
    log.extend((0..40).map(|ts| (ts + 5_000, 2))).unwrap();
    log.delete(100..200).unwrap();
    while log.stats().sealed_runs > 0 {
        log.step(10);
    }
    let stats = log.stats();
    assert_eq!(stats.rows_flushed - parked.rows_flushed, 80 - 1);
    assert!(
        stats.rows_moved - parked.rows_moved < 200,
        "the flush alone"
    );
    assert_eq!(stats.rows_rewritten, 0);
    let held = log.snapshot();
    let expected = rows(&held, ..);
    while log.step(10) == Progress::More {}
    let after = log.stats();
    assert!(
        after.rows_moved - stats.rows_moved < 2_000 + 3_100,
        "what was moved before is not moved again: {}",
        after.rows_moved - stats.rows_moved
    );
    assert_eq!((after.l0_segments, after.hidden_rows), (0, 0));
    assert_eq!(rows(&log.snapshot(), ..), expected);
    assert_eq!(rows(&held, ..), expected);
    log.check().unwrap();
}

/// Segments that overlap nothing are merged because they are small; what is flushed between them
/// meanwhile must not come between their places.
#[test]
fn a_flush_into_the_gaps_of_a_parked_compaction() {
    let mut log = MemLog::new(small().memtable_bytes(16 << 10)).unwrap();
    for start in [0, 1_000, 2_000] {
        log.extend((start..start + 100).map(|ts| (ts, 0u64)))
            .unwrap();
        log.flush();
    }
    assert_eq!(log.stats().l1_segments, 3);
    log.request_compaction();
    for _ in 0..10 {
        log.step(10);
    }
    log.extend((500..520).map(|ts| (ts, 1))).unwrap();
    log.flush();
    log.extend((1_500..1_520).map(|ts| (ts, 1))).unwrap();
    log.flush();
    assert_eq!(log.snapshot().count(..), 340);
    log.compact();
    log.check().unwrap();
    assert_eq!(log.snapshot().count(..), 340);
    assert_eq!(rows(&log.snapshot(), 519..1_001), [(519, 1), (1_000, 0)]);
}

/// Without a step.
#[test]
fn a_log_that_flushes_itself_compacts() {
    for limit in [2, 8] {
        let config = small().memtable_bytes(4 << 10).l0_segments(limit);
        let mut log = MemLog::new(config.busy(Busy::Flush)).unwrap();
        let mut most = 0;
        for (number, ts) in (0u64..).zip(shuffled(20_000, 100_000)) {
            log.append(ts, number).unwrap();
            most = most.max(log.stats().l0_segments);
        }
        let stats = log.stats();
        assert!(most <= 4 * limit, "{most} segments overlap");
        assert!(stats.sealed_runs_max <= 2, "{}", stats.sealed_runs_max);
        assert!(stats.rows_rewritten > 0);
        log.check().unwrap();
    }
}

/// What deletes hide goes too.
#[test]
fn a_log_that_flushes_itself_drops_what_is_hidden() {
    let mut log = MemLog::new(small().busy(Busy::Flush)).unwrap();
    for ts in 0..20_000 {
        log.append(ts, 0u64).unwrap();
        log.delete_before(ts - 100);
    }
    let stats = log.stats();
    assert!(
        stats.segment_rows + stats.sealed_rows + stats.memtable_rows < 1_000,
        "{stats:?}"
    );
    assert_eq!(log.snapshot().count(..), 101);
    log.check().unwrap();
}
