//! The order of equal timestamps at the places where it could be lost.

use std::ops::RangeInclusive;

use timelog::{Config, MemLog, Ts};

use crate::{in_every_state, log, rows};

/// A row must not be placed in a lane when its equals went to a later one, though there is room for
/// it again.
#[test]
fn a_row_follows_its_equals_into_later_lanes() {
    let mut log = MemLog::new(Config::default()).unwrap();
    log.append(0, 0u64).unwrap();
    log.extend((0..100).map(|_| (1_000, 0))).unwrap();
    // Too far from the end of the first lane.
    log.append(500, 1).unwrap();
    log.delete_at(1_000);
    log.append(500, 2).unwrap();
    in_every_state(&mut log, |log| {
        assert_eq!(rows(&log.snapshot(), ..), [(0, 0), (500, 1), (500, 2)])
    });
}

/// Likewise when its equals are late rows.
#[test]
fn a_row_follows_its_equals_among_late_rows() {
    let mut log = MemLog::new(Config::default()).unwrap();
    log.append(0, 0u64).unwrap();
    // Each too far from the end of the lane before.
    for ts in [1_000, 900, 800] {
        log.extend((0..100).map(|_| (ts, 0))).unwrap();
    }
    log.append(400, 0).unwrap();
    log.extend((0..100).map(|_| (700, 0))).unwrap();
    log.append(500, 1).unwrap();
    log.delete(600..).unwrap();
    log.append(500, 2).unwrap();
    in_every_state(&mut log, |log| {
        assert_eq!(
            rows(&log.snapshot(), ..),
            [(0, 0), (400, 0), (500, 1), (500, 2)]
        )
    });
}

/// The values at two timestamps after these rows were written, with a flush after each batch, and
/// after a compaction.
fn values(batches: &[(RangeInclusive<Ts>, u64)], at: [Ts; 2]) -> [Vec<u64>; 2] {
    let mut log = log();
    for (range, value) in batches {
        log.extend(range.clone().map(|ts| (ts, *value))).unwrap();
        log.flush();
    }
    let look = |log: &mut MemLog<u64>| {
        let snapshot = log.snapshot();
        at.map(|ts| snapshot.at(ts).map(|row| *row.1).collect::<Vec<_>>())
    };
    let flushed = look(&mut log);
    log.compact();
    assert_eq!(look(&mut log), flushed);
    log.check().unwrap();
    flushed
}

/// The lower level counts as older, so a segment waits above an older one that shares a timestamp
/// with it.
#[test]
fn a_segment_is_not_promoted_past_an_older_one() {
    let found = values(&[(40..=59, 1), (0..=99, 2), (80..=80, 3)], [80, 50]);
    assert_eq!(found, [vec![2, 3], vec![1, 2]]);
}

/// Of two segments that touch, the left one is read first, so the newer one must be the right one.
#[test]
fn a_segment_does_not_touch_an_older_one_on_its_right() {
    let found = values(&[(50..=60, 1), (30..=50, 2), (60..=70, 3)], [50, 60]);
    assert_eq!(found, [vec![1, 2], vec![1, 3]]);
}

/// Rows too late for every lane lie unsorted until there are enough of them: they keep their order,
/// obey deletes, and are sealed with the rest.
#[test]
fn rows_in_the_late_head() {
    let mut log = MemLog::new(Config::default()).unwrap();
    // Each too far from the end of the lanes before, so that all that is less is late.
    for ts in [1_000, 900, 800, 700] {
        log.extend((0..100).map(|_| (ts, 0u64))).unwrap();
    }
    log.extend([(5, 1), (3, 2), (5, 3), (4, 4), (3, 5)])
        .unwrap();
    log.delete_at(4);
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        assert_eq!(rows(&snapshot, ..700), [(3, 2), (3, 5), (5, 1), (5, 3)]);
        assert_eq!(snapshot.count(..), 404);
    });
}

/// A batch is put in order before it is taken.
#[test]
fn a_batch_keeps_the_order_of_equals() {
    let mut log = log();
    log.extend([(5, 1), (7, 2), (5, 3), (6, 4), (5, 5), (7, 6), (6, 7)])
        .unwrap();
    in_every_state(&mut log, |log| {
        assert_eq!(
            rows(&log.snapshot(), ..),
            [(5, 1), (5, 3), (5, 5), (6, 4), (6, 7), (7, 2), (7, 6)]
        )
    });
}
