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

use super::lane::{Lane, Memory};
use super::late::{Late, Settled};
use crate::column::Columns;
use crate::config::Limits;
use crate::list::List;
use crate::read::Run;
use crate::segment::Segment;
use crate::segments::Segments;
use crate::tombstones::{Piece, Skyline};
use crate::{Broken, Seq, Ts};

const LANES: usize = 4;

#[derive(Debug)]
pub(crate) struct Memtable<V> {
    lanes: [Lane<V>; LANES],
    late: Late<V>,
    memory: Memory<V>,
    /// Rows in all parts, hidden ones in frozen parts included.
    rows: usize,
}

impl<V> Memtable<V> {
    pub fn new() -> Self {
        Self {
            lanes: array::from_fn(|_| Lane::new(Columns::new())),
            late: Late::new(),
            memory: Memory {
                spare: Columns::new(),
                stale: Vec::new(),
            },
            rows: 0,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows that there is memory for in open chunks.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        let lanes = self.lanes.iter().map(|lane| lane.open().ts.capacity());
        lanes.sum::<usize>() + self.memory.spare.ts.capacity()
    }

    /// Takes all rows out, frozen, in the order of their equals. Clones and drops no value.
    pub fn seal(&mut self, limits: &Limits, applied: Seq) -> Vec<List<V>> {
        let mut next = Self::new();
        // The next one will be filled, too.
        let open = mem::replace(&mut self.memory.spare, Columns::new());
        next.lanes[0] = Lane::new(if open.ts.capacity() > 0 {
            open
        } else {
            Columns::with_capacity(limits.chunk_rows)
        });
        mem::swap(&mut next.memory, &mut self.memory);
        let sealed = mem::replace(self, next);
        let memory = &mut self.memory;
        let lanes = sealed.lanes.into_iter();
        let mut lists: Vec<_> = lanes
            .filter_map(|lane| lane.seal(applied, memory))
            .collect();
        sealed.late.seal(applied, &mut lists, memory);
        lists
    }

    /// Makes the memory of the next chunk ready, so that the append that begins it waits neither
    /// for the allocator nor, row after row, for the kernel.
    #[inline]
    pub fn prepare(&mut self, limits: &Limits) {
        let is_begun = self.lanes[0].open().ts.capacity() >= limits.chunk_rows;
        if is_begun && self.memory.spare.ts.capacity() == 0 {
            self.memory.spare = Columns::touched(limits.chunk_rows);
        }
    }

    /// Takes a row. `applied` is the last operation before the current write. Clones and drops no
    /// value.
    #[inline]
    pub fn insert(&mut self, ts: Ts, value: V, limits: &Limits, applied: Seq) {
        self.rows += 1;
        if self.lanes[0].tail() <= ts {
            self.lanes[0].push(ts, value, limits, applied, &mut self.memory);
        } else {
            self.insert_late(ts, value, limits, applied);
        }
    }

    /// The last timestamp of the first lane, or the least there is.
    pub fn tail(&self) -> Ts {
        self.lanes[0].tail()
    }

    /// How many rows may follow the last one of the first lane by `push_plain`.
    pub fn plain_rows(&self, limits: &Limits) -> usize {
        // The last one that the memtable takes makes it full, which is for `settle` to find.
        let until_full = limits.memtable_rows.saturating_sub(self.rows + 1);
        self.lanes[0].space(limits).min(until_full)
    }

    /// Takes one of `plain_rows`, if it is in order, or gives its value back.
    #[inline]
    pub fn push_plain(&mut self, ts: Ts, value: V) -> Result<(), V> {
        if ts < self.lanes[0].tail() {
            return Err(value);
        }
        self.rows += 1;
        self.lanes[0].push_into_space(ts, value);
        Ok(())
    }

    /// As `insert`, of many rows in order.
    pub fn insert_sorted(&mut self, rows: Vec<(Ts, V)>, limits: &Limits, applied: Seq) {
        // Lanes that have rows from the future are passed by.
        let count = rows.len();
        let seeking = self.lanes.iter_mut().position(|lane| !lane.skips(count));
        let lane = seeking.unwrap_or(LANES - 1);
        // Tails fall from lane to lane: each takes the rows from its tail up to that of the lane
        // before it.
        let mut ends = [count; LANES];
        for index in 0..lane {
            ends[index + 1] = rows.partition_point(|row| row.0 < self.lanes[index].tail());
        }
        let late = rows.partition_point(|row| row.0 < self.lanes[lane].tail());
        let mut rows = rows.into_iter();
        for (ts, value) in rows.by_ref().take(late) {
            self.insert(ts, value, limits, applied);
        }
        self.rows += count - late;
        let mut begin = late;
        for (lane, end) in self.lanes.iter_mut().zip(ends).take(lane + 1).rev() {
            let mut taken = rows.by_ref().take(end.saturating_sub(begin));
            lane.push_all(&mut taken, limits, applied, &mut self.memory);
            begin = begin.max(end);
        }
    }

    fn insert_late(&mut self, ts: Ts, mut value: V, limits: &Limits, applied: Seq) {
        let memory = &mut self.memory;
        let mut sought = [false; LANES];
        for index in 0..LANES {
            if self.lanes[index].tail() <= ts {
                self.lanes[index].push(ts, value, limits, applied, memory);
                return self.pass_by(sought);
            }
            if self.lanes[index].skips(1) {
                continue;
            }
            let later = self.lanes[index + 1..]
                .iter()
                .map(Lane::tail)
                .max()
                .unwrap_or(Ts::MIN);
            if later.max(self.late.max()) < ts {
                match self.lanes[index].insert_near(ts, value, limits, applied, memory) {
                    Ok(()) => return,
                    Err(back) => {
                        value = back;
                        sought[index] = true;
                    }
                }
            }
        }
        if self.late.max() <= ts {
            self.pass_by(sought);
        }
        let memory = &mut self.memory;
        self.late.push(ts, value, limits, applied, memory);
    }

    /// A row that found no place in these lanes is in order behind them.
    fn pass_by(&mut self, sought: [bool; LANES]) {
        let lanes = self.lanes.iter_mut().zip(sought);
        lanes
            .filter(|(_, sought)| *sought)
            .for_each(|(lane, _)| lane.pass_by());
    }

    /// Whether `settle` has anything to do.
    #[inline]
    pub fn is_unsettled(&self, limits: &Limits) -> bool {
        self.rows >= limits.memtable_rows
            || !self.memory.stale.is_empty()
            || self.late.is_unsettled()
    }

    /// Merges late runs after a write of `written` rows. May clone and drop values.
    #[inline]
    pub fn settle(
        &mut self,
        written: usize,
        limits: &Limits,
        cut: &Skyline,
        applied: Seq,
    ) -> Settled
    where
        V: Clone,
    {
        if !self.memory.stale.is_empty() {
            drop(self.take_stale());
        }
        let rows = &mut self.rows;
        let mut settled = self.late.settle(written, limits, cut, applied, rows);
        settled.is_full |= *rows >= limits.memtable_rows;
        settled
    }

    /// Copies that no longer show what the log holds.
    pub fn take_stale(&mut self) -> Vec<Arc<Segment<V>>> {
        mem::take(&mut self.memory.stale)
    }

    /// Takes the rows from one timestamp to another out of the parts that are not frozen.
    pub fn remove(&mut self, first: Ts, last: Ts) -> Vec<V> {
        let mut removed = Vec::new();
        for lane in &mut self.lanes {
            lane.remove(first, last, &mut removed, &mut self.memory);
        }
        self.late
            .remove(first, last, &mut removed, &mut self.memory);
        self.rows -= removed.len();
        removed
    }

    /// The memtable as it is now; later writes do not change it.
    pub fn view(&mut self, applied: Seq) -> Vec<List<V>>
    where
        V: Clone,
    {
        let memory = &mut self.memory;
        let mut lists = Vec::with_capacity(LANES + 1 + self.late.runs().len());
        let lanes = self.lanes.iter_mut();
        lists.extend(lanes.filter_map(|lane| lane.view(applied, memory)));
        self.late.view(applied, &mut lists, memory);
        lists
    }

    /// Whether a delete hides rows of a part that is frozen.
    pub fn hides_any(&self, piece: &Piece) -> bool {
        let lanes = self.lanes.iter().filter_map(Lane::frozen).map(Run::from);
        let mut runs = lanes.chain(self.late.runs().iter().map(Run::from));
        runs.any(|run| run.rows_under_all(piece) > 0)
    }

    pub fn check(&self, last: Seq) -> Result<(), Broken> {
        let mut rows = self.late.head().len();
        for (number, lane) in self.lanes.iter().enumerate() {
            let (name, open) = (format!("lane {number}"), lane.open());
            let mut before = Ts::MIN;
            if let Some(frozen) = lane.frozen() {
                frozen.check(&name, last)?;
                before = frozen.last().map_or(before, |chunk| chunk.max());
                rows += frozen.rows();
            }
            rows += open.len();
            let timestamps = [before].into_iter().chain(open.ts.iter().copied());
            let is_in_order = lane.frozen().is_none_or(Segments::is_in_order)
                && timestamps.chain([lane.tail()]).is_sorted();
            Broken::unless(is_in_order, || {
                format!("{name}: order of chunks, rows and tail")
            })?;
            let is_even = open.ts.len() == open.values.len();
            Broken::unless(is_even, || format!("{name}: columns differ"))?;
        }
        for run in self.late.runs() {
            run.check("late run", last)?;
            rows += run.rows();
        }
        let runs = self.late.runs().iter().map(|run| run.max());
        let latest = runs.chain(self.late.head().iter().map(|row| row.0)).max();
        Broken::unless(latest <= Some(self.late.max()), || {
            "late row after the latest".into()
        })?;
        Broken::unless(rows == self.rows, || {
            format!("memtable: {rows} rows, counted {}", self.rows)
        })
    }
}
