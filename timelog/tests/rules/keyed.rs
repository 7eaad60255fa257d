use timelog::{Busy, Config, Keyed, Progress, Ts, WriteErrorKind};

use crate::small;

fn keyed(config: Config) -> Keyed<u32, u64> {
    Keyed::new(config).unwrap()
}

/// What each of them shows is held by the model.
#[test]
fn keys_have_logs_of_their_own() {
    let mut logs = keyed(small());
    for row in 0..300u64 {
        logs.append(row as u32 % 3, row as Ts / 7, row).unwrap();
    }
    assert_eq!(logs.delete(&1, ..10).unwrap().unwrap().0, 101);
    assert_eq!(logs.delete(&9, ..10).unwrap(), None);
    let refused = logs.delete(&9, 5..5).unwrap_err();
    assert_eq!(refused.kind, WriteErrorKind::EmptyRange);
    assert!(logs.snapshot(&9).is_none() && logs.stats(&9).is_none());
    logs.flush();
    assert_eq!(logs.unflushed_bytes(), 0);
    logs.compact();
    assert_eq!(logs.stats(&1).unwrap().hidden_rows, 0);

    let held = logs.snapshot(&2).unwrap();
    assert!(logs.remove(&2) && !logs.remove(&2));
    assert_eq!((logs.len(), held.count(..)), (2, 100));
    logs.append(7, 1, 1).unwrap();
    logs.append(2, 1, 1).unwrap();
    assert_eq!(logs.snapshot(&2).unwrap().count(..), 1, "a new log");
    let mut keys: Vec<u32> = logs.keys().copied().collect();
    keys.sort_unstable();
    assert_eq!(keys, [0, 1, 2, 7]);
    logs.check().unwrap();
}

#[test]
fn all_keys_share_a_limit_of_memory() {
    let mut logs = keyed(small().memory_limit_bytes(100 * 16));
    for row in 0..100 {
        logs.append(row % 10, Ts::from(row), 0).unwrap();
    }
    assert_eq!(logs.unflushed_bytes(), 1_600);
    let full = WriteErrorKind::Full {
        needed_bytes: 1_616,
        limit_bytes: 1_600,
    };
    assert_eq!(logs.append(50, 1, 1).unwrap_err().kind, full);
    assert_eq!(logs.len(), 10, "a refused write makes no key");
    assert_eq!(
        logs.extend(3, [(1, 1), (2, 2)]).unwrap_err().rejected.len(),
        2
    );
    logs.remove(&3);
    logs.append(50, 1, 1).unwrap();
    logs.check().unwrap();

    let mut logs = keyed(small().memory_limit_bytes(100 * 16).busy(Busy::Flush));
    for row in 0..5_000u32 {
        logs.append(row * row % 37, Ts::from(row), 0).unwrap();
        assert!(logs.unflushed_bytes() <= 1_600);
    }
    assert!(logs.extend(1, (0..101).map(|ts| (ts, 0))).is_err());
    let keys: Vec<u32> = logs.keys().copied().collect();
    let count = |key: &u32| logs.snapshot(key).unwrap().count(..);
    assert_eq!(keys.iter().map(count).sum::<u64>(), 5_000);
    logs.check().unwrap();
}

#[test]
fn a_floor_is_for_all_keys() {
    let mut logs = keyed(small().floor(5));
    assert!(logs.append(1, 4, 0).is_err());
    assert!(logs.is_empty());
    logs.extend(1, (5..50).map(|ts| (ts, 0))).unwrap();
    logs.extend(2, (5..50).map(|ts| (ts, 0))).unwrap();
    assert!(logs.raise_floor(20) && !logs.raise_floor(20));
    assert_eq!(logs.snapshot(&1).unwrap().first(), Some(20));
    assert_eq!(logs.snapshot(&2).unwrap().first(), Some(20));
    assert!(logs.append(3, 19, 0).is_err());
    let refused = logs.extend(3, [(20, 1), (7, 2)]).unwrap_err();
    assert_eq!(
        refused.kind,
        WriteErrorKind::BelowFloor {
            index: 1,
            ts: 7,
            floor: 20
        }
    );
    logs.append(3, 20, 0).unwrap();
    logs.check().unwrap();
}

/// Without a limit each log seals and flushes by itself.
#[test]
fn logs_take_turns() {
    let mut logs = keyed(small());
    for row in 0..2_000u32 {
        logs.append(row % 20, Ts::from(row), 0).unwrap();
    }
    let mut steps = 0;
    while logs.step(8) == Progress::More {
        steps += 1;
    }
    assert!(steps >= 2_000 / 12 / 2, "{steps} steps");
    for key in 0..20 {
        let stats = logs.stats(&key).unwrap();
        assert_eq!((stats.sealed_runs, stats.segment_rows), (0, 96));
    }
    assert_eq!(logs.step(8), Progress::Idle);
    logs.check().unwrap();
}
