//! A lane: an ordered run of the memtable that is still growing.

use std::sync::Arc;

use crate::column::Columns;
use crate::config::Limits;
use crate::segment::{List, Segment};
use crate::{Seq, Ts};

/// Rows this near to the end of an open chunk are placed by moving those behind them.
const NEAR_ROWS: usize = 64;
/// A snapshot moves open parts of at least so many rows, and copies smaller ones.
pub(super) const MOVED_ROWS: usize = 64;

/// Frozen chunks, and an open one that deletes are applied to at once.
#[derive(Debug)]
pub(super) struct Lane<V> {
    frozen: Arc<Vec<Arc<Segment<V>>>>,
    open: Columns<V>,
    /// The greatest timestamp ever taken, or the least there is; never goes down, also not by deletes, since equal
    /// rows must go on to take the same way.
    tail: Ts,
}

impl<V> Lane<V> {
    pub fn new() -> Self {
        Self {
            frozen: Arc::new(Vec::new()),
            open: Columns::new(),
            tail: Ts::MIN,
        }
    }

    #[inline]
    pub fn tail(&self) -> Ts {
        self.tail
    }

    /// Appends a row that is not before the tail. `applied` is the last operation before the current write.
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

    #[cold]
    fn next_chunk(&mut self, limits: &Limits, applied: Seq) {
        self.freeze(applied);
        self.open = Columns::with_capacity(limits.chunk_rows);
    }

    /// Places a row after its equals, or gives the value back if that is not near the end of the open chunk.
    pub fn insert_near(&mut self, ts: Ts, value: V, limits: &Limits) -> Result<(), V> {
        let rows = self.open.len();
        let place = self.open.ts.partition_point(|other| *other <= ts);
        let follows_frozen = || self.frozen.last().is_none_or(|chunk| chunk.max() <= ts);
        if rows == 0
            || rows >= limits.chunk_rows
            || rows - place > NEAR_ROWS
            || (place == 0 && !follows_frozen())
        {
            return Err(value);
        }
        self.open.ts.insert(place, ts);
        self.open.values.insert(place, value);
        Ok(())
    }

    /// Makes the open chunk a frozen one.
    pub fn freeze(&mut self, applied: Seq) {
        if !self.open.is_empty() {
            let mut chunk = std::mem::replace(&mut self.open, Columns::new());
            chunk.trim();
            Arc::make_mut(&mut self.frozen).push(Segment::of_page(chunk, applied));
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
        let open = (!self.open.is_empty()).then(|| {
            let mut copy = Columns::with_capacity(self.open.len());
            copy.push_span(self.open.span(0..self.open.len()));
            Segment::of_page(copy, applied)
        });
        let is_empty = self.frozen.is_empty() && open.is_none();
        (!is_empty).then(|| List {
            body: Some(Arc::clone(&self.frozen)),
            tail: open,
        })
    }

    /// The lane with everything frozen.
    pub fn seal(mut self, applied: Seq) -> Option<List<V>> {
        self.freeze(applied);
        (!self.frozen.is_empty()).then_some(List {
            body: Some(self.frozen),
            tail: None,
        })
    }

    /// Takes the open rows from one timestamp to another out.
    pub fn remove(&mut self, first: Ts, last: Ts, removed: &mut Vec<V>) {
        let start = self.open.ts.partition_point(|ts| *ts < first);
        let end = self.open.ts.partition_point(|ts| *ts <= last);
        if start < end {
            removed.extend(self.open.values.drain(start..end));
            self.open.ts.drain(start..end);
        }
    }

    pub fn frozen(&self) -> &[Arc<Segment<V>>] {
        &self.frozen
    }

    pub fn open(&self) -> &Columns<V> {
        &self.open
    }
}
