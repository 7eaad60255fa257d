//! What all cases work on, and how they are timed.

use std::fmt::Debug;
use std::fs;
use std::hint::black_box;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use support::process::thread_time;
use tempfile::TempDir;
use timelog::{Config, MemLog, Snapshot, Ts};

use crate::dataset::{self, CsvRows, Dataset, Order, Row};

/// What the clock sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The log alone: rows are parsed and built before, results checked after.
    Engine,
    /// From opening the CSV on.
    E2e,
}

/// The files: of which 5 and 20 % of the rows are late.
pub const FIVE: usize = 0;
pub const TWENTY: usize = 1;
pub const ROWS: usize = 100_000;
pub const SECOND: Ts = 1_000_000_000;

/// Made before the clock runs.
pub struct Fixture {
    /// Of each file, in the order of arrival.
    pub rows: [Vec<Row>; 2],
    /// Those of the first file, in time order.
    pub sorted: Vec<Row>,
    /// The same, loaded by 10,000 and flushed.
    pub loaded: Snapshot<Order>,
    /// The same rows after a life: segments that overlap, a delete of ten rows for each thousand,
    /// and the last 5,000 rows in the memtable.
    pub lived: Snapshot<Order>,
    /// What `lived` shows.
    pub lived_rows: Vec<Row>,
    pub t0: Ts,
    folder: TempDir,
}

impl Fixture {
    pub fn new() -> io::Result<Self> {
        let rows = [50_000, 200_000].map(|late| Dataset::new(ROWS, late).collect::<Vec<_>>());
        let mut sorted = rows[FIVE].clone();
        sorted.sort_by_key(|row| row.0);
        let mut log = load(&rows[FIVE]);
        let (lived, lived_rows) = lived_in(&rows[FIVE]);
        let fixture = Self {
            t0: sorted[0].0,
            lived,
            lived_rows,
            loaded: log.snapshot(),
            rows,
            sorted,
            folder: tempfile::tempdir()?,
        };
        for (late, sum) in [(FIVE, 0x4254_f6de), (TWENTY, 0xd877_2367)] {
            let mut bytes = Vec::new();
            dataset::write_csv(&mut bytes, fixture.rows[late].iter().copied())?;
            assert_eq!(crc32fast::hash(&bytes), sum, "the same everywhere");
            fs::write(fixture.path(late), bytes)?;
        }
        Ok(fixture)
    }

    fn path(&self, late: usize) -> PathBuf {
        let folder: &Path = self.folder.path();
        folder.join(["late05.csv", "late20.csv"][late])
    }

    /// The rows of so many nanoseconds from the first on.
    pub fn within(&self, ns: Ts) -> &[Row] {
        between(&self.sorted, self.t0..self.t0 + ns)
    }

    /// The first rows of a file, in batches that are ready, or that are read from the CSV as they
    /// are asked for.
    pub fn input(
        &self,
        late: usize,
        rows: usize,
        batch: usize,
        form: Form,
    ) -> impl FnOnce() -> Box<dyn Iterator<Item = Vec<Row>>> + use<> {
        let path = self.path(late);
        let ready = self.rows[late][..rows].chunks(batch).map(<[_]>::to_vec);
        let ready = (form == Form::Engine).then(|| ready.collect::<Vec<_>>());
        move || match ready {
            Some(batches) => Box::new(batches.into_iter()),
            None => {
                let mut rows = CsvRows::open(&path).take(rows);
                Box::new(iter::from_fn(move || {
                    let mut read = Vec::with_capacity(batch);
                    read.extend(rows.by_ref().take(batch));
                    Some(read).filter(|read| !read.is_empty())
                }))
            }
        }
    }
}

/// Of rows in time order those with timestamps in a range.
pub fn between(rows: &[Row], range: std::ops::Range<Ts>) -> &[Row] {
    let at = |ts| rows.partition_point(|row| row.0 < ts);
    &rows[at(range.start)..at(range.end)]
}

/// As a snapshot gives them.
pub fn pairs(rows: &[Row]) -> impl Iterator<Item = (Ts, &Order)> {
    rows.iter().map(|(ts, order)| (*ts, order))
}

/// A log of these rows, written by 10,000 and flushed.
pub fn load(rows: &[Row]) -> MemLog<Order> {
    let mut log = new_log(Config::bulk_ingest());
    for batch in rows.chunks(10_000) {
        write(&mut log, batch.to_vec());
    }
    log.flush();
    log
}

fn lived_in(rows: &[Row]) -> (Snapshot<Order>, Vec<Row>) {
    let mut log = new_log(Config::default().l0_segments(64).delete_debt(0.0));
    let (flushed, last) = rows.split_at(rows.len() - 5_000);
    // Four rows of a hundred come after the others and are spread over them: each flush overlaps.
    for group in 0..5 {
        let is_of = |number: usize| match number % 100 {
            number @ 0..4 => number + 1 == group,
            _ => group == 0,
        };
        let part = flushed.iter().enumerate();
        let part = part.filter(|(number, _)| is_of(*number));
        write(&mut log, part.map(|(_, row)| *row).collect());
        log.flush();
    }
    assert!(log.stats().l0_segments >= 4);
    let mut shown = flushed.to_vec();
    shown.sort_by_key(|row| row.0);
    let thousands = shown.chunks_exact(1_000);
    let deleted: Vec<_> = thousands.map(|rows| rows[500].0..rows[510].0).collect();
    for range in &deleted {
        log.delete(range.clone()).expect("the range is not empty");
    }
    shown.retain(|row| !deleted.iter().any(|range| range.contains(&row.0)));
    shown.extend_from_slice(last);
    shown.sort_by_key(|row| row.0);
    write(&mut log, last.to_vec());
    (log.snapshot(), shown)
}

pub fn new_log(config: Config) -> MemLog<Order> {
    MemLog::new(config).expect("a configuration of ours")
}

pub fn write(log: &mut MemLog<Order>, batch: Vec<Row>) {
    log.extend(batch).expect("no limit is set");
}

/// Not in the clock.
pub fn finish(mut log: MemLog<Order>, rows: usize) {
    assert_eq!(log.snapshot().count(..), rows as u64);
    log.check().expect("the log is sound");
}

/// One round of a case.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub operations: usize,
    pub elapsed: Duration,
}

/// What takes longer than this is measured by the time that its thread was on a processor: on a
/// machine that does other things too it will be interrupted, for longer than it runs. What is
/// shorter is measured by the clock, since asking for processor time is a system call.
const BRIEF: Duration = Duration::from_micros(100);

/// Measures work of so many operations.
pub fn timed(operations: usize, work: impl FnOnce()) -> Sample {
    let on_processor = thread_time();
    let start = Instant::now();
    work();
    let mut elapsed = start.elapsed();
    if elapsed >= BRIEF {
        elapsed = thread_time().saturating_sub(on_processor);
    }
    Sample {
        operations,
        elapsed,
    }
}

/// As `timed`, right after doing the work once outside the clock, so that reads meet caches in the
/// same state. The result must be the expected one.
pub fn again<R: Debug + PartialEq>(
    operations: usize,
    expected: R,
    mut work: impl FnMut() -> R,
) -> Sample {
    black_box(work());
    let mut found = None;
    let sample = timed(operations, || found = Some(work()));
    assert_eq!(found, Some(expected));
    sample
}

/// Does the same with rows of a snapshot, in the clock, and with the expected rows.
macro_rules! both {
    ($expected:expr, $found:expr, |$rows:ident| $work:expr) => {{
        let expected = $expected;
        let result = {
            let $rows = $crate::fixture::pairs(expected);
            $work
        };
        $crate::fixture::again(expected.len(), result, || {
            let $rows = $found;
            $work
        })
    }};
}
pub(crate) use both;
