//! What a log must show, computed the slow way, and the comparison with a snapshot.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use timelog::{Batch, Every, Snapshot, TimeRange, Ts};

/// Every operation ever accepted.
#[derive(Default)]
pub struct Oracle {
    /// The value of a row is its place in the order of acceptance.
    rows: BTreeMap<(Ts, u64), u64>,
    deletes: Vec<(RangeInclusive<Ts>, u64)>,
    pub seq: u64,
    pub floor: Option<Ts>,
}

impl Oracle {
    pub fn append(&mut self, ts: Ts) {
        self.seq += 1;
        self.rows.insert((ts, self.seq), self.seq);
    }

    /// Forgets what no snapshot taken from now on can show.
    pub fn forget_hidden(&mut self) {
        let visible = self.visible();
        self.rows = visible
            .into_iter()
            .map(|(ts, seq)| ((ts, seq), seq))
            .collect();
        self.deletes.clear();
    }

    pub fn delete(&mut self, range: impl Into<TimeRange>) {
        self.seq += 1;
        if let Some((first, last)) = range.into().bounds() {
            self.deletes.push((first..=last, self.seq));
        }
    }

    pub fn raise_floor(&mut self, ts: Ts) -> bool {
        let is_raised = self.floor.is_none_or(|floor| floor < ts);
        if is_raised {
            self.floor = Some(ts);
            self.delete(..ts);
        }
        is_raised
    }

    /// The visible rule of the log, row by row.
    pub fn visible(&self) -> Vec<(Ts, u64)> {
        let is_visible = |ts: Ts, seq: u64| {
            self.deletes
                .iter()
                .all(|(range, at)| !range.contains(&ts) || *at < seq)
        };
        let rows = self
            .rows
            .iter()
            .filter(|((ts, seq), _)| is_visible(*ts, *seq));
        rows.map(|((ts, _), value)| (*ts, *value)).collect()
    }
}

/// All reads of a snapshot against the rows it must show, over a range and around it.
pub fn compare(snapshot: &Snapshot<u64>, all: &[(Ts, u64)], range: TimeRange) {
    let inside: Vec<_> = all
        .iter()
        .copied()
        .filter(|row| range.contains(row.0))
        .collect();
    let copied = |(ts, value): (Ts, &u64)| (ts, *value);

    assert_eq!(
        snapshot.range(range).map(copied).collect::<Vec<_>>(),
        inside,
        "forward over {range:?}"
    );
    let mut backward: Vec<_> = snapshot.range(range).rev().map(copied).collect();
    backward.reverse();
    assert_eq!(backward, inside, "backward over {range:?}");
    assert_eq!(
        snapshot.count(range),
        inside.len() as u64,
        "count of {range:?}"
    );
    assert_eq!(
        snapshot.clone().into_rows(range).collect::<Vec<_>>(),
        inside,
        "owned rows of {range:?}"
    );

    rows_both_ends(snapshot, &inside, range);
    rows_slices(snapshot, &inside, range);
    spans_once(snapshot, &inside, range);
    windows(snapshot, &inside, range);
}

/// Windows of a width and an origin that differ from range to range, each row added to its own.
fn windows(snapshot: &Snapshot<u64>, inside: &[(Ts, u64)], range: TimeRange) {
    let ticks = [1, 7, 100, 1 << 40, u64::MAX][inside.len() % 5];
    let origin = inside.first().map_or(0, |row| row.0 / 3);
    let every = Every::ticks(ticks).unwrap().origin(origin);
    let mut rest = inside;
    for window in snapshot.fold(range, every, |value| *value) {
        let bounds = every.window_of(rest[0].0);
        assert_eq!((window.first, window.end), bounds, "window in {range:?}");
        let count = rest.partition_point(|row| row.0 <= window.end);
        let values = || rest[..count].iter().map(|row| row.1);
        assert_eq!(window.count, count as u64);
        assert_eq!(window.sum, values().map(u128::from).sum());
        assert_eq!(
            (Some(window.min), Some(window.max), Some(window.last)),
            (values().min(), values().max(), values().next_back())
        );
        rest = &rest[count..];
    }
    assert!(rest.is_empty(), "rows in no window of {range:?}");
}

/// Rows from both ends in an irregular mixture of all calls, with the exact rest at every point.
fn rows_both_ends(snapshot: &Snapshot<u64>, inside: &[(Ts, u64)], range: TimeRange) {
    let mut rows = snapshot.range(range);
    let (mut first, mut last) = (0, inside.len());
    let mut turn = inside.len();
    while first < last {
        assert_eq!(rows.remaining(), (last - first) as u64, "rest of {range:?}");
        turn = (turn * 5 + 3) % 10_007;
        match turn / 7 % 4 {
            0 => {
                last -= 1;
                let row = rows.next_back().expect("rows are left");
                assert_eq!((row.0, *row.1), inside[last]);
            }
            1 => {
                let mut batch = Batch::default();
                let taken = rows.next_batch(3, &mut batch);
                assert_eq!(taken, (last - first).min(3));
                let expected = &inside[first..first + taken];
                assert_eq!(
                    batch
                        .timestamps
                        .into_iter()
                        .zip(batch.values)
                        .collect::<Vec<_>>(),
                    expected
                );
                first += taken;
            }
            _ => {
                let row = rows.next().expect("rows are left");
                assert_eq!((row.0, *row.1), inside[first]);
                first += 1;
            }
        }
        if turn.is_multiple_of(11) {
            rows = rows.clone();
        }
    }
    assert_eq!(rows.remaining(), 0);
    assert!(
        rows.next().is_none() && rows.next_back().is_none() && rows.next().is_none(),
        "fused"
    );
    assert!(rows.next_slice().is_none());
}

fn rows_slices(snapshot: &Snapshot<u64>, inside: &[(Ts, u64)], range: TimeRange) {
    let mut rows = snapshot.range(range);
    let mut read = Vec::new();
    while let Some(span) = rows.next_slice() {
        assert!(!span.is_empty());
        read.extend(
            span.timestamps()
                .iter()
                .copied()
                .zip(span.values().iter().copied()),
        );
    }
    assert_eq!(read, inside, "slices of {range:?}");
}

fn spans_once(snapshot: &Snapshot<u64>, inside: &[(Ts, u64)], range: TimeRange) {
    let mut read = Vec::new();
    let mut before = Ts::MIN;
    for span in snapshot.spans(range) {
        assert!(before <= span.first(), "spans by first timestamp");
        before = span.first();
        let rows: Vec<_> = span
            .timestamps()
            .iter()
            .copied()
            .zip(span.values().iter().copied())
            .collect();
        assert!(rows.is_sorted(), "inside a span rows are in order");
        read.extend(rows);
    }
    read.sort_unstable();
    assert_eq!(read, inside, "spans of {range:?}");
}

/// Navigation from `ts`.
pub fn navigate(snapshot: &Snapshot<u64>, all: &[(Ts, u64)], ts: Ts) {
    let after = |holds: &dyn Fn(Ts) -> bool| all.iter().map(|row| row.0).find(|ts| holds(*ts));
    let before = |holds: &dyn Fn(Ts) -> bool| all.iter().map(|row| row.0).rfind(|ts| holds(*ts));
    assert_eq!(
        snapshot.next_after(ts),
        after(&|other| other > ts),
        "next_after({ts})"
    );
    assert_eq!(
        snapshot.at_or_after(ts),
        after(&|other| other >= ts),
        "at_or_after({ts})"
    );
    assert_eq!(
        snapshot.prev_before(ts),
        before(&|other| other < ts),
        "prev_before({ts})"
    );
    assert_eq!(
        snapshot.at_or_before(ts),
        before(&|other| other <= ts),
        "at_or_before({ts})"
    );
    assert_eq!(snapshot.first(), all.first().map(|row| row.0));
    assert_eq!(snapshot.last(), all.last().map(|row| row.0));
    assert_eq!(snapshot.contains(ts), all.iter().any(|row| row.0 == ts));
    let at: Vec<_> = snapshot.at(ts).map(|row| *row.1).collect();
    let expected: Vec<_> = all
        .iter()
        .filter(|row| row.0 == ts)
        .map(|row| row.1)
        .collect();
    assert_eq!(at, expected, "rows at {ts}");
}
