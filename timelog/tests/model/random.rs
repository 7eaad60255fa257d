//! Random operations on random configurations, shrunk when they fail.

use std::time::Duration;

use proptest::prelude::*;
use timelog::{Busy, Config, MemLog, TimeRange, Ts, Window, WriteErrorKind};

use crate::oracle::{Oracle, compare, navigate};

#[derive(Clone, Debug)]
enum Op {
    Append(Ts),
    Extend(Vec<Ts>),
    Columns(Vec<Ts>),
    Delete(Ts, Ts),
    DeleteAt(Ts),
    DeleteBefore(Ts),
    RaiseFloor(Ts),
    Flush,
    RequestCompaction,
    Step(usize),
    Compact,
    Snapshot,
    DropOldestSnapshot,
}

/// Mostly a narrow stretch, so that timestamps collide; also both ends of time and the far future.
fn ts() -> impl Strategy<Value = Ts> {
    prop_oneof![
        12 => -20..40i64,
        4 => 0..400i64,
        1 => Just(Ts::MIN),
        1 => Just(Ts::MAX),
        1 => any::<i64>(),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => ts().prop_map(Op::Append),
        6 => prop::collection::vec(ts(), 0..20).prop_map(Op::Extend),
        // In order and slightly late.
        6 => (0..300i64, prop::collection::vec(-3..6i64, 0..40)).prop_map(|(start, gaps)| {
            let rising = gaps.iter().scan(start, |ts, gap| {
                *ts += gap;
                Some(*ts)
            });
            Op::Columns(rising.collect())
        }),
        4 => (ts(), ts()).prop_map(|(a, b)| Op::Delete(a.min(b), a.max(b))),
        4 => (ts(), 0..8i64).prop_map(|(first, length)| Op::Delete(first, first.saturating_add(length))),
        3 => ts().prop_map(Op::DeleteAt),
        1 => ts().prop_map(Op::DeleteBefore),
        1 => (-40..0i64).prop_map(Op::RaiseFloor),
        3 => Just(Op::Flush),
        1 => Just(Op::RequestCompaction),
        8 => (0..12usize).prop_map(Op::Step),
        1 => Just(Op::Compact),
        4 => Just(Op::Snapshot),
        2 => Just(Op::DropOldestSnapshot),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let busy = prop_oneof![Just(Busy::Signal), Just(Busy::Silent), Just(Busy::Flush)];
    let window = prop_oneof![
        Just(Window::Fixed(Duration::from_nanos(7))),
        Just(Window::Fixed(Duration::from_secs(3600))),
        Just(Window::Adaptive {
            rows: 20,
            min: Duration::from_nanos(3),
            max: Duration::from_nanos(500)
        }),
    ];
    let sizes = (64..200usize, 256..2_000usize, 0..200usize, 0..500usize);
    let triggers = (
        1..4usize,
        1..5usize,
        0.0..0.5f64,
        prop_oneof![Just(0usize), 2..5usize],
    );
    (sizes, triggers, busy, window, -10..10i64).prop_map(
        |(sizes, triggers, busy, window, origin)| {
            let (page, memtable, late, segment) = sizes;
            let (sealed_runs, l0_segments, delete_debt, inputs) = triggers;
            Config::default()
                .page_bytes(page)
                .memtable_bytes(memtable)
                .late_bytes(late)
                .segment_bytes(page + segment)
                .sealed_runs(sealed_runs)
                .l0_segments(l0_segments)
                .delete_debt(delete_debt)
                .compaction_inputs(inputs)
                .busy(busy)
                .window(window)
                .window_origin(origin)
        },
    )
}

/// Writes rows, or sees the batch refused for the floor as a whole.
fn write(log: &mut MemLog<u64>, oracle: &mut Oracle, timestamps: &[Ts], by_columns: bool) {
    let first = oracle.seq + 1;
    let values: Vec<u64> = (first..first + timestamps.len() as u64).collect();
    let written = if by_columns {
        log.extend_columns(timestamps, &values)
            .map_err(|error| error.kind)
    } else if let [ts] = timestamps {
        log.append(*ts, first).map_err(|error| error.kind)
    } else {
        log.extend(timestamps.iter().copied().zip(values))
            .map_err(|error| error.kind)
    };
    let below = oracle.floor.and_then(|floor| {
        let index = timestamps.iter().position(|ts| *ts < floor)?;
        Some(WriteErrorKind::BelowFloor {
            index,
            ts: timestamps[index],
            floor,
        })
    });
    match (written, below) {
        (Ok(appended), None) => {
            assert_eq!(
                (appended.first.0, appended.rows),
                (first, timestamps.len() as u64)
            );
            timestamps.iter().for_each(|ts| oracle.append(*ts));
        }
        (Err(kind), Some(expected)) => assert_eq!(kind, expected),
        (written, below) => panic!("{written:?}, expected {below:?}"),
    }
}

fn run(config: Config, ops: Vec<Op>, probes: &[Ts]) {
    let mut log = MemLog::new(config).unwrap();
    let mut oracle = Oracle::default();
    let mut held = Vec::new();
    for op in ops {
        match op {
            Op::Append(ts) => write(&mut log, &mut oracle, &[ts], false),
            Op::Extend(batch) => write(&mut log, &mut oracle, &batch, false),
            Op::Columns(batch) => write(&mut log, &mut oracle, &batch, true),
            Op::Delete(first, last) => {
                oracle.delete(first..=last);
                assert_eq!(log.delete(first..=last).unwrap().0, oracle.seq);
            }
            Op::DeleteAt(ts) => {
                oracle.delete(ts..=ts);
                assert_eq!(log.delete_at(ts).0, oracle.seq);
            }
            Op::DeleteBefore(ts) => {
                oracle.delete(..ts);
                assert_eq!(log.delete_before(ts).0, oracle.seq);
            }
            Op::RaiseFloor(ts) => {
                let is_raised = oracle.raise_floor(ts);
                assert_eq!(
                    log.raise_floor(ts).map(|seq| seq.0),
                    is_raised.then_some(oracle.seq)
                );
            }
            Op::Flush => log.flush(),
            Op::RequestCompaction => log.request_compaction(),
            Op::Step(rows) => {
                log.step(rows);
            }
            Op::Compact => log.compact(),
            Op::Snapshot => {
                let snapshot = log.snapshot();
                assert_eq!(snapshot.seq().0, oracle.seq);
                held.push((snapshot, oracle.visible()));
            }
            Op::DropOldestSnapshot if !held.is_empty() => drop(held.remove(0)),
            Op::DropOldestSnapshot => {}
        }
        log.check().unwrap();
    }
    held.push((log.snapshot(), oracle.visible()));
    log.flush();
    held.push((log.snapshot(), oracle.visible()));
    log.compact();
    held.push((log.snapshot(), oracle.visible()));
    log.check().unwrap();
    let stats = log.stats();
    assert_eq!(
        (stats.hidden_rows, stats.delete_intervals, stats.l0_segments),
        (0, 0, 0),
        "all is reclaimed"
    );
    assert_eq!(stats.segment_rows, oracle.visible().len());
    drop(log);
    for (snapshot, expected) in held {
        compare(&snapshot, &expected, (..).into());
        for pair in probes.windows(2) {
            compare(&snapshot, &expected, TimeRange::from(pair[0]..pair[1]));
            navigate(&snapshot, &expected, pair[0]);
        }
        [Ts::MIN, Ts::MAX]
            .iter()
            .for_each(|ts| navigate(&snapshot, &expected, *ts));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 3000, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_sorted_map(
        config in config(),
        ops in prop::collection::vec(op(), 0..120),
        probes in prop::collection::vec(ts(), 2..6),
    ) {
        run(config, ops, &probes);
    }
}

/// `TIMELOG_CASES` runs more of them.
fn cases() -> u32 {
    std::env::var("TIMELOG_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(200)
}
