//! A lane: an ordered run of the memtable that is still growing.

use std::mem;
use std::sync::Arc;
use std::vec::IntoIter;

use crate::column::Columns;
use crate::config::Limits;
use crate::segment::{Copied, List, Segment};
use crate::{Seq, Ts};

/// Rows this near to the end of an open chunk are placed by moving those behind them.
pub(super) const NEAR_ROWS: usize = 64;
/// As many rows stay open when a chunk is frozen.
const KEPT_ROWS: usize = 32;
/// A snapshot moves open parts of at least so many rows, and copies smaller ones.
pub(super) const MOVED_ROWS: usize = 64;

/// Frozen chunks, and an open one that deletes are applied to at once.
#[derive(Debug)]
pub(super) struct Lane<V> {
    /// `None` while there is none: a lane that takes no row asks for no memory.
    frozen: Option<Arc<Vec<Arc<Segment<V>>>>>,
    open: Columns<V>,
    /// The memory of the next open chunk, if a step has made it ready.
    spare: Columns<V>,
    /// Of the open chunk.
    copy: Copied<V>,
    /// The greatest timestamp ever taken, or the least there is; never goes down, also not by
    /// deletes, since equal rows must go on to take the same way.
    tail: Ts,
}

impl<V> Lane<V> {
    pub fn new(spare: Columns<V>) -> Self {
        Self {
            frozen: None,
            open: Columns::new(),
            spare,
            copy: Copied::new(),
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
    pub fn push(&mut self, ts: Ts, value: V, limits: &Limits, applied: Seq) {
        debug_assert!(self.tail <= ts, "a lane is in order");
        if self.open.len() >= limits.chunk_rows || self.open.ts.capacity() == 0 {
            self.next_chunk(limits, applied);
        }
        self.open.ts.push(ts);
        self.open.values.push(value);
        self.tail = ts;
    }

    /// As `push`, of many rows in order.
    pub fn push_all(&mut self, mut rows: IntoIter<(Ts, V)>, limits: &Limits, applied: Seq) {
        if rows.len() == 0 {
            return;
        }
        while rows.len() > 0 {
            if self.open.len() >= limits.chunk_rows || self.open.ts.capacity() == 0 {
                self.next_chunk(limits, applied);
            }
            let room = limits.chunk_rows - self.open.len();
            self.open.extend(rows.by_ref().take(room));
        }
        let last = self.open.ts[self.open.len() - 1];
        debug_assert!(self.tail <= last, "a lane is in order");
        self.tail = last;
    }

    /// Freezes the open chunk but for its last rows, so that slightly late ones still find their
    /// places: each that does not takes another lane, and the flush then merges and copies chunks
    /// that it would share.
    #[cold]
    fn next_chunk(&mut self, limits: &Limits, applied: Seq) {
        let mut next = self.take_spare();
        if next.ts.capacity() == 0 {
            next = Columns::with_capacity(limits.chunk_rows);
        }
        let kept = KEPT_ROWS.min(limits.chunk_rows / 16);
        if let Some(start) = self.open.len().checked_sub(kept) {
            next.ts.extend(self.open.ts.drain(start..));
            next.values.extend(self.open.values.drain(start..));
        }
        self.freeze(applied);
        self.open = next;
    }

    /// Makes the memory of the next chunk ready, so that the append that begins it waits neither
    /// for the allocator nor, row after row, for the kernel.
    pub fn prepare(&mut self, limits: &Limits) {
        if self.spare.ts.capacity() == 0 && !self.open.is_empty() {
            self.spare = Columns::touched(limits.chunk_rows);
        }
    }

    pub fn take_spare(&mut self) -> Columns<V> {
        mem::replace(&mut self.spare, Columns::new())
    }

    /// Places a row after its equals, or gives the value back if that is not near the end of the
    /// open chunk.
    pub fn insert_near(
        &mut self,
        ts: Ts,
        value: V,
        limits: &Limits,
        applied: Seq,
    ) -> Result<(), V> {
        if self.open.len() >= limits.chunk_rows {
            self.next_chunk(limits, applied);
        }
        let rows = self.open.len();
        if rows == 0 {
            return Err(value);
        }
        // From the end: most late rows are late by a few.
        let start = rows.saturating_sub(NEAR_ROWS);
        let later = self.open.ts[start..].iter().rev();
        let place = rows - later.take_while(|other| **other > ts).count();
        let follows = match place.checked_sub(1) {
            Some(before) if place == start => self.open.ts[before] <= ts,
            Some(_) => true,
            None => self.frozen().last().is_none_or(|chunk| chunk.max() <= ts),
        };
        if !follows {
            return Err(value);
        }
        self.copy.invalidate();
        insert_at(&mut self.open.ts, place, ts);
        insert_at(&mut self.open.values, place, value);
        Ok(())
    }

    /// Makes the open chunk a frozen one.
    pub fn freeze(&mut self, applied: Seq) {
        if !self.open.is_empty() {
            self.copy.invalidate();
            let mut chunk = mem::replace(&mut self.open, Columns::new());
            chunk.trim();
            let frozen = self.frozen.get_or_insert_default();
            Arc::make_mut(frozen).push(Segment::of_page(chunk, applied));
        }
    }

    /// The lane as it is now; later writes do not change it.
    pub fn view(&mut self, applied: Seq) -> Option<List<V>>
    where
        V: Clone,
    {
        if self.open.len() >= MOVED_ROWS {
            self.freeze(applied);
        }
        let open = self.copy.follow(&self.open, applied);
        let is_empty = self.frozen.is_none() && open.is_none();
        (!is_empty).then(|| List {
            body: self.frozen.clone(),
            tail: open,
        })
    }

    /// Drops what the last view has copied.
    pub fn forget_copy(&mut self) {
        self.copy.forget();
    }

    /// The lane with everything frozen. Its copy must be forgotten.
    pub fn seal(mut self, applied: Seq) -> Option<List<V>> {
        self.freeze(applied);
        self.frozen.map(|frozen| List {
            body: Some(frozen),
            tail: None,
        })
    }

    /// Takes the open rows from one timestamp to another out.
    pub fn remove(&mut self, first: Ts, last: Ts, removed: &mut Vec<V>) {
        let start = self.open.ts.partition_point(|ts| *ts < first);
        let end = self.open.ts.partition_point(|ts| *ts <= last);
        if start < end {
            self.copy.invalidate();
            removed.extend(self.open.values.drain(start..end));
            self.open.ts.drain(start..end);
        }
    }

    pub fn frozen(&self) -> &[Arc<Segment<V>>] {
        self.frozen.as_ref().map_or(&[], |frozen| frozen)
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
