//! The same work by std's collections.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use timelog::Ts;

use super::super::sample::{Sample, timed, timed_again};
use super::data::{Data, Pair};
use super::floors::add;
use super::ours::median;

pub fn btree_thousandths(data: &Data) -> Sample {
    let width = data.ts.len() / 1_000;
    timed_again(|| {
        for rows in data.ts.chunks(width).take(500) {
            let range = (rows[0], 0)..(rows[rows.len() - 1], 0);
            black_box(data.map.range(range).count());
        }
        500
    })
}

pub fn btree_ingest(data: &Data) -> (Sample, BTreeMap<(Ts, u64), u64>) {
    let mut map = BTreeMap::new();
    let sample = timed(|| {
        for (ts, seq) in &data.late05 {
            map.insert((*ts, *seq), *seq);
        }
        map.len() as u64
    });
    (sample, map)
}

pub fn btree_scan(data: &Data) -> Sample {
    timed_again(|| {
        let rows = data.map.iter().map(|((ts, _), value)| (*ts, value));
        black_box(rows.fold(0, add));
        data.map.len() as u64
    })
}

pub fn btree_points(data: &Data) -> Sample {
    timed_again(|| {
        let mut found = 0;
        for ts in data.wanted.iter().copied() {
            let row = data.map.range((ts, 0)..=(ts, u64::MAX)).next();
            assert!(row.is_some());
            found = row.map_or(found, |((ts, _), value)| add(found, (*ts, value)));
        }
        black_box(found);
        data.probes.len() as u64
    })
}

/// Rows are sought and removed one by one.
pub fn btree_deletes(data: &Data) -> Sample {
    let mut map = data.map.clone();
    let mut times = Vec::new();
    for row in &data.probes[..200.min(data.probes.len())] {
        let range = (data.ts[*row], 0)..=(data.ts[*row + 99], u64::MAX);
        let start = Instant::now();
        let keys: Vec<_> = map.range(range).map(|row| *row.0).collect();
        for key in keys {
            map.remove(&key);
        }
        times.push(start.elapsed());
    }
    median(times)
}

/// Kept sorted by (timestamp, arrival).
pub fn vec_ingest(data: &Data) -> Sample {
    let mut sorted: Vec<Pair> = Vec::new();
    let sample = timed(|| {
        for row in &data.late05 {
            let place = sorted.partition_point(|other| other.0 <= row.0);
            sorted.insert(place, *row);
        }
        sorted.len() as u64
    });
    assert!(sorted == data.pairs);
    sample
}

pub fn vec_scan(data: &Data) -> Sample {
    timed_again(|| {
        let rows = black_box(&data.pairs)
            .iter()
            .map(|(ts, value)| (*ts, value));
        black_box(rows.fold(0, add));
        data.pairs.len() as u64
    })
}

pub fn vec_points(data: &Data) -> Sample {
    timed_again(|| {
        let mut found = 0;
        for ts in data.wanted.iter().copied() {
            let place = data.pairs.partition_point(|row| row.0 < ts);
            let row = data.pairs.get(place);
            assert!(row.is_some_and(|row| row.0 == ts));
            found = row.map_or(found, |(ts, value)| add(found, (*ts, value)));
        }
        black_box(found);
        data.probes.len() as u64
    })
}
