//! Seeded runs over random configurations: long ones, and short ones in which timestamps collide.

use std::time::Duration;

use fastrand::Rng;
use timelog::{
    Busy, Config, MemLog, Progress, Reader, Snapshot, Stats, TimeRange, Ts, Window, WriteErrorKind,
};

use crate::oracle::{Oracle, compare, navigate};

/// Pages of four rows to some dozens, memtables of sixteen rows to a thousand, windows of seven
/// ticks.
pub fn config(random: &mut Rng) -> Config {
    let window = [
        Window::Fixed(Duration::from_nanos(7)),
        Window::Fixed(Duration::from_micros(1)),
        Window::Fixed(Duration::from_secs(3_600)),
        Window::Adaptive {
            rows: 100,
            min: Duration::from_nanos(10),
            max: Duration::from_micros(10),
        },
    ];
    let page = 64 + random.usize(..2) * random.usize(..512);
    let memtable = 256 + random.usize(..2) * random.usize(..16_000);
    let mut config = Config::default()
        .page_bytes(page)
        .memtable_bytes(memtable)
        .sealed_runs(1 + random.usize(..3))
        .l0_segments(1 + random.usize(..8))
        .segment_bytes(page + random.usize(..100_000))
        .compaction_inputs(random.choice([0, 0, 2, 3, 5]).unwrap())
        .delete_debt(random.choice([0.0, 0.05, 0.2, 1.0]).unwrap())
        .window_origin(random.choice([0, 3, Ts::MIN, Ts::MAX]).unwrap())
        .busy(
            random
                .choice([Busy::Signal, Busy::Silent, Busy::Flush])
                .unwrap(),
        )
        .window(random.choice(window).unwrap());
    if random.u64(..2) == 0 {
        config = config.late_bytes(random.usize(..=memtable));
    }
    config
}

/// A timestamp near `now`: in order, slightly late, late by a memtable, late over all history, or
/// from the future.
pub fn ts(random: &mut Rng, now: &mut Ts, lateness: u64) -> Ts {
    if random.u64(..100) >= lateness {
        *now += random.i64(0..6);
        return *now;
    }
    match random.u64(..20) {
        0..10 => *now - random.i64(0..10),
        10..16 => *now - random.i64(0..2_000),
        16..18 => random.i64(0..(*now).max(1)),
        18 => *now + random.i64(0..100_000),
        _ => random
            .choice([Ts::MIN, Ts::MIN + 1, Ts::MAX - 1, Ts::MAX])
            .unwrap(),
    }
}

/// Mostly a narrow stretch, so that timestamps collide; also both ends of time and the far future.
fn crowded(random: &mut Rng) -> Ts {
    match random.u64(..19) {
        0..12 => random.i64(0..60) - 20,
        12..16 => random.i64(0..400),
        16 => Ts::MIN,
        17 => Ts::MAX,
        _ => random.i64(..),
    }
}

/// A snapshot and the rows that it must show.
type Held = (Snapshot<u64>, Vec<(Ts, u64)>);

/// One log, its oracle, and snapshots that are held over everything.
struct Run {
    random: Rng,
    log: MemLog<u64>,
    oracle: Oracle,
    now: Ts,
    /// Of a hundred rows, those that may be late.
    lateness: u64,
    /// Whether timestamps collide, and steps are of few rows.
    is_crowded: bool,
    held: Vec<Held>,
    reader: Option<Reader<u64>>,
    /// Operations of the oracle that the log has not seen, as it was loaded from a file.
    unseen: u64,
}

impl Run {
    fn new(seed: u64, is_crowded: bool) -> Self {
        let mut random = Rng::with_seed(seed);
        Self {
            log: MemLog::new(config(&mut random)).unwrap(),
            oracle: Oracle::default(),
            now: 0,
            lateness: random.u64(..60),
            is_crowded,
            held: Vec::new(),
            reader: None,
            unseen: 0,
            random,
        }
    }

    fn ts(&mut self) -> Ts {
        self.ts_of(self.lateness)
    }

    fn ts_of(&mut self, lateness: u64) -> Ts {
        if self.is_crowded {
            return crowded(&mut self.random);
        }
        ts(&mut self.random, &mut self.now, lateness)
    }

    fn extend(&mut self, rows: Vec<Ts>) {
        let first = self.oracle.seq + 1;
        let values: Vec<u64> = (first..first + rows.len() as u64).collect();
        let written = if self.random.u64(..2) == 0 {
            let written = self.log.extend(rows.iter().copied().zip(values));
            written.map_err(|error| error.kind)
        } else {
            let written = self.log.extend_columns(&rows, &values);
            written.map_err(|error| error.kind)
        };
        let floor = self.oracle.floor.unwrap_or(Ts::MIN);
        if let Some(index) = rows.iter().position(|ts| *ts < floor) {
            let ts = rows[index];
            let expected = WriteErrorKind::BelowFloor { index, ts, floor };
            assert_eq!(written.unwrap_err(), expected);
        } else {
            let appended = written.unwrap();
            assert_eq!(appended.first.0, first - self.unseen);
            assert_eq!(appended.rows, rows.len() as u64);
            rows.into_iter().for_each(|ts| self.oracle.append(ts));
        }
    }

    fn operate(&mut self) {
        match self.random.u64(..1_000) {
            0..400 => {
                let ts = self.ts();
                let written = self.log.append(ts, self.oracle.seq + 1);
                if self.oracle.floor.is_some_and(|floor| ts < floor) {
                    assert_eq!(written.unwrap_err().rejected, self.oracle.seq + 1);
                } else {
                    written.unwrap();
                    self.oracle.append(ts);
                }
            }
            400..700 => {
                let rows = (0..self.random.u64(..60)).map(|_| self.ts()).collect();
                self.extend(rows);
            }
            700..703 => {
                let ts = self.ts();
                let count = 1 + self.random.usize(..500);
                self.extend(vec![ts; count]);
            }
            703..740 => {
                let first = self.ts_of(100);
                let last = first.saturating_add(self.random.i64(0..50));
                self.log.delete(first..=last).unwrap();
                self.oracle.delete(first..=last);
            }
            740..745 => {
                let ts = self.ts_of(100);
                self.log.delete_at(ts);
                self.oracle.delete(ts..=ts);
            }
            745..750 => {
                let back = if self.is_crowded { 40 } else { 20_000 };
                let ts = self.now - self.random.i64(0..back);
                self.log.delete_before(ts);
                self.oracle.delete(..ts);
            }
            750 => {
                let back = if self.is_crowded { 40 } else { 10_000 };
                let ts = self.now - back - self.random.i64(0..2 * back);
                let raised = self.log.raise_floor(ts);
                assert_eq!(raised.is_some(), self.oracle.raise_floor(ts));
            }
            751 if self.random.u64(..4) == 0 => {
                self.log.delete(..).unwrap();
                self.oracle.delete(..);
            }
            752..950 => {
                let most = if self.is_crowded { 12 } else { 200 };
                self.log.step(self.random.usize(..most));
            }
            950..955 => self.log.flush(),
            955 => self.log.compact(),
            956 => while self.log.step(50) == Progress::More {},
            957 => self.log.request_compaction(),
            958..980 => drop(self.log.snapshot()),
            980 => self.reader = Some(self.log.reader()),
            981 if self.random.u64(..4) == 0 => self.reload(),
            982..990 => {
                if let Some(reader) = &self.reader {
                    assert_eq!(reader.snapshot().seq(), self.log.stats().seq);
                }
            }
            _ => {}
        }
        assert_eq!(self.log.stats().seq.0, self.oracle.seq - self.unseen);
    }

    /// Goes on with a log of another configuration that was loaded from a file of this one. The
    /// reader of the old one sees no more of it.
    fn reload(&mut self) {
        let mut file = Vec::new();
        self.log.snapshot().dump(.., &mut file).unwrap();
        let mut config = config(&mut self.random);
        if let Some(floor) = self.oracle.floor {
            config = config.floor(floor);
        }
        self.log = MemLog::new(config).unwrap();
        let rows = self.log.load(&file[..]).unwrap();
        assert_eq!(self.log.snapshot().count(..), rows);
        self.unseen = self.oracle.seq - rows;
        if self.reader.is_some() {
            self.reader = Some(self.log.reader());
        }
    }

    /// Holds what the log shows now.
    fn hold(&mut self) {
        self.oracle.forget_hidden();
        self.log.check().unwrap();
        let snapshot = match &self.reader {
            Some(reader) => reader.snapshot(),
            None => self.log.snapshot(),
        };
        self.held.push((snapshot, self.oracle.visible()));
    }

    fn look(&mut self) {
        let held = std::mem::take(&mut self.held);
        for (snapshot, expected) in &held {
            compare(snapshot, expected, (..).into());
            for _ in 0..4 {
                let first = self.ts_of(100);
                let range = TimeRange::from(first..first.saturating_add(500));
                compare(snapshot, expected, range);
                navigate(snapshot, expected, first);
            }
            for ts in [Ts::MIN, Ts::MAX] {
                navigate(snapshot, expected, ts);
            }
        }
    }
}

/// One configuration, `operations` rows and deletes, snapshots held over maintenance.
fn run(seed: u64, operations: u64) -> Stats {
    let mut run = Run::new(seed, false);
    let mut next_look = operations / 4;
    while run.oracle.seq < operations {
        run.operate();
        if run.oracle.seq >= next_look {
            next_look = run.oracle.seq + operations / 4;
            run.hold();
        }
    }
    run.log.compact();
    run.hold();
    let stats = run.log.stats();
    if seed.is_multiple_of(8) {
        // Snapshots outlive the log, and may be read elsewhere.
        let look = std::thread::spawn(move || run.look());
        look.join().unwrap();
    } else {
        run.look();
    }
    stats
}

/// A hundred operations, the log checked after each of them, and all reclaimed at the end.
fn short_run(seed: u64) {
    let mut run = Run::new(seed, true);
    for number in 0..100 {
        run.operate();
        run.log.check().unwrap();
        if number % 25 == 0 {
            run.hold();
        }
    }
    run.hold();
    run.log.flush();
    run.hold();
    run.log.compact();
    run.hold();
    let stats = run.log.stats();
    let left = (stats.hidden_rows, stats.delete_intervals, stats.l0_segments);
    assert_eq!(left, (0, 0, 0), "all is reclaimed");
    assert_eq!(stats.segment_rows, run.oracle.visible().len());
    run.look();
}

fn variable(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |text| text.parse().expect(name))
}

/// `TIMELOG_CASES` sets how many are run.
#[test]
fn short_runs_agree_with_a_sorted_map() {
    for seed in 0..variable("TIMELOG_CASES", 100) {
        let result = std::panic::catch_unwind(|| short_run(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}

const OPERATIONS_A_RUN: u64 = 4_000;

/// `TIMELOG_OPERATIONS` sets how many operations are run in all, `TIMELOG_SEED` the first seed.
#[test]
fn long_runs_agree_with_a_sorted_map() {
    let operations = variable("TIMELOG_OPERATIONS", 40_000);
    let first = variable("TIMELOG_SEED", 0);
    let mut sums = Stats::default();
    for seed in first..first + operations.div_ceil(OPERATIONS_A_RUN) {
        let result = std::panic::catch_unwind(|| run(seed, OPERATIONS_A_RUN));
        let stats =
            result.unwrap_or_else(|_| panic!("TIMELOG_SEED={seed} TIMELOG_OPERATIONS=1 shows it"));
        sums.rows_flushed += stats.rows_flushed;
        sums.rows_rewritten += stats.rows_rewritten;
        sums.promotions += stats.promotions;
        sums.pressure += stats.pressure;
    }
    println!("{operations} operations, seeds from {first}: {sums:?}");
    assert!(
        sums.rows_flushed > 0
            && sums.rows_rewritten > 0
            && sums.promotions > 0
            && sums.pressure > 0,
        "{sums:?}"
    );
}

/// Ten thousand rows of one timestamp beside its neighbours, through every state, then a delete of
/// everything.
#[test]
fn many_equals_and_a_delete_of_everything() {
    for (seed, at) in [(0, Ts::MIN), (1, 0), (2, Ts::MAX)] {
        let mut run = Run::new(seed, false);
        for part in 0..10 {
            run.extend(vec![at; 1_000]);
            run.extend(vec![at.saturating_add(part % 2), at.saturating_sub(1)]);
            run.log.step(700);
        }
        run.hold();
        run.log.flush();
        run.hold();
        run.log.compact();
        run.hold();
        run.log.delete(..).unwrap();
        run.oracle.delete(..);
        run.extend(vec![at]);
        run.hold();
        run.log.compact();
        run.hold();
        assert_eq!(
            run.log.stats().segment_rows + run.log.stats().memtable_rows,
            1
        );
        run.look();
    }
}
