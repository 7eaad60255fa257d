//! A lane: an ordered run of the memtable that is still growing.

use std::iter::Take;
use std::mem;
use std::sync::Arc;
use std::vec::IntoIter;

use crate::column::Columns;
use crate::config::Limits;
use crate::list::List;
use crate::segment::{Copied, Segment};
use crate::segments::Segments;
use crate::work::{self, Work};
use crate::{Seq, Ts};

/// Rows this near to the end of an open chunk are placed by moving those behind them.
pub(super) const NEAR_ROWS: usize = 64;
/// As many rows stay open when a chunk is frozen.
const KEPT_ROWS: usize = 32;
/// A snapshot moves open parts of at least so many rows, and copies smaller ones.
pub(super) const MOVED_ROWS: usize = 64;
/// The rows that a lane has memory for at first. It doubles until it is that of a whole chunk, so
/// that a log of few rows takes little.
const FIRST_ROWS: usize = 8;
/// After so many rows in sequence that a lane did not take at its end, it is not tried for some
/// rows: rows from the future lie there, and all that follow would have to seek a place before
/// them.
const PASSED_BY: u32 = 8;
/// For how many rows it is not tried then. Doubles up to the second one.
const SKIPPED: (u32, u32) = (64, 4_096);

/// What the parts of a memtable share.
#[derive(Debug)]
pub(super) struct Memory<V> {
    /// The memory of the next open chunk, if a step has made it ready.
    pub spare: Columns<V>,
    /// Copies that no longer show what the log holds, to be dropped when the write is in, since a
    /// value's drop may panic.
    pub stale: Vec<Arc<Segment<V>>>,
}

/// Frozen chunks, and an open one that deletes are applied to at once.
#[derive(Debug)]
pub(super) struct Lane<V> {
    /// `None` while there is none: a lane that takes no row asks for no memory.
    frozen: Option<Arc<Segments<V>>>,
    open: Columns<V>,
    /// Of the open chunk.
    copy: Copied<V>,
    /// Rows that passed by the end since the last one that was appended, and for how many more no
    /// place is sought.
    passed_by: u32,
    skips: u32,
    /// The greatest timestamp ever taken, or the least there is; never goes down, also not by
    /// deletes, since equal rows must go on to take the same way.
    tail: Ts,
}

impl<V> Lane<V> {
    pub const fn new(open: Columns<V>) -> Self {
        Self {
            frozen: None,
            open,
            copy: Copied::new(),
            passed_by: 0,
            skips: 0,
            tail: Ts::MIN,
        }
    }

    #[inline]
    pub fn tail(&self) -> Ts {
        self.tail
    }

    /// Appends a row that is not before the tail. `applied` is the last operation before the
    /// current write.
    #[inline]
    pub fn push(
        &mut self,
        ts: Ts,
        value: V,
        limits: &Limits,
        applied: Seq,
        memory: &mut Memory<V>,
    ) {
        if self.open.len() >= limits.chunk_rows || self.open.is_full() {
            self.make_space(limits, applied, memory);
        }
        self.push_into_space(ts, value);
    }

    /// The rows that the open chunk still takes without more memory.
    pub fn space(&self, limits: &Limits) -> usize {
        self.open
            .ts
            .capacity()
            .min(limits.chunk_rows)
            .saturating_sub(self.open.len())
    }

    /// As `push`, of one of the rows that there is space for.
    #[inline]
    pub fn push_into_space(&mut self, ts: Ts, value: V) {
        debug_assert!(self.tail <= ts, "a lane is in order");
        self.open.ts.push(ts);
        self.open.values.push(value);
        self.tail = ts;
        self.passed_by = 0;
    }

    /// As `push`, of many rows in order.
    pub fn push_all(
        &mut self,
        rows: &mut Take<&mut IntoIter<(Ts, V)>>,
        limits: &Limits,
        applied: Seq,
        memory: &mut Memory<V>,
    ) {
        if rows.len() == 0 {
            return;
        }
        while rows.len() > 0 {
            if self.open.len() >= limits.chunk_rows {
                self.next_chunk(limits, applied, memory);
            }
            let count = rows.len().min(limits.chunk_rows - self.open.len());
            self.open.extend(rows.by_ref().take(count));
        }
        let last = self.open.ts[self.open.len() - 1];
        debug_assert!(self.tail <= last, "a lane is in order");
        self.tail = last;
        self.passed_by = 0;
    }

    /// Grows the open chunk to twice its size, or begins another one.
    #[cold]
    fn make_space(&mut self, limits: &Limits, applied: Seq, memory: &mut Memory<V>) {
        let rows = self.open.len();
        if rows >= limits.chunk_rows {
            self.next_chunk(limits, applied, memory);
        } else {
            let is_first = self.frozen.is_none();
            let wanted = if is_first {
                (2 * rows).max(FIRST_ROWS)
            } else {
                limits.chunk_rows
            };
            self.open.reserve(wanted.min(limits.chunk_rows) - rows);
        }
    }

    /// Freezes the open chunk but for its last rows, so that slightly late ones still find their
    /// places: each that does not takes another lane, and the flush then merges and copies chunks
    /// that it would share.
    #[cold]
    fn next_chunk(&mut self, limits: &Limits, applied: Seq, memory: &mut Memory<V>) {
        let mut next = mem::replace(&mut memory.spare, Columns::new());
        if next.ts.capacity() == 0 {
            next = Columns::with_capacity(limits.chunk_rows);
        }
        let kept = KEPT_ROWS.min(limits.chunk_rows / 16);
        if let Some(start) = self.open.len().checked_sub(kept) {
            next.ts.extend(self.open.ts.drain(start..));
            next.values.extend(self.open.values.drain(start..));
        }
        self.freeze(applied, memory);
        self.open = next;
    }

    /// Whether no place is sought here for a late row now. Counts it as one that was not.
    #[inline]
    pub fn skips(&mut self, rows: usize) -> bool {
        let skips = self.skips > 0;
        self.skips = self.skips.saturating_sub(rows as u32);
        skips
    }

    /// A row that is in order was placed before the end, or found no place here.
    pub fn pass_by(&mut self) {
        self.passed_by += 1;
        if let Some(times) = self.passed_by.checked_sub(PASSED_BY) {
            self.skips = SKIPPED.1.min(SKIPPED.0 << times.min(16));
        }
    }

    /// Places a row after its equals, or gives the value back if that is not near the end of the
    /// open chunk.
    pub fn insert_near(
        &mut self,
        ts: Ts,
        value: V,
        limits: &Limits,
        applied: Seq,
        memory: &mut Memory<V>,
    ) -> Result<(), V> {
        if self.open.len() >= limits.chunk_rows {
            self.next_chunk(limits, applied, memory);
        }
        let rows = self.open.len();
        if rows == 0 {
            return Err(value);
        }
        // From the end: most late rows are late by a few.
        let start = rows.saturating_sub(NEAR_ROWS);
        let later = self.open.ts[start..].iter().rev();
        let place = rows - later.take_while(|other| **other > ts).count();
        work::count(Work::Compared, rows - place);
        let follows = match place.checked_sub(1) {
            Some(before) if place == start => self.open.ts[before] <= ts,
            Some(_) => true,
            None => self.frozen_max().is_none_or(|max| max <= ts),
        };
        if !follows {
            return Err(value);
        }
        self.pass_by();
        memory.stale.extend(self.copy.take());
        insert_at(&mut self.open.ts, place, ts);
        insert_at(&mut self.open.values, place, value);
        Ok(())
    }

    fn frozen_max(&self) -> Option<Ts> {
        Some(self.frozen.as_ref()?.last()?.max())
    }

    /// Makes the open chunk a frozen one.
    pub fn freeze(&mut self, applied: Seq, memory: &mut Memory<V>) {
        if !self.open.is_empty() {
            memory.stale.extend(self.copy.take());
            let mut chunk = mem::replace(&mut self.open, Columns::new());
            chunk.trim();
            let frozen = self.frozen.get_or_insert_default();
            Arc::make_mut(frozen).push(Segment::of_page(chunk, applied));
        }
    }

    /// The lane as it is now; later writes do not change it.
    pub fn view(&mut self, applied: Seq, memory: &mut Memory<V>) -> Option<List<V>>
    where
        V: Clone,
    {
        if self.open.len() >= MOVED_ROWS {
            self.freeze(applied, memory);
        }
        let open = self.copy.follow(&self.open, applied);
        let is_empty = self.frozen.is_none() && open.is_none();
        (!is_empty).then(|| List {
            body: self.frozen.clone(),
            tail: open,
        })
    }

    /// The lane with everything frozen. Clones and drops no value.
    pub fn seal(mut self, applied: Seq, memory: &mut Memory<V>) -> Option<List<V>> {
        self.freeze(applied, memory);
        memory.stale.extend(self.copy.take());
        self.frozen.map(|frozen| List {
            body: Some(frozen),
            tail: None,
        })
    }

    /// Takes the open rows from one timestamp to another out.
    pub fn remove(&mut self, first: Ts, last: Ts, removed: &mut Vec<V>, memory: &mut Memory<V>) {
        let start = self.open.ts.partition_point(|ts| *ts < first);
        let end = self.open.ts.partition_point(|ts| *ts <= last);
        if start < end {
            memory.stale.extend(self.copy.take());
            removed.extend(self.open.values.drain(start..end));
            self.open.ts.drain(start..end);
        }
    }

    pub fn frozen(&self) -> Option<&Segments<V>> {
        self.frozen.as_deref()
    }

    pub fn open(&self) -> &Columns<V> {
        &self.open
    }
}

/// Rows that are moved one by one: loading several at once that were only just stored would wait
/// for the stores.
const FEW_ROWS: usize = 8;

#[inline]
fn insert_at<T>(column: &mut Vec<T>, place: usize, value: T) {
    let end = column.len();
    if end - place > FEW_ROWS {
        return column.insert(place, value);
    }
    column.push(value);
    for row in (place..end).rev() {
        column.swap(row, row + 1);
    }
}
