use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use timelog::{Busy, MemLog, Progress, Ts};

use crate::{in_every_state, log, rows, small};

/// Without `&mut` of the log, and whatever its state.
#[test]
fn a_reader_sees_what_the_log_holds() {
    let mut log = log();
    log.extend((0..50).map(|ts| (ts, 1))).unwrap();
    let reader = log.reader();
    log.append(25, 2).unwrap();
    log.delete(30..).unwrap();
    in_every_state(&mut log, |log| {
        assert_eq!(rows(&reader.snapshot(), ..), rows(&log.snapshot(), ..));
        assert_eq!(reader.stats(), log.stats());
    });
    let another = log.reader();
    log.append(26, 3).unwrap();
    assert_eq!(another.snapshot().seq(), reader.snapshot().seq());
    drop(log);
    assert_eq!(another.snapshot().count(..), 32, "it outlives the log");
}

/// Rows are numbered as they are accepted: a snapshot holds the first ones, all of them, and at
/// least those whose calls had returned before.
#[test]
fn readers_on_other_threads() {
    const ROWS: u64 = 30_000;
    let mut log = MemLog::new(small().memtable_bytes(4 << 10).busy(Busy::Flush)).unwrap();
    let returned = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            let reader = log.reader();
            let returned = &returned;
            scope.spawn(move || {
                let mut seen = 0;
                while seen < ROWS {
                    let least = returned.load(Ordering::Acquire);
                    let snapshot = reader.snapshot();
                    let count = snapshot.count(..);
                    assert!(count >= least.max(seen), "{count}, {least} had returned");
                    let newest = snapshot.range(..).map(|row| *row.1).max();
                    assert_eq!(newest, count.checked_sub(1));
                    assert!(snapshot.range(..).is_sorted_by_key(|row| row.0));
                    seen = count;
                }
            });
        }
        let mut number = 0;
        while number < ROWS {
            let rows = (number..ROWS.min(number + 1 + number % 40))
                .map(|row| ((row * 7_919 % 10_000) as Ts, row));
            number += log.extend(rows).unwrap().rows;
            returned.store(number, Ordering::Release);
            match number % 7 {
                0 => log.flush(),
                1 => drop(log.step(100)),
                2 if number % 5 == 0 => log.compact(),
                _ => {}
            }
        }
    });
    while log.step(1_000) == Progress::More {}
    log.check().unwrap();
}

/// A value that panics under the lock leaves a log and readers that go on.
#[test]
fn a_panic_does_not_lock_readers_out() {
    struct Fragile;
    impl Clone for Fragile {
        fn clone(&self) -> Self {
            panic!("this clone panics");
        }
    }
    let mut log = MemLog::new(small()).unwrap();
    let reader = log.reader();
    log.append(1, Fragile).unwrap();
    let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.snapshot()));
    assert!(taken.is_err(), "a snapshot copies a few rows");
    log.delete_at(1);
    assert_eq!(reader.snapshot().count(..), 0);
    log.check().unwrap();
}
