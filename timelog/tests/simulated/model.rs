//! What a log must show: its operations, done the slow way.

use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;
use futures_lite::future::poll_once;
use glommio::timer::sleep;
use timelog::durable::{Commit, Error, Log, read};
use timelog::{Ts, WriteErrorKind};

#[derive(Clone, Debug)]
pub enum Operation {
    Rows(Vec<(Ts, u64)>),
    Delete(RangeInclusive<Ts>),
    Floor(Ts),
}

#[derive(Debug, Default)]
pub struct Model {
    /// With the number of the last row or delete of each.
    accepted: Vec<(u64, Operation)>,
    /// Operations up to this one must be there.
    pub confirmed: u64,
    /// Of the next row.
    value: u64,
    copies: u64,
    commits: Vec<Commit>,
}

impl Model {
    pub fn last(&self) -> u64 {
        self.accepted.last().map_or(0, |(last, _)| *last)
    }

    fn accept(&mut self, count: u64, operation: Operation, commit: Commit) {
        let last = self.last() + count;
        assert_eq!(commit.seq().0, last, "operations are counted without gaps");
        self.accepted.push((last, operation));
        self.commits.push(commit);
    }

    /// The rows after the operations up to `seq`, or `None` if that is in the middle of a batch.
    pub fn rows_at(&self, seq: u64) -> Option<Vec<(Ts, u64)>> {
        let count = self.accepted.partition_point(|(last, _)| *last <= seq);
        let before = count.checked_sub(1).map_or(0, |at| self.accepted[at].0);
        if before != seq {
            return None;
        }
        let mut rows = Vec::new();
        for (_, operation) in &self.accepted[..count] {
            match operation {
                Operation::Rows(new) => rows.extend_from_slice(new),
                Operation::Delete(range) => rows.retain(|row| !range.contains(&row.0)),
                Operation::Floor(floor) => rows.retain(|row| row.0 >= *floor),
            }
        }
        rows.sort_by_key(|row| row.0);
        Some(rows)
    }

    /// Holds a log that was just opened against it; what it lacks is forgotten.
    pub fn recovered(&mut self, log: &Log<u64>) {
        let seq = log.seq().0;
        let confirmed = self.confirmed;
        assert!(
            (confirmed..=self.last()).contains(&seq),
            "it has operations up to {seq}, {confirmed} were confirmed and {} accepted",
            self.last()
        );
        let rows = self.rows_at(seq);
        assert!(rows.is_some(), "{seq} is in the middle of a batch");
        assert_eq!(Some(super::rows(log)), rows, "after operation {seq}");
        self.accepted.retain(|(last, _)| *last <= seq);
        self.commits.clear();
        // Opening it again shows the same.
        self.confirmed = seq;
    }

    /// Takes note of what is confirmed.
    pub async fn look(&mut self) {
        let mut waiting = Vec::new();
        for mut commit in self.commits.drain(..) {
            match poll_once(&mut commit).await {
                None => waiting.push(commit),
                Some(committed) => {
                    let seq = committed.expect("nothing fails").0;
                    self.confirmed = self.confirmed.max(seq);
                }
            }
        }
        self.commits = waiting;
    }

    /// Does something with the log, and takes note of it.
    pub async fn act(&mut self, log: &Log<u64>, random: &mut Rng) {
        let clock = self.value as Ts;
        let floor = log.stats().memory.floor.unwrap_or(Ts::MIN);
        match random.u8(..100) {
            0..60 => {
                let row = self.row(floor, random);
                let commit = log.append(row.0, row.1).expect("it is open");
                self.accept(1, Operation::Rows(vec![row]), commit);
            }
            60..75 => {
                let rows = (0..1 + random.usize(..100)).map(|_| self.row(floor, random));
                let rows: Vec<_> = rows.collect();
                let commit = log.extend(rows.clone()).expect("it is open");
                self.accept(rows.len() as u64, Operation::Rows(rows), commit);
            }
            75..83 => {
                let start = clock - random.i64(0..200);
                let range = match random.u8(..30) {
                    0 => Ts::MIN..=Ts::MAX,
                    _ => start..=start + random.i64(0..30),
                };
                let commit = log.delete(range.clone()).expect("it is open");
                self.accept(1, Operation::Delete(range), commit);
            }
            83..85 => {
                let floor = clock - 100;
                if let Some(commit) = log.raise_floor(floor).expect("it is open") {
                    self.accept(1, Operation::Floor(floor), commit);
                }
            }
            85..87 if floor > Ts::MIN => {
                let refused = log.append(floor - 1, 0).expect_err("it is below the floor");
                let kind = WriteErrorKind::BelowFloor {
                    index: 0,
                    ts: floor - 1,
                    floor,
                };
                assert!(
                    matches!(&refused.error, Error::Write(it) if *it == kind),
                    "{refused}"
                );
            }
            87..92 => {
                log.sync().await.expect("nothing fails");
                self.confirmed = self.last();
            }
            92 => {
                self.copies += 1;
                let copy = format!("/copy-{}", self.copies);
                let seq = log.backup(&copy).await.expect("nothing fails");
                assert_eq!(seq.0, self.last());
                self.confirmed = seq.0;
                let (copied, _) = read::<u64>(copy).await.expect("it is whole");
                let copied = copied.range(..).map(|(ts, value)| (ts, *value));
                assert_eq!(Some(copied.collect()), self.rows_at(seq.0));
            }
            93 => log.checkpoint().await.expect("nothing fails"),
            _ => sleep(Duration::from_micros(50)).await,
        }
    }

    fn row(&mut self, floor: Ts, random: &mut Rng) -> (Ts, u64) {
        let clock = self.value as Ts;
        self.value += 1;
        let ts = match random.u8(..20) {
            0 => [Ts::MIN, Ts::MAX, 0][random.usize(..3)],
            1..5 => clock - random.i64(0..50),
            _ => clock,
        };
        (ts.max(floor), self.value)
    }
}
