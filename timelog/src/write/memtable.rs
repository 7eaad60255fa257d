//! The memtable: four lanes and late rows.
//!
//! A row goes to the first lane whose tail is not after it. If there is none before the lane where
//! it would lie near the end, it is placed there, so slightly late rows cost a short move. This is
//! patience sorting with a bound: data in order uses one lane, and a row from the far future takes
//! one lane and leaves the others to the rest.
//!
//! Equal timestamps lie in the order of arrival by lane, then by place in the lane, then by age of
//! late runs. So no row stores its sequence number:
//!
//! 1. A lane's tail never goes down, so once a row has passed a lane by, its later equals do too.
//! 2. A row is placed inside a lane only if it is strictly after everything in later lanes and in
//!    late rows.

use std::sync::Arc;
use std::{array, mem};

use super::lane::Lane;
use super::late::Late;
use crate::column::Columns;
use crate::config::Limits;
use crate::segment::{List, Segment, within};
use crate::tombstones::Skyline;
use crate::{Broken, Seq, Ts};

const LANES: usize = 4;

#[derive(Debug)]
pub(crate) struct Memtable<V> {
    lanes: [Lane<V>; LANES],
    late: Late<V>,
    /// Rows in all parts, hidden ones in frozen parts included.
    rows: usize,
}

impl<V> Memtable<V> {
    pub fn new() -> Self {
        Self {
            lanes: array::from_fn(|_| Lane::new(Columns::new())),
            late: Late::new(),
            rows: 0,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Takes all rows out.
    pub fn take(&mut self) -> Self {
        let mut next = Self::new();
        next.lanes[0] = Lane::new(self.lanes[0].take_spare());
        mem::replace(self, next)
    }

    /// Makes memory ready for appends in order.
    #[inline]
    pub fn prepare(&mut self, limits: &Limits) {
        self.lanes[0].prepare(limits);
    }

    /// Takes a row. `applied` is the last operation before the current write. Clones and drops no
    /// value.
    #[inline]
    pub fn insert(&mut self, ts: Ts, value: V, limits: &Limits, applied: Seq) {
        self.rows += 1;
        if self.lanes[0].tail() <= ts {
            self.lanes[0].push(ts, value, limits, applied);
        } else {
            self.insert_late(ts, value, limits, applied);
        }
    }

    /// As `insert`, of many rows in order.
    pub fn insert_sorted(&mut self, rows: Vec<(Ts, V)>, limits: &Limits, applied: Seq) {
        let late = rows.partition_point(|row| row.0 < self.lanes[0].tail());
        let mut rows = rows.into_iter();
        for (ts, value) in rows.by_ref().take(late) {
            self.insert(ts, value, limits, applied);
        }
        self.rows += rows.len();
        self.lanes[0].push_all(rows, limits, applied);
    }

    fn insert_late(&mut self, ts: Ts, mut value: V, limits: &Limits, applied: Seq) {
        for index in 0..LANES {
            if self.lanes[index].tail() <= ts {
                return self.lanes[index].push(ts, value, limits, applied);
            }
            let later = self.lanes[index + 1..]
                .iter()
                .map(Lane::tail)
                .max()
                .unwrap_or(Ts::MIN);
            if later.max(self.late.max()) < ts {
                match self.lanes[index].insert_near(ts, value, limits, applied) {
                    Ok(()) => return,
                    Err(back) => value = back,
                }
            }
        }
        self.late.push(ts, value, limits, applied);
    }

    /// Merges late runs after a write. May clone and drop values.
    pub fn settle(&mut self, limits: &Limits, cut: &Skyline, applied: Seq)
    where
        V: Clone,
    {
        self.late.settle(limits, cut, applied, &mut self.rows);
    }

    /// Takes the rows from one timestamp to another out of the parts that are not frozen.
    pub fn remove(&mut self, first: Ts, last: Ts) -> Vec<V> {
        let mut removed = Vec::new();
        for lane in &mut self.lanes {
            lane.remove(first, last, &mut removed);
        }
        self.late.remove(first, last, &mut removed);
        self.rows -= removed.len();
        removed
    }

    /// The memtable as it is now; later writes do not change it.
    pub fn view(&mut self, applied: Seq) -> Vec<List<V>>
    where
        V: Clone,
    {
        let mut lists = Vec::with_capacity(LANES + 1 + self.late.runs().len());
        lists.extend(self.lanes.iter_mut().filter_map(|lane| lane.view(applied)));
        self.late.view(applied, &mut lists);
        lists
    }

    /// Drops what the last view has copied. May drop values.
    pub fn forget_copies(&mut self) {
        self.lanes.iter_mut().for_each(Lane::forget_copy);
        self.late.forget_copy();
    }

    /// The memtable with everything frozen. Clones and drops no value, once the copies are
    /// forgotten.
    pub fn seal(self, applied: Seq) -> Vec<List<V>> {
        let mut lists: Vec<_> = self
            .lanes
            .into_iter()
            .filter_map(|lane| lane.seal(applied))
            .collect();
        self.late.seal(applied, &mut lists);
        lists
    }

    /// The frozen parts that may have rows from one timestamp to another, both inside.
    pub fn frozen_within(&self, first: Ts, last: Ts) -> impl Iterator<Item = &Arc<Segment<V>>> {
        self.lanes
            .iter()
            .flat_map(move |lane| within(lane.frozen(), first, last))
            .chain(self.late.runs())
    }

    /// The parts that deletes hide rows of.
    fn frozen(&self) -> impl Iterator<Item = &Arc<Segment<V>>> {
        self.lanes
            .iter()
            .flat_map(Lane::frozen)
            .chain(self.late.runs())
    }

    pub fn check(&self, last: Seq) -> Result<(), Broken> {
        let mut rows = self.late.head().len();
        for (number, lane) in self.lanes.iter().enumerate() {
            let mut before = Ts::MIN;
            for chunk in lane.frozen() {
                chunk.check(&format!("lane {number}"), last)?;
                Broken::unless(before <= chunk.min(), || {
                    format!("lane {number}: chunks out of order")
                })?;
                before = chunk.max();
            }
            let open = lane.open();
            rows += open.len();
            Broken::unless(open.ts.len() == open.values.len(), || {
                format!("lane {number}: columns differ")
            })?;
            Broken::unless(open.ts.is_sorted(), || format!("lane {number}: order"))?;
            if let (Some(first), Some(end)) = (open.ts.first(), open.ts.last()) {
                Broken::unless(before <= *first, || {
                    format!("lane {number}: open chunk out of order")
                })?;
                before = *end;
            }
            Broken::unless(before <= lane.tail(), || {
                format!("lane {number}: tail before its rows")
            })?;
        }
        for run in self.late.runs() {
            run.check("late run", last)?;
            Broken::unless(run.max() <= self.late.max(), || {
                "late run after the latest".into()
            })?;
        }
        let latest = self.late.head().iter().map(|row| row.0).max();
        Broken::unless(latest.is_none_or(|ts| ts <= self.late.max()), || {
            "late row after the latest".into()
        })?;
        rows += self.frozen().map(|part| part.rows()).sum::<usize>();
        Broken::unless(rows == self.rows, || {
            format!("memtable: {rows} rows, counted {}", self.rows)
        })
    }
}
