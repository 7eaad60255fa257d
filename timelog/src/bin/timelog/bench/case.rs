//! What a case is, and what all of them work on.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use timelog::{Config, MemLog, Snapshot, Ts};

use super::sample::Sample;
use crate::dataset::{Dataset, HEADER, Lateness, Order, Row};
use crate::parse;

/// What the clock sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// The log alone: rows are parsed and built, results checked outside.
    Engine,
    /// From opening the CSV on.
    E2e,
}

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::E2e => "e2e",
        }
    }
}

/// One case in one form or both. A wrong result panics.
pub struct Case {
    pub id: &'static str,
    pub what: &'static str,
    /// Rows or operations a second as published for version 0.4.5, with another machine, language
    /// and timing.
    pub published: Option<f64>,
    /// The same of its Python package 1.3.0 on a machine like ours: the better end where it is a
    /// range.
    pub newer: Option<f64>,
    pub forms: &'static [Form],
    pub run: fn(&Fixture, Form) -> Sample,
}

/// A case that reads what was loaded before.
pub const fn read(
    id: &'static str,
    what: &'static str,
    published: f64,
    newer: f64,
    run: fn(&Fixture, Form) -> Sample,
) -> Case {
    Case {
        id,
        what,
        published: Some(published),
        newer: Some(newer),
        forms: &[Form::Engine],
        run,
    }
}

/// A case that loads rows, and so has both forms.
pub const fn load(
    id: &'static str,
    what: &'static str,
    published: f64,
    newer: f64,
    run: fn(&Fixture, Form) -> Sample,
) -> Case {
    Case {
        forms: &[Form::Engine, Form::E2e],
        ..read(id, what, published, newer, run)
    }
}

/// Which of the two files.
#[derive(Clone, Copy, Debug)]
pub enum Late {
    Five,
    Twenty,
}

/// Made before the clock runs.
pub struct Fixture {
    pub late05: Vec<Row>,
    pub late20: Vec<Row>,
    /// `late05` in time order.
    pub sorted: Vec<Row>,
    /// `late05`, loaded by 10,000 and flushed.
    pub loaded: Snapshot<Order>,
    /// The same rows after a life: segments that overlap, a delete of ten rows for each thousand,
    /// and the last 5,000 rows in the memtable.
    pub lived: Snapshot<Order>,
    /// What `lived` shows.
    pub lived_rows: Vec<Row>,
    pub t0: Ts,
    folder: TempDir,
}

pub const SECOND: Ts = 1_000_000_000;
pub const ROWS: usize = 100_000;

impl Fixture {
    pub fn new() -> io::Result<Self> {
        let rows = |late| Dataset::new(ROWS as u64, late, Lateness::DEFAULT, 42).collect();
        let (late05, late20): (Vec<Row>, Vec<Row>) = (rows(50_000), rows(200_000));
        let mut sorted = late05.clone();
        sorted.sort_by_key(|row| row.ts);
        let mut log = new_log(Config::bulk_ingest());
        late05
            .chunks(10_000)
            .for_each(|chunk| write(&mut log, pairs(chunk)));
        log.flush();
        let (lived, lived_rows) = lived_in(&late05);
        let fixture = Self {
            t0: sorted[0].ts,
            lived,
            lived_rows,
            loaded: log.snapshot(),
            late05,
            late20,
            sorted,
            folder: tempfile::tempdir()?,
        };
        write_csv(&fixture.path(Late::Five), &fixture.late05)?;
        write_csv(&fixture.path(Late::Twenty), &fixture.late20)?;
        Ok(fixture)
    }

    fn path(&self, late: Late) -> PathBuf {
        self.folder.path().join(match late {
            Late::Five => "late05.csv",
            Late::Twenty => "late20.csv",
        })
    }

    pub fn rows(&self, late: Late) -> &[Row] {
        match late {
            Late::Five => &self.late05,
            Late::Twenty => &self.late20,
        }
    }

    /// The rows from `start` to before `end`, in nanoseconds after the first.
    pub fn within(&self, start: Ts, end: Ts) -> &[Row] {
        let at = |ts: Ts| self.sorted.partition_point(|row| row.ts < self.t0 + ts);
        &self.sorted[at(start)..at(end)]
    }

    /// The first rows of a file, in batches. To be made before the clock runs, and opened after.
    pub fn input(&self, late: Late, rows: usize, batch: usize, form: Form) -> Input {
        match form {
            Form::Engine => {
                let rows = &self.rows(late)[..rows];
                Input::Ready(rows.chunks(batch).map(pairs).collect())
            }
            Form::E2e => Input::File {
                path: self.path(late),
                rows,
                batch,
            },
        }
    }
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
        write(&mut log, part.map(|(_, row)| (row.ts, row.order)).collect());
        log.flush();
    }
    assert!(log.stats().l0_segments >= 4);
    let mut shown = flushed.to_vec();
    shown.sort_by_key(|row| row.ts);
    let thousands = shown.chunks_exact(1_000);
    let deleted: Vec<_> = thousands.map(|rows| rows[500].ts..rows[510].ts).collect();
    for range in &deleted {
        log.delete(range.clone()).expect("the range is not empty");
    }
    shown.retain(|row| !deleted.iter().any(|range| range.contains(&row.ts)));
    shown.extend_from_slice(last);
    shown.sort_by_key(|row| row.ts);
    write(&mut log, pairs(last));
    (log.snapshot(), shown)
}

/// Rows to write.
pub enum Input {
    Ready(Vec<Vec<(Ts, Order)>>),
    File {
        path: PathBuf,
        rows: usize,
        batch: usize,
    },
}

/// Batches of rows, which are parsed as they are asked for, or were before.
pub enum Batches {
    Ready(std::vec::IntoIter<Vec<(Ts, Order)>>),
    File {
        file: parse::Rows,
        rows: usize,
        batch: usize,
    },
}

impl Input {
    pub fn open(self) -> Batches {
        match self {
            Self::Ready(batches) => Batches::Ready(batches.into_iter()),
            Self::File { path, rows, batch } => Batches::File {
                file: parse::Rows::open(&path).expect("the file was written before"),
                rows,
                batch,
            },
        }
    }
}

impl Iterator for Batches {
    type Item = Vec<(Ts, Order)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Ready(batches) => batches.next(),
            Self::File { rows: 0, .. } => None,
            Self::File { file, rows, batch } => {
                let count = (*rows).min(*batch);
                let mut read = Vec::with_capacity(count);
                for row in file.take(count) {
                    let row = row.expect("the file is ours");
                    read.push((row.ts, row.order));
                }
                assert_eq!(read.len(), count, "the file has as many rows");
                *rows -= count;
                Some(read)
            }
        }
    }
}

pub fn pairs(rows: &[Row]) -> Vec<(Ts, Order)> {
    rows.iter().map(|row| (row.ts, row.order)).collect()
}

pub fn new_log(config: Config) -> MemLog<Order> {
    MemLog::new(config).expect("a configuration of ours")
}

pub fn write(log: &mut MemLog<Order>, batch: Vec<(Ts, Order)>) {
    log.extend(batch).expect("no limit is set");
}

/// Not in the clock.
pub fn finish(mut log: MemLog<Order>, rows: usize) {
    assert_eq!(log.snapshot().count(..), rows as u64);
    log.check().expect("the log is sound");
}

/// The generator's bytes.
fn write_csv(path: &Path, rows: &[Row]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut line = HEADER.as_bytes().to_vec();
    for row in rows {
        row.write_csv(&mut line);
        file.write_all(&line)?;
        line.clear();
    }
    file.flush()
}
