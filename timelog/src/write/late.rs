//! Rows too late for every lane.

use std::sync::Arc;

use super::lane::{MOVED_ROWS, Memory};
use crate::column::Columns;
use crate::config::Limits;
use crate::list::List;
use crate::read::{Cursor, Merge, Place, Run};
use crate::segment::{Copied, Segment};
use crate::tombstones::Skyline;
use crate::work::{self, Work};
use crate::{Seq, Ts};

/// As many runs that are too long for an append to merge make the memtable full.
const RUNS: usize = 16;

/// What the end of a write found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    /// Whether the memtable is to be sealed.
    pub is_full: bool,
    /// Where hidden rows were dropped, if any: from one timestamp to another, both inside.
    pub dropped: Option<(Ts, Ts)>,
}

/// An unsorted head and sorted runs by age, which merge by the logarithmic method (Bentley and
/// Saxe, 1980).
#[derive(Debug)]
pub(super) struct Late<V> {
    runs: Vec<Arc<Segment<V>>>,
    /// How many runs there were when no pair of them was to be merged.
    settled: usize,
    /// In the order of arrival; deletes are applied to it at once.
    head: Vec<(Ts, V)>,
    /// Of the head.
    copy: Copied<V>,
    /// The greatest timestamp ever taken, or the least there is.
    max: Ts,
}

impl<V> Late<V> {
    pub fn new() -> Self {
        Self {
            runs: Vec::new(),
            settled: 0,
            head: Vec::new(),
            copy: Copied::new(),
            max: Ts::MIN,
        }
    }

    pub fn max(&self) -> Ts {
        self.max
    }

    pub fn push(
        &mut self,
        ts: Ts,
        value: V,
        limits: &Limits,
        applied: Seq,
        memory: &mut Memory<V>,
    ) {
        self.head.push((ts, value));
        self.max = self.max.max(ts);
        if self.head.len() >= limits.late_head_rows {
            self.freeze(applied, memory);
        }
    }

    /// Makes the head a run. Values are moved, never cloned: this happens in the middle of a batch.
    pub fn freeze(&mut self, applied: Seq, memory: &mut Memory<V>) {
        if !self.head.is_empty() {
            memory.stale.extend(self.copy.take());
            // Stable: equals stay in the order of arrival.
            self.head.sort_by_key(|row| row.0);
            let head = std::mem::take(&mut self.head);
            self.runs.push(Segment::of_page(head.into(), applied));
        }
    }

    /// Whether a run was added since the last time.
    #[inline]
    pub fn is_unsettled(&self) -> bool {
        self.runs.len() != self.settled
    }

    /// Merges runs after a write of `written` rows, and takes the rows that this drops off `rows`.
    /// `applied` is the last operation.
    ///
    /// Merges what an append may, or as many rows as were written: longer runs wait for the flush.
    pub fn settle(
        &mut self,
        written: usize,
        limits: &Limits,
        cut: &Skyline,
        applied: Seq,
        rows: &mut usize,
    ) -> Settled
    where
        V: Clone,
    {
        let mut dropped = None;
        if self.is_unsettled() {
            dropped = self.merge_pairs(written.max(limits.late_rows), cut, applied, rows);
            self.settled = self.runs.len();
        }
        Settled {
            is_full: self.settled >= RUNS,
            dropped,
        }
    }

    /// Gives the stretch of time, both ends inside, in which hidden rows were dropped.
    fn merge_pairs(
        &mut self,
        most: usize,
        cut: &Skyline,
        applied: Seq,
        rows: &mut usize,
    ) -> Option<(Ts, Ts)>
    where
        V: Clone,
    {
        let mut dropped: Option<(Ts, Ts)> = None;
        while let Some(index) = self.pair_to_merge(most) {
            let pair = &self.runs[index..index + 2];
            let before = pair[0].rows() + pair[1].rows();
            work::count(Work::Merged, before);
            let mut merged = Columns::with_capacity(before);
            if pair.iter().any(|run| run.hidden_rows(cut) > 0) {
                let mut merge = Merge::Empty;
                for run in pair {
                    merge.push(Cursor::resume(Run::from(run), cut, Place::default()));
                }
                while let Some(span) = merge.take_front() {
                    merged.push_span(span);
                }
            } else {
                merged.push_both(&pair[0].pages()[0], &pair[1].pages()[0]);
            }
            if merged.len() < before {
                *rows -= before - merged.len();
                for run in pair {
                    let (first, last) = dropped.unwrap_or((run.min(), run.max()));
                    dropped = Some((first.min(run.min()), last.max(run.max())));
                }
            }
            let merged = (!merged.is_empty()).then(|| Segment::of_page(merged, applied));
            // Dropped at the end: values that panic find everything in place.
            let _merged_runs: Vec<_> = self.runs.splice(index..index + 2, merged).collect();
        }
        dropped
    }

    /// The older of the newest two if they are of one size, or of the two shortest neighbours when
    /// there are too many; none if they have more than `most` rows.
    fn pair_to_merge(&self, most: usize) -> Option<usize> {
        let rows = |index: usize| self.runs[index].rows() + self.runs[index + 1].rows();
        let index = if self.runs.len() >= RUNS {
            (0..self.runs.len() - 1).min_by_key(|index| rows(*index))?
        } else {
            let index = self.runs.len().checked_sub(2)?;
            let is_same_size = self.runs[index].rows() < 2 * self.runs[index + 1].rows();
            is_same_size.then_some(index)?
        };
        (rows(index) <= most).then_some(index)
    }

    /// The late rows as they are now.
    pub fn view(&mut self, applied: Seq, lists: &mut Vec<List<V>>, memory: &mut Memory<V>)
    where
        V: Clone,
    {
        if self.head.len() >= MOVED_ROWS {
            self.freeze(applied, memory);
        }
        let head = &self.head;
        let copy = || {
            let mut head = head.clone();
            head.sort_by_key(|row| row.0);
            head.into()
        };
        let copy = self.copy.get(head.len(), copy, applied);
        lists.extend(self.runs.iter().cloned().chain(copy).map(List::one));
    }

    /// The late rows with everything frozen. Clones and drops no value.
    pub fn seal(mut self, applied: Seq, lists: &mut Vec<List<V>>, memory: &mut Memory<V>) {
        self.freeze(applied, memory);
        memory.stale.extend(self.copy.take());
        lists.extend(self.runs.into_iter().map(List::one));
    }

    pub fn remove(&mut self, first: Ts, last: Ts, removed: &mut Vec<V>, memory: &mut Memory<V>) {
        let hidden = self
            .head
            .extract_if(.., |row| first <= row.0 && row.0 <= last);
        let before = removed.len();
        removed.extend(hidden.map(|row| row.1));
        if removed.len() > before {
            memory.stale.extend(self.copy.take());
        }
    }

    pub fn runs(&self) -> &[Arc<Segment<V>>] {
        &self.runs
    }

    pub fn head(&self) -> &[(Ts, V)] {
        &self.head
    }
}
