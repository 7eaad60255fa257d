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
    /// The next clone and drop that are to panic, counted down.
    clones_left: Cell<Option<u32>>,
    drops_left: Cell<Option<u32>>,
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

/// Whether this one is to panic.
fn is_due(left: &Cell<Option<u32>>) -> bool {
    match left.get() {
        Some(0) => {
            left.set(None);
            true
        }
        Some(count) => {
            left.set(Some(count - 1));
            false
        }
        None => false,
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        assert!(!is_due(&self.census.clones_left), "this clone panics");
        Self::new(self.value, &self.census)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.census.alive.set(self.census.alive.get() - 1);
        if !std::thread::panicking() {
            assert!(!is_due(&self.census.drops_left), "this drop panics");
        }
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

#[test]
fn payload_panics() {
    let mut panics = 0;
    for seed in (0..600u32).step_by(7) {
        let census = Rc::new(Census::default());
        // Memtables that flush often, and larger ones that merge their late runs.
        let config = if seed % 4 < 2 {
            small()
        } else {
            small().memtable_bytes(8 << 10).late_bytes(4 << 10)
        };
        let mut log = MemLog::new(config).unwrap();
        for round in 0..60 {
            operate(&mut log, &census, round);
        }
        if seed % 2 == 0 {
            census.clones_left.set(Some(seed));
        } else {
            census.drops_left.set(Some(seed));
        }
        for round in 60..160 {
            let before: Vec<_> = seen(&mut log, &census);
            let seq = log.stats().seq;
            let result = catch_unwind(AssertUnwindSafe(|| operate(&mut log, &census, round)));
            if result.is_err() {
                panics += 1;
                log.check().unwrap();
                if log.stats().seq == seq {
                    assert_eq!(
                        seen(&mut log, &census),
                        before,
                        "an operation that was not accepted"
                    );
                }
            }
        }
        census.clones_left.take();
        census.drops_left.take();
        log.flush();
        log.compact();
        log.check().unwrap();
        let visible = log.snapshot().count(..) as i64;
        assert!(census.alive.get() >= visible);
        log.append(1_000, Counted::new(1, &census)).unwrap();
        assert_eq!(log.snapshot().last(), Some(1_000), "usable");
        drop(log);
        assert!(census.alive.get() >= 0, "no value is dropped twice");
    }
    assert!(panics > 20, "{panics} panics");
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
    census.drops_left.set(Some(0));
    let result = catch_unwind(AssertUnwindSafe(|| {
        log.extend((0..4).map(|ts| (ts + 10, Counted::new(2, &census))))
    }));
    assert!(result.is_err(), "the merge drops a hidden value");
    log.check().unwrap();
    assert_eq!(log.snapshot().count(..), 14, "all rows of the write are in");
    assert_eq!(log.stats().memtable_rows, 14);
}

/// The rows as they are, without panics on the way.
fn seen(log: &mut MemLog<Counted>, census: &Census) -> Vec<(Ts, u64)> {
    let (clones, drops) = (census.clones_left.take(), census.drops_left.take());
    let snapshot = log.snapshot();
    let rows = snapshot
        .range(..)
        .map(|(ts, value)| (ts, value.value))
        .collect();
    drop(snapshot);
    census.clones_left.set(clones);
    census.drops_left.set(drops);
    rows
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
