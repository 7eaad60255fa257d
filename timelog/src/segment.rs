//! A segment: sorted pages with fences, row counts and a watermark.

use std::sync::Arc;

use crate::column::Columns;
use crate::tombstones::Skyline;
use crate::{Broken, Seq, Ts};

/// Rows in time order in pages. Never changed; shared by versions and snapshots.
///
/// A chunk of the memtable that no longer changes is a segment of one page.
#[derive(Debug)]
pub(crate) struct Segment<V> {
    /// None of them is empty.
    pages: Vec<Arc<Columns<V>>>,
    /// The first timestamp of each page.
    fences: Vec<Ts>,
    /// The rows before each page, and at the end all rows.
    starts: Vec<usize>,
    max: Ts,
    /// Deletes up to this one are applied or older than every row; only newer ones hide rows here.
    watermark: Seq,
}

impl<V> Segment<V> {
    /// # Panics
    /// If there is no page, or an empty one.
    pub fn new(pages: Vec<Arc<Columns<V>>>, watermark: Seq) -> Self {
        let fences = pages.iter().map(|page| page.ts[0]).collect();
        let mut starts = Vec::with_capacity(pages.len() + 1);
        let mut rows = 0;
        starts.push(rows);
        for page in &pages {
            rows += page.len();
            starts.push(rows);
        }
        let last = pages.last().expect("a segment has pages");
        let max = last.ts[last.len() - 1];
        Self {
            pages,
            fences,
            starts,
            max,
            watermark,
        }
    }

    pub fn of_page(page: Columns<V>, watermark: Seq) -> Arc<Self> {
        Arc::new(Self::new(vec![Arc::new(page)], watermark))
    }

    pub fn rows(&self) -> usize {
        self.starts[self.pages.len()]
    }

    pub fn min(&self) -> Ts {
        self.fences[0]
    }

    pub fn max(&self) -> Ts {
        self.max
    }

    pub fn watermark(&self) -> Seq {
        self.watermark
    }

    pub fn pages(&self) -> &[Arc<Columns<V>>] {
        &self.pages
    }

    /// Whether a timestamp may be in both; touching at one is enough.
    pub fn overlaps(&self, first: Ts, last: Ts) -> bool {
        self.min() <= last && first <= self.max
    }

    /// Page and row of the first row at or after `ts`; past the end, the number of pages and 0.
    pub fn lower(&self, ts: Ts) -> (usize, usize) {
        self.place(self.fences.partition_point(|fence| *fence < ts), |t| t < ts)
    }

    /// Page and row of the first row after `ts`.
    pub fn upper(&self, ts: Ts) -> (usize, usize) {
        self.place(self.fences.partition_point(|fence| *fence <= ts), |t| {
            t <= ts
        })
    }

    fn place(&self, page: usize, is_before: impl Fn(Ts) -> bool) -> (usize, usize) {
        let Some(before) = page.checked_sub(1) else {
            return (0, 0);
        };
        let row = self.pages[before].ts.partition_point(|ts| is_before(*ts));
        if row == self.pages[before].len() {
            (page, 0)
        } else {
            (before, row)
        }
    }

    /// The rows before a place.
    pub fn rank(&self, (page, row): (usize, usize)) -> usize {
        self.starts[page] + row
    }

    /// The rows between two timestamps, both inside.
    pub fn rows_within(&self, first: Ts, last: Ts) -> usize {
        if !self.overlaps(first, last) {
            return 0;
        }
        if first <= self.min() && self.max <= last {
            return self.rows();
        }
        self.rank(self.upper(last)) - self.rank(self.lower(first))
    }

    /// The rows from rank `from` to rank `to` that deletes hide, given the timestamps of the first and the last.
    pub fn hidden(&self, cut: &Skyline, from: usize, to: usize, first: Ts, last: Ts) -> usize {
        let hiding = cut
            .between(first, last)
            .iter()
            .filter(|piece| piece.seq > self.watermark);
        let hidden = hiding.map(|piece| {
            let start = self.rank(self.lower(piece.first)).max(from);
            let end = self.rank(self.upper(piece.last)).min(to);
            end.saturating_sub(start)
        });
        hidden.sum()
    }

    /// All rows that deletes hide.
    pub fn hidden_rows(&self, cut: &Skyline) -> usize {
        self.hidden(cut, 0, self.rows(), self.min(), self.max)
    }

    pub fn check(&self, name: &str, last: Seq) -> Result<(), Broken> {
        let mut before = Ts::MIN;
        for (index, page) in self.pages.iter().enumerate() {
            Broken::unless(!page.is_empty(), || {
                format!("{name}: page {index} is empty")
            })?;
            Broken::unless(page.ts.len() == page.values.len(), || {
                format!("{name}: page {index}: columns differ")
            })?;
            Broken::unless(self.fences[index] == page.ts[0], || {
                format!("{name}: fence of page {index}")
            })?;
            Broken::unless(
                self.starts[index + 1] - self.starts[index] == page.len(),
                || format!("{name}: row count of page {index}"),
            )?;
            Broken::unless(before <= page.ts[0] && page.ts.is_sorted(), || {
                format!("{name}: order in page {index}")
            })?;
            before = page.ts[page.len() - 1];
        }
        Broken::unless(before == self.max, || format!("{name}: greatest timestamp"))?;
        Broken::unless(self.watermark <= last, || {
            format!("{name}: watermark {} above {last}", self.watermark)
        })
    }
}

/// Segments in time order that are read as one source: a lane, a late run, a level.
#[derive(Debug)]
pub(crate) struct List<V> {
    pub body: Option<Arc<Vec<Arc<Segment<V>>>>>,
    pub tail: Option<Arc<Segment<V>>>,
}

impl<V> Clone for List<V> {
    fn clone(&self) -> Self {
        Self {
            body: self.body.clone(),
            tail: self.tail.clone(),
        }
    }
}

impl<V> List<V> {
    pub fn one(segment: Arc<Segment<V>>) -> Self {
        Self {
            body: None,
            tail: Some(segment),
        }
    }

    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment<V>>> {
        self.body
            .iter()
            .flat_map(|body| body.iter())
            .chain(&self.tail)
    }
}
