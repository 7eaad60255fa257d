//! Values that count themselves, and values that panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use timelog::{MemLog, Ts};

use crate::{rows, small};

/// How many values of a log are alive.
#[derive(Default)]
struct Census {
    alive: Cell<i64>,
    /// Whether the next drop is to panic.
    is_fragile: Cell<bool>,
}

struct Counted {
    value: u64,
    census: Rc<Census>,
}

impl Counted {
    fn new(value: u64, census: &Rc<Census>) -> Self {
        census.alive.set(census.alive.get() + 1);
        Self {
            value,
            census: Rc::clone(census),
        }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.value, &self.census)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.census.alive.set(self.census.alive.get() - 1);
        assert!(!self.census.is_fragile.take(), "this drop panics");
    }
}

/// A write, a delete or maintenance, by number; timestamps collide and come late.
fn operate(log: &mut MemLog<Counted>, census: &Rc<Census>, round: u64) {
    let ts = |row: u64| ((row * 31 + round * 7) % 90) as Ts;
    let batch = |rows: u64| (0..rows).map(move |row| (ts(row), row)).collect::<Vec<_>>();
    match round % 8 {
        0 | 1 => drop(log.append(ts(0), Counted::new(round, census))),
        2 | 3 => drop(
            log.extend(
                batch(20)
                    .into_iter()
                    .map(|(ts, row)| (ts, Counted::new(row, census))),
            ),
        ),
        4 => drop(log.delete(ts(1)..=ts(1) + 9)),
        5 => drop(log.snapshot()),
        6 => drop(log.step(10)),
        _ if round.is_multiple_of(3) => log.compact(),
        _ => log.flush(),
    }
}

#[test]
fn values_dropped() {
    let census = Rc::new(Census::default());
    let mut log = MemLog::new(small()).unwrap();
    let mut held = Vec::new();
    for round in 0..400 {
        operate(&mut log, &census, round);
        if round % 50 == 0 {
            held.push(log.snapshot());
        }
    }
    drop(held);
    log.flush();
    log.compact();
    log.check().unwrap();
    let visible = log.snapshot().count(..);
    assert!(visible > 0);
    assert_eq!(
        census.alive.get(),
        visible as i64,
        "hidden values are dropped by compaction"
    );
    let snapshot = log.snapshot();
    drop(log);
    assert_eq!(
        census.alive.get(),
        visible as i64,
        "a snapshot keeps what it shows"
    );
    let owned: Vec<_> = snapshot.into_rows(..).collect();
    assert_eq!(census.alive.get(), visible as i64, "the copies alone");
    drop(owned);
    assert_eq!(census.alive.get(), 0);
}

/// Copies that a snapshot made and left behind go with the rows.
#[test]
fn deleted_values_do_not_stay_in_copies() {
    for is_late in [false, true] {
        let census = Rc::new(Census::default());
        let mut log = MemLog::new(small().memtable_bytes(64 << 10)).unwrap();
        for row in 0..20 {
            // Falling rows take all lanes, and then are late.
            let ts = if is_late { 100 - row } else { row };
            log.append(ts, Counted::new(1, &census)).unwrap();
        }
        drop(log.snapshot());
        log.delete(..).unwrap();
        let visible = log.snapshot().count(..);
        log.flush();
        assert_eq!((visible, census.alive.get()), (0, 0));
        log.check().unwrap();
    }
    let census = Rc::new(Census::default());
    let mut log = MemLog::new(small().memtable_bytes(64 << 10)).unwrap();
    log.append(1, Counted::new(1, &census)).unwrap();
    drop(log.snapshot());
    log.delete_at(1);
    assert_eq!(census.alive.get(), 0, "at once while it is not frozen");
}

/// The merge of late runs drops what is hidden: a panic there must not lose count of it.
#[test]
fn a_drop_that_panics_in_a_merge_of_late_runs() {
    let census = Rc::new(Census::default());
    // A head of four late rows, merged up to sixteen.
    let mut log = MemLog::new(small().memtable_bytes(16 << 10).late_bytes(16 * 24)).unwrap();
    // Falling rows take all lanes, two each as a chunk holds two, so that all that is less is late.
    for row in 0..8 {
        log.append(1_000 - row, Counted::new(0, &census)).unwrap();
    }
    log.extend((0..4).map(|ts| (ts, Counted::new(1, &census))))
        .unwrap();
    log.delete(0..2).unwrap();
    census.is_fragile.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| {
        log.extend((0..4).map(|ts| (ts + 10, Counted::new(2, &census))))
    }));
    assert!(result.is_err(), "the merge drops a hidden value");
    log.check().unwrap();
    assert_eq!(log.snapshot().count(..), 14, "all rows of the write are in");
    assert_eq!(log.stats().memtable_rows, 14);
}

#[test]
fn values_need_no_thread_safety() {
    let mut log = MemLog::new(small()).unwrap();
    log.extend((0..40).map(|ts| (ts, Rc::new(ts)))).unwrap();
    log.flush();
    assert_eq!(log.snapshot().range(..).map(|row| **row.1).sum::<Ts>(), 780);
    log.check().unwrap();
}

#[test]
fn zero_sized_values() {
    let mut log = MemLog::new(small()).unwrap();
    log.extend((0..100).rev().map(|ts| (ts, ()))).unwrap();
    log.flush();
    assert_eq!(rows(&log.snapshot(), 98..), [(98, ()), (99, ())]);
    log.check().unwrap();
}
