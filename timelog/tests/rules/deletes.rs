use timelog::{Seq, Ts, WriteErrorKind};

use crate::{in_every_state, log, rows};

#[test]
fn delete_older_only() {
    let mut log = log();
    log.extend((0..30).map(|ts| (ts, 1))).unwrap();
    log.delete(5..25).unwrap();
    assert_eq!(log.snapshot().count(..), 10, "hidden at once");
    log.extend((0..30).map(|ts| (ts, 2))).unwrap();
    log.step(2);
    log.delete(10..12).unwrap();
    log.append(10, 3).unwrap();
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        assert_eq!(rows(&snapshot, 9..=12), [(9, 2), (10, 3), (12, 2)]);
        assert_eq!(snapshot.count(..), 10 + 28 + 1);
    });
}

#[test]
fn delete_forms() {
    let mut log = log();
    log.extend([
        (Ts::MIN, 0),
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
        (5, 5),
        (Ts::MAX, 6),
    ])
    .unwrap();
    assert_eq!(log.delete_before(Ts::MIN), Seq(8));
    assert_eq!(log.snapshot().count(..), 7, "nothing is before the least");
    assert_eq!(log.delete_before(2), Seq(9));
    assert_eq!(
        rows(&log.snapshot(), ..3),
        [(2, 2)],
        "the timestamp itself stays"
    );
    for (first, last) in [(3, 3), (4, 3), (Ts::MAX, Ts::MIN)] {
        let refused = log.delete(first..last).unwrap_err();
        assert_eq!(refused.kind, WriteErrorKind::EmptyRange);
    }
    assert_eq!(log.delete_at(4), Seq(10), "a refused delete takes no place");
    assert_eq!(log.delete(5..).unwrap(), Seq(11));
    in_every_state(&mut log, |log| {
        assert_eq!(rows(&log.snapshot(), ..), [(2, 2), (3, 3)])
    });
    assert_eq!(log.delete(..).unwrap(), Seq(12));
    in_every_state(&mut log, |log| assert_eq!(rows(&log.snapshot(), ..), []));
    assert_eq!(log.stats().segment_rows, 0);
}

#[test]
fn deletes_that_hide_nothing_are_not_kept() {
    let mut log = log();
    log.extend((0..100).map(|ts| (ts, 1))).unwrap();
    log.delete_before(-5);
    log.delete(200..).unwrap();
    assert_eq!(log.stats().delete_intervals, 0);
    for ts in 0..50 {
        log.delete_before(ts);
    }
    assert_eq!(
        log.stats().delete_intervals,
        1,
        "a newer delete replaces those it covers"
    );
    log.check().unwrap();
}

/// Over many pages, beside rows that are newer, in both directions.
#[test]
fn a_delete_hides_rows_in_every_page() {
    let mut log = log();
    log.extend((0..100).map(|ts| (ts, 1))).unwrap();
    log.flush();
    // Of several pages, and of the first row of one.
    let deleted = [10..25, 30..45, 52..53, 70..85];
    for range in deleted.clone() {
        log.delete(range).unwrap();
    }
    log.extend((0..100).step_by(9).map(|ts| (ts, 2))).unwrap();
    let is_hidden = |ts: &Ts| deleted.iter().any(|range| range.contains(ts));
    let mut expected: Vec<_> = (0..100)
        .filter(|ts| !is_hidden(ts))
        .map(|ts| (ts, 1))
        .collect();
    expected.extend((0..100).step_by(9).map(|ts| (ts, 2)));
    expected.sort_unstable();
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        assert_eq!(rows(&snapshot, ..), expected);
        let backward = snapshot.range(..).rev().map(|(ts, value)| (ts, *value));
        assert!(backward.eq(expected.iter().rev().copied()));
    });
}
