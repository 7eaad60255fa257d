//! Rows from files that were in order there: they become segments as they are.

use std::sync::Arc;

use super::core::Core;
use crate::column::Columns;
use crate::segment::{Directory, Segment};
use crate::{MemLog, Seq, Ts};

/// Pages in time order that are to become a segment.
#[derive(Debug)]
pub(crate) struct Bulk<V> {
    pages: Directory<V>,
    rows: usize,
    last: Ts,
}

impl<V> Default for Bulk<V> {
    fn default() -> Self {
        Self {
            pages: Directory::new(),
            rows: 0,
            last: Ts::MIN,
        }
    }
}

impl<V> Core<V> {
    /// Whether a segment that begins with `first` may follow those of L1: nothing else has rows, as
    /// in a log that is read from files in their order.
    fn takes_segment(&self, first: Ts) -> bool {
        self.unflushed_rows() == 0
            && self.version.l0.is_empty()
            && self.flush.is_none()
            && self.compaction.is_none()
            && self.floor.is_none_or(|floor| floor <= first)
            && self.version.l1.last().is_none_or(|it| it.max() <= first)
    }
}

impl<V> MemLog<V> {
    /// The rows of a page.
    pub(crate) fn page_rows(&mut self) -> usize {
        self.state.access().limits.page_rows
    }

    /// Takes rows as a page of `bulk`, if they are as many as a page should have, in order, and after
    /// all that is there; else it gives them back. They are part of the log after
    /// [`add_segment`](Self::add_segment).
    pub(crate) fn add_page(
        &mut self,
        bulk: &mut Bulk<V>,
        ts: Vec<Ts>,
        values: Vec<V>,
    ) -> Result<(), (Vec<Ts>, Vec<V>)> {
        let core = self.state.access();
        let page_rows = core.limits.page_rows;
        let is_page = !ts.is_empty() && (page_rows / 2..=page_rows).contains(&ts.len());
        if !is_page || ts[0] < bulk.last || !ts.is_sorted() || !core.takes_segment(ts[0]) {
            return Err((ts, values));
        }
        bulk.rows += ts.len();
        bulk.last = ts[ts.len() - 1];
        bulk.pages.push(Arc::new(Columns { ts, values }));
        let is_full = bulk.rows >= core.limits.memtable_rows;
        drop(core);
        if is_full {
            self.add_segment(bulk);
        }
        Ok(())
    }

    /// Makes a segment of the pages of `bulk`, which is empty then.
    pub(crate) fn add_segment(&mut self, bulk: &mut Bulk<V>) {
        let Bulk { pages, rows, .. } = std::mem::take(bulk);
        if rows == 0 {
            return;
        }
        let mut core = self.state.access();
        core.cached = None;
        core.seq = Seq(core.seq.0 + rows as u64);
        // No delete so far hides them.
        let segment = Arc::new(Segment::new(pages, core.seq));
        Arc::make_mut(&mut core.version).l1.push(segment);
    }
}
