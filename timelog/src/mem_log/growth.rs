//! How costs grow, by counted work.

use std::time::Duration;

use crate::work::{self, Work};
use crate::{Busy, Config, MemLog, Window};

/// Memtables of sixteen rows, and as many segments in L1 as they were.
fn many_segments(count: i64) -> MemLog<u64> {
    let config = Config::default()
        .page_bytes(64)
        .memtable_bytes(256)
        .segment_bytes(256)
        .window(Window::Fixed(Duration::from_nanos(16)));
    let mut log = MemLog::new(config).unwrap();
    for number in 0..count {
        let rows = (0..16).map(|row| (16 * number + row, 1));
        log.extend(rows).unwrap();
        log.flush();
    }
    assert_eq!(log.stats().l1_segments, count as usize);
    log
}

/// Each time with a snapshot held, and so with everything that is shared copied.
#[test]
fn a_flush_copies_one_block_of_segments() {
    for count in [200, 16_000] {
        let mut log = many_segments(count);
        let held = log.snapshot();
        let rows = (0..16).map(|row| (16 * count + row, 1));
        log.extend(rows).unwrap();
        let (_, copied) = work::of(Work::Copied, || log.flush());
        assert!(copied < 500 + count as usize / 8, "{copied} of {count}");
        assert_eq!(held.count(..), 16 * count as u64);
        log.check().unwrap();
    }
}

#[test]
fn a_count_after_a_delete_looks_at_few_segments() {
    for count in [200, 16_000] {
        let mut log = many_segments(count);
        log.delete_at(1_000);
        let (rows, visited) = work::of(Work::Visited, || log.snapshot().count(..));
        assert_eq!(rows, 16 * count as u64 - 1);
        assert!(visited < 20, "{visited} of {count}");
        // One that hides half of all looks at blocks.
        log.delete(8 * count..).unwrap();
        let (rows, visited) = work::of(Work::Visited, || log.snapshot().count(..));
        assert_eq!(rows, 8 * count as u64 - 1);
        assert!(visited < 200 + count as usize / 32, "{visited} of {count}");
        log.check().unwrap();
    }
}

#[test]
fn a_snapshot_after_a_hundred_rows_copies_one_block_of_chunks() {
    for rows in [10_000, 200_000] {
        let mut log = MemLog::new(Config::default().memtable_bytes(16 << 20)).unwrap();
        let mut held = log.snapshot();
        let mut most = 0;
        for ts in 0..rows {
            log.append(ts, ts).unwrap();
            if ts % 100 == 99 {
                let (snapshot, copied) = work::of(Work::Copied, || log.snapshot());
                assert_eq!(snapshot.count(..), ts as u64 + 1);
                held = snapshot;
                most = most.max(copied);
            }
        }
        assert!(most < 100 + rows as usize / 3_000, "{most} of {rows}");
        drop(held);
    }
}

/// Each flush looks at the segments that overlap once, and not at each pair of them.
#[test]
fn late_rows_meet_each_overlapping_segment_once() {
    let mut log = MemLog::new(Config::default().page_bytes(64).memtable_bytes(256)).unwrap();
    log.extend((0..10_000).map(|ts| (ts, 0))).unwrap();
    log.flush();
    for number in 0..1_600 {
        let ts = number * 7_919 % 10_000;
        log.extend([(ts, 1), (ts + 1, 2)]).unwrap();
        let (_, visited) = work::of(Work::Visited, || log.flush());
        let l0 = log.stats().l0_segments;
        assert!(visited <= 4 * l0 + 100, "{visited} at {l0}");
    }
    assert_eq!(log.stats().l0_segments, 1_600);
    assert!(log.append(0, 0).unwrap().pressure, "overlap is pressure");
    log.check().unwrap();
}

#[test]
fn an_idle_step_looks_at_no_delete() {
    let mut log = many_segments(1_000);
    for number in 0..900 {
        log.delete_at(16 * number);
    }
    log.step(1);
    log.delete_at(3);
    let (_, visited) = work::of(Work::Visited, || log.step(1));
    assert_eq!(visited, 0);
    assert_eq!(log.stats().hidden_rows, 901);
}

#[test]
fn rows_from_the_future_slow_no_others() {
    let rows = 50_000;
    let compared = |futures: i64, batch: usize| {
        let mut log = MemLog::new(Config::default().memtable_bytes(16 << 20)).unwrap();
        let mut all = Vec::new();
        for ts in 0..rows {
            if futures > 0 && ts % (rows / futures) == 0 {
                all.push((1_000_000 + (ts * 7_919) % 1_000, 0));
            }
            all.push((if ts % 50 == 49 { ts - 3 } else { ts }, 1));
        }
        let ((), compared) = work::of(Work::Compared, || {
            for rows in all.chunks(batch) {
                if let [(ts, value)] = rows {
                    log.append(*ts, *value).unwrap();
                } else {
                    log.extend(rows.iter().copied()).unwrap();
                }
            }
        });
        assert_eq!(log.snapshot().count(..), all.len() as u64);
        log.check().unwrap();
        compared
    };
    for batch in [1, 1_000] {
        let (without, with) = (compared(0, batch), compared(100, batch));
        assert!(
            with < without + rows as usize,
            "{with} rows looked at, {without} without rows from the future, by {batch}"
        );
    }
}

/// An append merges no more late rows than it may, whatever the size of the memtable.
#[test]
fn late_rows_are_merged_within_their_limit() {
    let config = Config::default()
        .memtable_bytes(64 << 20)
        .late_bytes(16 << 10)
        .busy(Busy::Silent);
    let mut log = MemLog::new(config).unwrap();
    let mut most = 0;
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..100_000 {
        let ts = random.i64(0..1 << 30);
        let (_, merged) = work::of(Work::Merged, || log.append(ts, 0).unwrap());
        most = most.max(merged);
    }
    assert!((1..=2 * 1_024).contains(&most), "{most} rows merged");
    assert_eq!(log.snapshot().count(..), 100_000);
    log.check().unwrap();
}

#[test]
fn a_log_of_few_rows_takes_little_memory() {
    let mut log = MemLog::new(Config::default()).unwrap();
    for ts in 0..10 {
        log.append(ts, ts).unwrap();
    }
    let rows = log.state.access().memtable.capacity();
    assert!(rows <= 16, "memory for {rows} rows");
    let bytes = size_of::<super::Core<u64>>();
    assert!(bytes <= 1_024, "{bytes} bytes besides the rows");
}
