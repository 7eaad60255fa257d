//! Values whose clone or drop panics now and then: the log goes on as the model, which knows of no
//! panics.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use timelog::{MemLog, Ts};

use crate::driver::{config, ts};
use crate::oracle::Oracle;

thread_local! {
    /// Clones and drops until the next one panics.
    static CLONES_LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    static DROPS_LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    static ALIVE: Cell<i64> = const { Cell::new(0) };
}

#[derive(Debug)]
struct Fragile(u64);

impl Fragile {
    fn new(value: u64) -> Self {
        ALIVE.set(ALIVE.get() + 1);
        Self(value)
    }
}

fn is_due(left: &'static std::thread::LocalKey<Cell<Option<u64>>>) -> bool {
    let now = left.get();
    left.set(now.and_then(|count| count.checked_sub(1)));
    now == Some(0)
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!is_due(&CLONES_LEFT), "this clone panics");
        Self::new(self.0)
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
        // A second panic while one unwinds would abort.
        if !std::thread::panicking() {
            assert!(!is_due(&DROPS_LEFT), "this drop panics");
        }
    }
}

fn arm(random: &mut Rng) {
    let left = Some(random.u64(..400));
    if random.u64(..2) == 0 {
        CLONES_LEFT.set(left);
    } else {
        DROPS_LEFT.set(left);
    }
}

/// Without panics on the way, which are armed again after.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let (clones, drops) = (CLONES_LEFT.take(), DROPS_LEFT.take());
    let result = work();
    CLONES_LEFT.set(clones);
    DROPS_LEFT.set(drops);
    result
}

fn shown(log: &mut MemLog<Fragile>) -> Vec<(Ts, u64)> {
    log.check().unwrap();
    let snapshot = log.snapshot();
    snapshot
        .range(..)
        .map(|(ts, value)| (ts, value.0))
        .collect()
}

fn run(seed: u64) -> u64 {
    let mut random = Rng::with_seed(seed);
    let mut log = MemLog::<Fragile>::new(config(&mut random)).unwrap();
    let mut oracle = Oracle::default();
    let (mut now, lateness, mut panics) = (0, random.u64(..60), 0);
    while oracle.seq < 1_500 {
        if random.u64(..4) == 0 {
            arm(&mut random);
        }
        let first = oracle.seq + 1;
        let rows: Vec<Ts> = (0..1 + random.u64(..60))
            .map(|_| ts(&mut random, &mut now, lateness))
            .collect();
        let range = rows[0].saturating_sub(9)..=rows[0];
        let kind = random.u64(..16);
        // What the operation adds to the model if it is accepted, whether or not it panics.
        let result = catch_unwind(AssertUnwindSafe(|| match kind {
            0..6 => drop(log.append(rows[0], Fragile::new(first))),
            6..9 => drop(log.extend(rows.iter().copied().zip((first..).map(Fragile::new)))),
            9 => {
                let values: Vec<Fragile> = (first..).take(rows.len()).map(Fragile::new).collect();
                drop(log.extend_columns(&rows, &values));
            }
            10 => drop(log.delete(range.clone())),
            11 => drop(log.snapshot()),
            12 => log.flush(),
            13 if random.u64(..4) == 0 => log.compact(),
            _ => drop(log.step(random.usize(..100))),
        }));
        panics += u64::from(result.is_err());
        let accepted = quietly(|| log.stats().seq.0) - oracle.seq;
        match kind {
            0..6 => assert!(accepted <= 1),
            6..10 => assert!(
                [0, rows.len() as u64].contains(&accepted),
                "a batch in part"
            ),
            10 => assert!(accepted <= 1),
            _ => assert_eq!(accepted, 0),
        }
        assert!(result.is_err() || kind >= 11 || accepted > 0);
        match kind {
            10 if accepted > 0 => oracle.delete(range),
            _ => rows
                .iter()
                .take(accepted as usize)
                .for_each(|ts| oracle.append(*ts)),
        }
        if result.is_err() {
            quietly(|| {
                assert_eq!(
                    shown(&mut log),
                    oracle.visible(),
                    "seed {seed}, operation {kind}"
                );
                oracle.forget_hidden();
            });
        }
    }
    quietly(|| {
        log.flush();
        log.compact();
        let shown = shown(&mut log);
        assert_eq!(shown, oracle.visible());
        assert!(ALIVE.get() >= shown.len() as i64);
        drop(log);
    });
    assert!(ALIVE.replace(0) >= 0, "no value is dropped twice");
    CLONES_LEFT.set(None);
    DROPS_LEFT.set(None);
    panics
}

/// `TIMELOG_PANIC_RUNS` sets how many configurations are run.
#[test]
fn payload_panics() {
    let runs = std::env::var("TIMELOG_PANIC_RUNS").map_or(40, |text| text.parse().unwrap());
    let panics: u64 = (0..runs).map(run).sum();
    assert!(panics > runs, "{panics} panics");
}
