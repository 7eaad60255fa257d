//! Rows too late for every lane.

use std::sync::Arc;

use super::lane::MOVED_ROWS;
use crate::column::Columns;
use crate::config::Limits;
use crate::read::{Cursor, Merge, Place, Run};
use crate::segment::{Copied, List, Segment};
use crate::tombstones::Skyline;
use crate::{Seq, Ts};

/// As many runs make a write merge two of them, whatever their size.
const RUNS: usize = 16;

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

    pub fn push(&mut self, ts: Ts, value: V, limits: &Limits, applied: Seq) {
        self.head.push((ts, value));
        self.max = self.max.max(ts);
        if self.head.len() >= limits.late_head_rows {
            self.freeze(applied);
        }
    }

    /// Makes the head a run. Values are moved, never cloned: this happens in the middle of a batch.
    pub fn freeze(&mut self, applied: Seq) {
        if !self.head.is_empty() {
            self.copy.invalidate();
            // Stable: equals stay in the order of arrival.
            self.head.sort_by_key(|row| row.0);
            let head = std::mem::take(&mut self.head);
            self.runs.push(Segment::of_page(head.into(), applied));
        }
    }

    /// Merges runs after a write, and takes the rows that this drops off `rows`. `applied` is the
    /// last operation.
    #[inline]
    pub fn settle(&mut self, limits: &Limits, cut: &Skyline, applied: Seq, rows: &mut usize)
    where
        V: Clone,
    {
        if self.runs.len() != self.settled {
            self.merge_pairs(limits, cut, applied, rows);
            self.settled = self.runs.len();
        }
    }

    fn merge_pairs(&mut self, limits: &Limits, cut: &Skyline, applied: Seq, rows: &mut usize)
    where
        V: Clone,
    {
        while let Some(index) = self.pair_to_merge(limits) {
            let pair = &self.runs[index..index + 2];
            let before = pair[0].rows() + pair[1].rows();
            let mut merged = Columns::with_capacity(before);
            if pair.iter().any(|run| run.hidden_rows(cut) > 0) {
                let mut merge = Merge::Empty;
                for run in pair.chunks(1) {
                    merge.push(Cursor::resume(Run::from(run), cut, Place::default()));
                }
                while let Some(span) = merge.take_front() {
                    merged.push_span(span);
                }
            } else {
                merged.push_both(&pair[0].pages()[0], &pair[1].pages()[0]);
            }
            *rows -= before - merged.len();
            let merged = (!merged.is_empty()).then(|| Segment::of_page(merged, applied));
            // Dropped at the end: values that panic find everything in place.
            let _merged_runs: Vec<_> = self.runs.splice(index..index + 2, merged).collect();
        }
    }

    /// The older of two neighbours of one size that are small enough for a write, or of the two
    /// smallest when there are too many.
    fn pair_to_merge(&self, limits: &Limits) -> Option<usize> {
        let rows = |index: usize| self.runs[index].rows() + self.runs[index + 1].rows();
        if self.runs.len() >= RUNS {
            return (0..self.runs.len() - 1).min_by_key(|index| rows(*index));
        }
        let index = self.runs.len().checked_sub(2)?;
        let is_same_size = self.runs[index].rows() < 2 * self.runs[index + 1].rows();
        (is_same_size && rows(index) <= limits.late_rows).then_some(index)
    }

    /// The late rows as they are now.
    pub fn view(&mut self, applied: Seq, lists: &mut Vec<List<V>>)
    where
        V: Clone,
    {
        if self.head.len() >= MOVED_ROWS {
            self.freeze(applied);
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

    /// Drops what the last view has copied.
    pub fn forget_copy(&mut self) {
        self.copy.forget();
    }

    /// The late rows with everything frozen. Their copy must be forgotten.
    pub fn seal(mut self, applied: Seq, lists: &mut Vec<List<V>>) {
        self.freeze(applied);
        lists.extend(self.runs.into_iter().map(List::one));
    }

    pub fn remove(&mut self, first: Ts, last: Ts, removed: &mut Vec<V>) {
        let hidden = self
            .head
            .extract_if(.., |row| first <= row.0 && row.0 <= last);
        let before = removed.len();
        removed.extend(hidden.map(|row| row.1));
        if removed.len() > before {
            self.copy.invalidate();
        }
    }

    pub fn runs(&self) -> &[Arc<Segment<V>>] {
        &self.runs
    }

    pub fn head(&self) -> &[(Ts, V)] {
        &self.head
    }
}
