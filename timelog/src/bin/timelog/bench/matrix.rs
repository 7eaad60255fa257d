//! Case K5: sixteen configurations, rows of which a fifth is late, the last second read after each
//! batch.

use std::hint::black_box;
use std::time::Duration;

use timelog::{Busy, Config, Stats, Ts};

use super::case::{Fixture, Form, Late, SECOND, finish, new_log, pairs};
use super::sample::{Sample, Summary, timed};
use super::writes::STEP_ROWS;

pub const ROWS: usize = 20_000;

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub is_background: bool,
    pub busy: Busy,
    pub memtable_kib: usize,
    pub sealed_runs: usize,
}

/// What became of a cell.
pub struct Outcome {
    pub cell: Cell,
    pub summary: Summary,
    pub stats: Stats,
}

pub fn cells() -> impl Iterator<Item = Cell> {
    (0..16).map(|number| Cell {
        is_background: number & 8 != 0,
        busy: if number & 4 == 0 {
            Busy::Signal
        } else {
            Busy::Flush
        },
        memtable_kib: if number & 2 == 0 { 64 } else { 512 },
        sealed_runs: 1 + (number & 1),
    })
}

impl Cell {
    pub fn name(self) -> String {
        let Self {
            busy,
            memtable_kib,
            sealed_runs,
            ..
        } = self;
        let maintenance = if self.is_background {
            "steps between"
        } else {
            "no maintenance"
        };
        format!("{maintenance}, {busy:?}, memtable {memtable_kib} KiB, runs {sealed_runs}")
    }
}

/// All cells, a round each: the sum of their times.
pub fn all(fixture: &Fixture, _: Form) -> Sample {
    let mut sum = Sample {
        operations: 0,
        elapsed: Duration::ZERO,
    };
    for cell in cells() {
        let (sample, _) = run(fixture, cell);
        sum.operations += sample.operations;
        sum.elapsed += sample.elapsed;
    }
    sum
}

/// Each cell by itself, interleaved.
pub fn measure(fixture: &Fixture, rounds: u32, mut tick: impl FnMut()) -> Vec<Outcome> {
    let mut measured: Vec<(Cell, Vec<Sample>, Option<Stats>)> =
        cells().map(|cell| (cell, Vec::new(), None)).collect();
    for round in 0..rounds + 1 {
        for (cell, samples, stats) in &mut measured {
            let (sample, found) = run(fixture, *cell);
            if round > 0 {
                samples.push(sample);
            }
            *stats = Some(found);
            tick();
        }
    }
    let outcomes = measured.into_iter().map(|(cell, samples, stats)| Outcome {
        cell,
        summary: Summary::of(&samples),
        stats: stats.expect("there are rounds"),
    });
    outcomes.collect()
}

fn run(fixture: &Fixture, cell: Cell) -> (Sample, Stats) {
    let config = Config::default()
        .memtable_bytes(cell.memtable_kib << 10)
        .sealed_runs(cell.sealed_runs)
        .busy(cell.busy);
    let mut log = new_log(config);
    let rows = &fixture.rows(Late::Twenty)[..ROWS];
    let batches: Vec<_> = rows.chunks(1_000).map(pairs).collect();
    let mut pressure = 0u64;
    let mut latest = Ts::MIN;
    let sample = timed(|| {
        for batch in batches {
            latest = batch.iter().fold(latest, |latest, row| latest.max(row.0));
            let appended = log.extend(batch).expect("no limit is set");
            pressure += u64::from(appended.pressure);
            if cell.is_background {
                log.step(STEP_ROWS);
            }
            let snapshot = log.snapshot();
            let mut before = latest - SECOND;
            let mut read = 0u64;
            for (ts, order) in snapshot.range(latest - SECOND..=latest) {
                black_box(*order);
                assert!(before <= ts);
                before = ts;
                read += 1;
            }
            assert_eq!(read, snapshot.count(latest - SECOND..=latest));
        }
        ROWS as u64
    });
    let stats = log.stats();
    assert_eq!(
        pressure, stats.pressure,
        "pressure is told as it is counted"
    );
    if cell.busy == Busy::Flush {
        // The last one may be on its way.
        assert!(stats.sealed_runs <= cell.sealed_runs);
    }
    finish(log, ROWS);
    (sample, stats)
}
