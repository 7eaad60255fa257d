//! What reads show. Rows from both ends, slices, spans and windows are held by the model.

use std::ops::Bound;

use timelog::{MemLog, Seq, TimeRange, Ts};

use crate::{in_every_state, log, rows};

/// Rows of value 0 to 99 at `0, 0, 0, 3, 3, 3, 6, ..`, written in an irregular order.
fn scattered() -> MemLog<u64> {
    let mut log = log();
    log.extend((0..100).map(|index| {
        let row = index * 37 % 100;
        (row as Ts / 3 * 3, row)
    }))
    .unwrap();
    log
}

#[test]
fn visible_rule() {
    let mut log = log();
    let mut snapshots = vec![(log.snapshot(), vec![])];
    log.append(5, 1).unwrap();
    snapshots.push((log.snapshot(), vec![(5, 1)]));
    assert_eq!(log.delete(4..=5).unwrap(), Seq(2));
    snapshots.push((log.snapshot(), vec![]));
    log.append(5, 3).unwrap();
    snapshots.push((log.snapshot(), vec![(5, 3)]));
    assert_eq!(log.delete_at(4), Seq(4));
    log.append(4, 5).unwrap();
    snapshots.push((log.snapshot(), vec![(4, 5), (5, 3)]));
    in_every_state(&mut log, |log| {
        assert_eq!(rows(&log.snapshot(), ..), [(4, 5), (5, 3)]);
        for (snapshot, expected) in &snapshots {
            assert_eq!(rows(snapshot, ..), *expected, "at {}", snapshot.seq());
        }
    });
}

#[test]
fn range_forms() {
    let mut log = log();
    log.extend((0..10).map(|ts| (ts, ts as u64))).unwrap();
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        let count = |range: TimeRange| {
            assert_eq!(snapshot.count(range), snapshot.range(range).count() as u64);
            assert_eq!(
                snapshot.count(range),
                snapshot.range(range).fold(0, |count, _| count + 1)
            );
            snapshot.count(range)
        };
        assert_eq!(count((2..5).into()), 3);
        assert_eq!(count((2..=5).into()), 4);
        assert_eq!(count((2..).into()), 8);
        assert_eq!(count((..5).into()), 5);
        assert_eq!(count((..=5).into()), 6);
        assert_eq!(count((..).into()), 10);
        assert_eq!(count((Bound::Excluded(2), Bound::Included(5)).into()), 3);
        assert_eq!(count((Bound::Excluded(2), Bound::Excluded(3)).into()), 0);
        assert_eq!(
            count((Bound::Excluded(Ts::MAX), Bound::Unbounded).into()),
            0
        );
        assert_eq!(
            count((Bound::Unbounded, Bound::Excluded(Ts::MIN)).into()),
            0
        );
        // Empty and reversed ranges give nothing.
        assert_eq!(count((5..5).into()), 0);
        let (least, greatest) = (Ts::MIN, Ts::MAX);
        assert_eq!(count((greatest..least).into()), 0);
        assert_eq!(count((greatest..=least).into()), 0);
        let mut iterated = 3..=3i64;
        iterated.next();
        assert_eq!(count(iterated.into()), 0);
        assert!(
            snapshot.spans(5..5).next().is_none() && snapshot.physical_spans(5..5).next().is_none()
        );
        assert!(snapshot.clone().into_rows(5..5).next().is_none());
    });
}

#[test]
fn whole_domain() {
    let mut log = log();
    let ends = [
        Ts::MAX,
        Ts::MIN,
        0,
        Ts::MAX,
        Ts::MIN,
        Ts::MIN + 1,
        Ts::MAX - 1,
    ];
    log.extend(ends.into_iter().zip(0..)).unwrap();
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        let expected = [
            (Ts::MIN, 1),
            (Ts::MIN, 4),
            (Ts::MIN + 1, 5),
            (0, 2),
            (Ts::MAX - 1, 6),
            (Ts::MAX, 0),
            (Ts::MAX, 3),
        ];
        assert_eq!(rows(&snapshot, ..), expected);
        assert_eq!(
            (snapshot.first(), snapshot.last()),
            (Some(Ts::MIN), Some(Ts::MAX))
        );
        assert_eq!(
            (snapshot.count(Ts::MAX..), snapshot.count(Ts::MAX..=Ts::MAX)),
            (2, 2)
        );
        assert_eq!(
            (snapshot.count(..Ts::MAX), snapshot.count(..=Ts::MIN)),
            (5, 2)
        );
        assert_eq!(snapshot.next_after(Ts::MAX - 1), Some(Ts::MAX));
        assert_eq!(snapshot.prev_before(Ts::MIN + 1), Some(Ts::MIN));
    });
    log.delete_at(Ts::MAX);
    log.delete_at(Ts::MIN);
    in_every_state(&mut log, |log| {
        assert_eq!(
            rows(&log.snapshot(), ..),
            [(Ts::MIN + 1, 5), (0, 2), (Ts::MAX - 1, 6)]
        );
    });
}

#[test]
fn order() {
    let mut log = log();
    let mut expected = Vec::new();
    // Batches that overlap in time, with many equals; the value is the place of arrival.
    let mut arrival = 0;
    for batch in 0..30 {
        let timestamps: Vec<Ts> = (0..17).map(|row| (row * 7 + batch * 3) % 23).collect();
        for ts in &timestamps {
            expected.push((*ts, arrival));
            arrival += 1;
        }
        let first = arrival - 17;
        log.extend(timestamps.into_iter().zip(first..)).unwrap();
        log.step(batch as usize);
    }
    expected.sort_unstable();
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        assert_eq!(rows(&snapshot, ..), expected);
        let backward: Vec<_> = snapshot
            .range(..)
            .rev()
            .map(|(ts, value)| (ts, *value))
            .collect();
        assert!(backward.iter().eq(expected.iter().rev()));
    });
}

#[test]
fn snapshot_frozen() {
    let mut log = log();
    log.extend((0..40).map(|ts| (ts, 1))).unwrap();
    let before = log.snapshot();
    let expected = rows(&before, ..);
    log.extend((0..40).map(|ts| (ts, 2))).unwrap();
    log.delete(..).unwrap();
    assert_eq!(rows(&before, ..), expected);
    log.raise_floor(20);
    log.flush();
    assert_eq!(rows(&before, ..), expected);
    log.append(30, 3).unwrap();
    log.compact();
    assert_eq!(rows(&before, ..), expected);
    log.check().unwrap();
    drop(log);
    // Also on another thread, and after the log is gone.
    let thread = std::thread::spawn(move || rows(&before, ..));
    assert_eq!(thread.join().unwrap(), expected);
}

#[test]
fn count_exact() {
    let mut log = scattered();
    for ts in (0..100).step_by(7) {
        log.delete(ts..ts + 3).unwrap();
        log.append(ts, 1_000).unwrap();
    }
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        for first in -1..102 {
            for last in [first - 1, first, first + 1, first + 20, 101] {
                let given = snapshot.range(first..=last).fold(0, |count, _| count + 1);
                assert_eq!(snapshot.count(first..=last), given);
                assert_eq!(snapshot.range(first..=last).remaining(), given);
            }
        }
    });
}

#[test]
fn next_after() {
    let mut log = log();
    log.extend((0..200).map(|ts| (ts * 2, ts as u64))).unwrap();
    log.delete(10..=300).unwrap();
    log.append(100, 7).unwrap();
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        assert_eq!(
            (snapshot.next_after(7), snapshot.next_after(8)),
            (Some(8), Some(100))
        );
        assert_eq!(
            (snapshot.next_after(100), snapshot.at_or_after(100)),
            (Some(302), Some(100))
        );
        assert_eq!(
            (snapshot.prev_before(302), snapshot.prev_before(100)),
            (Some(100), Some(8))
        );
        assert_eq!(
            (snapshot.at_or_before(99), snapshot.at_or_before(100)),
            (Some(8), Some(100))
        );
        assert_eq!((snapshot.first(), snapshot.last()), (Some(0), Some(398)));
        assert_eq!(
            (snapshot.next_after(398), snapshot.prev_before(0)),
            (None, None)
        );
        assert_eq!(
            (snapshot.next_after(Ts::MAX), snapshot.prev_before(Ts::MIN)),
            (None, None)
        );
        assert!(snapshot.contains(8) && !snapshot.contains(10));
    });
    log.delete(..).unwrap();
    let snapshot = log.snapshot();
    assert_eq!(
        (snapshot.first(), snapshot.last(), snapshot.next_after(0)),
        (None, None, None)
    );
    log.check().unwrap();
}

#[test]
fn physical_spans() {
    let mut log = log();
    log.extend((0..20).map(|ts| (ts, 1))).unwrap();
    log.flush();
    log.delete(5..10).unwrap();
    log.append(7, 2).unwrap();
    let snapshot = log.snapshot();
    let spans: Vec<_> = snapshot.physical_spans(3..=12).collect();
    let timestamps: Vec<_> = spans
        .iter()
        .flat_map(|span| span.timestamps())
        .copied()
        .collect();
    assert_eq!(
        timestamps,
        (3..=12).collect::<Vec<_>>(),
        "deleted rows, but no unflushed one"
    );
    assert!(
        spans
            .iter()
            .all(|span| span.values().iter().all(|value| *value == 1))
    );
    log.check().unwrap();
}
