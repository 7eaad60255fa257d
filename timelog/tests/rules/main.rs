//! The rules of the log, a test for each, of its name. Every test ends with `check`.

mod budgets;
mod deletes;
mod equals;
mod files;
mod keyed;
mod maintenance;
mod readers;
mod reads;
mod values;
mod windows;
mod writes;

use std::ops::RangeBounds;

use timelog::{Config, MemLog, Snapshot, Ts};

/// Pages of four rows, memtables of sixteen.
fn small() -> Config {
    Config::default().page_bytes(64).memtable_bytes(256)
}

fn log() -> MemLog<u64> {
    MemLog::new(small()).unwrap()
}

fn rows<V: Copy>(snapshot: &Snapshot<V>, range: impl RangeBounds<Ts>) -> Vec<(Ts, V)> {
    snapshot
        .range(range)
        .map(|(ts, value)| (ts, *value))
        .collect()
}

/// The log in each of its states: as written, sealed in part, flushed, compacted.
fn in_every_state<V: Clone + 'static>(log: &mut MemLog<V>, mut look: impl FnMut(&mut MemLog<V>)) {
    look(log);
    log.step(3);
    look(log);
    log.flush();
    look(log);
    log.compact();
    look(log);
    log.check().unwrap();
}
