//! Rows of 16 bytes, and what is made of them before the clock runs.

use std::collections::BTreeMap;
use std::ops::Range;

use timelog::{Busy, Config, MemLog, Snapshot, Ts};

use super::super::writes::shuffle;
use crate::dataset::{Dataset, Lateness};

pub type Pair = (Ts, u64);

/// Made before the clock runs.
pub struct Data {
    pub late00: Vec<Pair>,
    pub late05: Vec<Pair>,
    pub late20: Vec<Pair>,
    pub late_10s: Vec<Pair>,
    pub late_all: Vec<Pair>,
    pub shuffled: Vec<Pair>,
    /// `late05` in time order, as columns.
    pub ts: Vec<Ts>,
    pub values: Vec<u64>,
    pub fences: Vec<Ts>,
    /// Rows at random.
    pub probes: Vec<usize>,
    /// Their timestamps, and those of the rows up to a hundred later. Read from `ts` while the
    /// clock runs, they would bring the rows of the floor into the cache, and not those of the
    /// log.
    pub wanted: Vec<Ts>,
    pub hundreds: Vec<Range<Ts>>,
    pub log: Snapshot<u64>,
    pub disjoint: Snapshot<u64>,
    pub interleaved: Snapshot<u64>,
    /// As `interleaved`, as columns.
    pub four: [(Vec<Ts>, Vec<u64>); 4],
    pub map: BTreeMap<(Ts, u64), u64>,
    pub pairs: Vec<Pair>,
}

pub const PAGE_ROWS: usize = 4_096;
pub const PROBES: usize = 10_000;

impl Data {
    pub fn new(rows: usize) -> Self {
        let make = |late, by| -> Vec<Pair> {
            let rows = Dataset::new(rows as u64, late, by, 42);
            rows.map(|row| row.ts).zip(0..).collect()
        };
        let late05 = make(50_000, Lateness::DEFAULT);
        let mut pairs = late05.clone();
        pairs.sort_by_key(|row| row.0);
        let mut shuffled = late05.clone();
        shuffle(&mut shuffled, 42);
        let mut probes: Vec<usize> = (0..rows.saturating_sub(200)).collect();
        shuffle(&mut probes, 7);
        probes.truncate(PROBES);

        let mut log = new(flushing());
        late05
            .chunks(10_000)
            .for_each(|batch| drop(log.extend(batch.to_vec())));
        log.flush();
        log.compact();
        let mut four: [(Vec<Ts>, Vec<u64>); 4] = Default::default();
        for (number, (ts, value)) in pairs.iter().enumerate() {
            four[number % 4].0.push(*ts);
            four[number % 4].1.push(*value);
        }
        let columns = |rows: &[Pair]| rows.iter().copied().unzip();
        let (ts, values): (Vec<Ts>, Vec<u64>) = columns(&pairs);
        Self {
            late00: make(0, Lateness::DEFAULT),
            late20: make(200_000, Lateness::DEFAULT),
            late_10s: make(50_000, Lateness::UpTo(10_000_000_000)),
            late_all: make(50_000, Lateness::All),
            fences: ts.iter().copied().step_by(PAGE_ROWS).collect(),
            log: log.snapshot(),
            disjoint: sealed(rows / 8, pairs.chunks(rows.div_ceil(8)).map(columns)),
            interleaved: sealed(rows / 4, four.iter().cloned()),
            wanted: probes.iter().map(|row| ts[*row]).collect(),
            hundreds: probes.iter().map(|row| ts[*row]..ts[*row + 100]).collect(),
            map: late05.iter().map(|(ts, seq)| ((*ts, *seq), *seq)).collect(),
            late05,
            shuffled,
            ts,
            values,
            probes,
            four,
            pairs,
        }
    }
}

/// A memtable of its own for each part, all waiting for a flush. Full with three quarters of a
/// part.
pub fn sealed(part_rows: usize, parts: impl Iterator<Item = (Vec<Ts>, Vec<u64>)>) -> Snapshot<u64> {
    let mut log = new(Config::default()
        .memtable_bytes((part_rows * 12).max(256))
        .sealed_runs(64)
        .busy(Busy::Silent));
    let mut count = 0;
    for (ts, values) in parts {
        log.extend_columns(&ts, &values).expect("no limit is set");
        count += 1;
    }
    assert_eq!(log.stats().sealed_runs, count);
    log.snapshot()
}

pub fn new(config: Config) -> MemLog<u64> {
    MemLog::new(config).expect("a configuration of ours")
}

/// A memtable that is never full.
pub fn unflushed() -> Config {
    Config::default().memtable_bytes(1 << 30)
}

pub fn flushing() -> Config {
    Config::default().busy(Busy::Flush)
}
