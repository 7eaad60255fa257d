//! A long seeded run: fewer kinds of operation than the random cases, many more of each.

use std::time::Duration;

use timelog::{Busy, Config, MemLog, Progress, TimeRange, Ts, Window};

use crate::oracle::{Oracle, compare, navigate};

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        ((u128::from(bits) * u128::from(bound)) >> 64) as u64
    }
}

fn config(random: &mut Random) -> Config {
    let window = [
        Window::Fixed(Duration::from_nanos(7)),
        Window::Fixed(Duration::from_micros(1)),
        Window::Adaptive {
            rows: 100,
            min: Duration::from_nanos(10),
            max: Duration::from_micros(10),
        },
    ];
    Config::default()
        .page_bytes(64 + random.below(512) as usize)
        .memtable_bytes(256 + random.below(16_000) as usize)
        .sealed_runs(1 + random.below(3) as usize)
        .l0_segments(1 + random.below(8) as usize)
        .segment_bytes(1_000 + random.below(100_000) as usize)
        .busy([Busy::Signal, Busy::Silent, Busy::Flush][random.below(3) as usize])
        .window(window[random.below(3) as usize])
}

/// A timestamp near `now`: in order, slightly late, late by a memtable, late over all history, or from the future.
fn ts(random: &mut Random, now: &mut Ts, lateness: u64) -> Ts {
    if random.below(100) >= lateness {
        *now += random.below(6) as Ts;
        return *now;
    }
    match random.below(20) {
        0..10 => *now - random.below(10) as Ts,
        10..16 => *now - random.below(2_000) as Ts,
        16..18 => random.below((*now).max(1) as u64) as Ts,
        18 => *now + random.below(100_000) as Ts,
        _ => [Ts::MIN, Ts::MAX][random.below(2) as usize],
    }
}

/// One configuration, `operations` writes and deletes, snapshots held over maintenance.
fn run(seed: u64, operations: u64) {
    let mut random = Random(seed);
    let mut log = MemLog::new(config(&mut random)).unwrap();
    let mut oracle = Oracle::default();
    let (mut now, lateness) = (0, random.below(60));
    let mut held = Vec::new();
    let mut next_look = oracle.seq + operations / 4;
    while oracle.seq < operations {
        match random.below(100) {
            0..40 => {
                let ts = ts(&mut random, &mut now, lateness);
                log.append(ts, oracle.seq + 1).unwrap();
                oracle.append(ts);
            }
            40..70 => {
                let rows: Vec<Ts> = (0..random.below(60))
                    .map(|_| ts(&mut random, &mut now, lateness))
                    .collect();
                log.extend(rows.iter().copied().zip(oracle.seq + 1..))
                    .unwrap();
                rows.into_iter().for_each(|ts| oracle.append(ts));
            }
            70..74 => {
                let first = ts(&mut random, &mut now, 100);
                let last = first.saturating_add(random.below(50) as Ts);
                log.delete(first..=last).unwrap();
                oracle.delete(first..=last);
            }
            74 => {
                log.delete_before(now - 20_000);
                oracle.delete(..now - 20_000);
            }
            75..95 => {
                log.step(random.below(200) as usize);
            }
            95 => log.flush(),
            96 if random.below(10) == 0 => log.compact(),
            97 if random.below(10) == 0 => while log.step(50) == Progress::More {},
            _ => {}
        }
        if oracle.seq >= next_look {
            next_look = oracle.seq + operations / 4;
            oracle.forget_hidden();
            log.check().unwrap();
            held.push((log.snapshot(), oracle.visible()));
        }
    }
    log.compact();
    log.check().unwrap();
    held.push((log.snapshot(), oracle.visible()));
    for (snapshot, expected) in &held {
        compare(snapshot, expected, (..).into());
        for _ in 0..4 {
            let first = ts(&mut random, &mut now, 100);
            compare(
                snapshot,
                expected,
                TimeRange::from(first..first.saturating_add(500)),
            );
            navigate(snapshot, expected, first);
        }
    }
}

/// `TIMELOG_OPERATIONS` sets how many operations are run in all.
#[test]
fn long_runs_agree_with_a_sorted_map() {
    let operations = std::env::var("TIMELOG_OPERATIONS")
        .ok()
        .and_then(|count| count.parse().ok());
    for seed in 0..operations.unwrap_or(40_000u64) / 4_000 {
        run(seed, 4_000);
    }
}
