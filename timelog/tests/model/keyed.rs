//! Many logs with one limit of memory, each against an oracle of its own.

use std::collections::BTreeMap;

use fastrand::Rng;
use timelog::{Busy, Keyed, Snapshot, Ts};

use crate::driver::{config, ts};
use crate::oracle::{Oracle, compare};

type Held = (Snapshot<u64>, Vec<(Ts, u64)>);

fn run(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let limit_bytes = 16 * (64 + random.usize(..2_000));
    let config = config(&mut random)
        .memory_limit_bytes(limit_bytes)
        .busy(Busy::Flush);
    let mut logs = Keyed::<u64, u64>::new(config).unwrap();
    let mut oracles: BTreeMap<u64, Oracle> = BTreeMap::new();
    let mut held: Vec<Held> = Vec::new();
    let (mut now, lateness, keys) = (0, random.u64(..60), 1 + random.u64(..40));
    for _ in 0..1_500 {
        let key = random.u64(..keys);
        match random.u64(..100) {
            0..50 => {
                let ts = ts(&mut random, &mut now, lateness);
                let oracle = oracles.entry(key).or_default();
                let appended = logs.append(key, ts, oracle.seq + 1).unwrap();
                oracle.append(ts);
                assert_eq!(appended.first.0, oracle.seq);
            }
            50..75 => {
                let rows: Vec<Ts> = (0..random.u64(..60))
                    .map(|_| ts(&mut random, &mut now, lateness))
                    .collect();
                let oracle = oracles.entry(key).or_default();
                let values = oracle.seq + 1..;
                logs.extend(key, rows.iter().copied().zip(values)).unwrap();
                rows.into_iter().for_each(|ts| oracle.append(ts));
            }
            75..82 => {
                let first = ts(&mut random, &mut now, 100);
                let last = first.saturating_add(random.i64(0..500));
                let deleted = logs.delete(&key, first..=last).unwrap();
                if let Some(oracle) = oracles.get_mut(&key) {
                    oracle.delete(first..=last);
                    assert_eq!(deleted.unwrap().0, oracle.seq);
                } else {
                    assert_eq!(deleted, None);
                }
            }
            82..96 => drop(logs.step(random.usize(..100))),
            96 => logs.flush(),
            97 => logs.compact(),
            98 => assert_eq!(logs.remove(&key), oracles.remove(&key).is_some()),
            _ => {
                let snapshot = logs.snapshot(&key);
                assert_eq!(snapshot.is_some(), oracles.contains_key(&key));
                held.extend(snapshot.map(|snapshot| (snapshot, oracles[&key].visible())));
            }
        }
        assert!(logs.unflushed_bytes() <= limit_bytes);
    }
    logs.check().unwrap();
    assert_eq!(logs.len(), oracles.len());
    for (key, oracle) in &oracles {
        let snapshot = logs.snapshot(key).unwrap();
        held.push((snapshot, oracle.visible()));
    }
    drop(logs);
    for (snapshot, expected) in held {
        compare(&snapshot, &expected, (..).into());
        compare(&snapshot, &expected, (-3..now / 2).into());
    }
}

/// `TIMELOG_KEYED_RUNS` sets how many configurations are run.
#[test]
fn keys_agree_with_sorted_maps() {
    let runs = std::env::var("TIMELOG_KEYED_RUNS").map_or(12, |text| text.parse().unwrap());
    for seed in 0..runs {
        let result = std::panic::catch_unwind(|| run(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}
