//! Rows of 16 bytes, and what is made of them before the clock runs.

use std::collections::BTreeMap;
use std::ops::Range;

use timelog::{Busy, Config, MemLog, Snapshot, Span, Ts};

use super::super::writes::shuffle;
use crate::dataset::{Dataset, Lateness};

pub type Pair = (Ts, u64);

pub type Columns = (Vec<Ts>, Vec<u64>);

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
    /// As `ts` and `values`, cut where the pages of `log` end.
    pub apart: Vec<Columns>,
    /// Rows at random.
    pub probes: Vec<usize>,
    /// Their timestamps, and those of the rows up to a hundred later. Read from `ts` while the
    /// clock runs, they would bring the rows of the floor into the cache, and not those of the
    /// log.
    pub wanted: Vec<Ts>,
    pub hundreds: Vec<Range<Ts>>,
    pub log: Snapshot<u64>,
    /// The same rows, in pages of 65,536.
    pub wide: Snapshot<u64>,
    /// The same rows, in segments of a page.
    pub many: Snapshot<u64>,
    /// The same rows after a life: see `lived_in`. And timestamps at random that it still has.
    pub lived: Snapshot<u64>,
    pub lived_wanted: Vec<Ts>,
    pub disjoint: Snapshot<u64>,
    pub interleaved: Snapshot<u64>,
    /// As `interleaved`, as columns.
    pub four: [Columns; 4],
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
        let many = Config::default().segment_bytes(PAGE_ROWS * 16);
        let mut many = new(many.busy(Busy::Flush));
        late05
            .chunks(10_000)
            .for_each(|batch| drop(many.extend(batch.to_vec())));
        many.flush();
        many.compact();
        let mut wide = new(flushing().page_bytes(1 << 20));
        late05
            .chunks(10_000)
            .for_each(|batch| drop(wide.extend(batch.to_vec())));
        wide.flush();
        wide.compact();
        let lived = lived_in(&late05);
        let has = |ts: &Ts| lived.contains(*ts);
        let wanted = probes.iter().map(|row| pairs[*row].0);
        let lived_wanted = wanted.filter(has).collect();
        let mut four: [Columns; 4] = Default::default();
        for (number, (ts, value)) in pairs.iter().enumerate() {
            four[number % 4].0.push(*ts);
            four[number % 4].1.push(*value);
        }
        let columns = |rows: &[Pair]| rows.iter().copied().unzip();
        let (ts, values): (Vec<Ts>, Vec<u64>) = columns(&pairs);
        let log = log.snapshot();
        let page = |span: Span<'_, u64>| (span.timestamps().to_vec(), span.values().to_vec());
        Self {
            apart: log.spans(..).map(page).collect(),
            late00: make(0, Lateness::DEFAULT),
            late20: make(200_000, Lateness::DEFAULT),
            late_10s: make(50_000, Lateness::UpTo(10_000_000_000)),
            late_all: make(50_000, Lateness::All),
            fences: ts.iter().copied().step_by(PAGE_ROWS).collect(),
            log,
            many: many.snapshot(),
            wide: wide.snapshot(),
            lived,
            lived_wanted,
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

/// Segments in which four out of a hundred rows overlap those of eight others, a delete of ten rows
/// for each thousand, and the last hundredth of the rows in the memtable.
fn lived_in(rows: &[Pair]) -> Snapshot<u64> {
    let mut log = new(Config::default()
        .segment_bytes(16 * PAGE_ROWS * 16)
        .l0_segments(64)
        .delete_debt(0.0));
    let unflushed = rows.len() / 100;
    let (flushed, last) = rows.split_at(rows.len() - unflushed);
    for group in 0..9 {
        let is_of = |number: usize| match number % 200 {
            number @ 0..8 => number + 1 == group,
            _ => group == 0,
        };
        let part = flushed.iter().enumerate();
        let part = part.filter(|(number, _)| is_of(*number));
        let part: Vec<Pair> = part.map(|(_, row)| *row).collect();
        part.chunks(10_000)
            .for_each(|batch| drop(log.extend(batch.to_vec())));
        log.flush();
    }
    assert!(log.stats().l0_segments >= 8);
    let mut ts: Vec<Ts> = flushed.iter().map(|row| row.0).collect();
    ts.sort_unstable();
    for thousand in ts.chunks_exact(1_000) {
        log.delete(thousand[500]..thousand[510])
            .expect("the range is not empty");
    }
    last.chunks(100)
        .for_each(|batch| drop(log.extend(batch.to_vec())));
    log.snapshot()
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
