//! A segment: sorted pages with fences, row counts and a watermark.

use std::sync::Arc;

use crate::column::{Columns, Span};
use crate::search::{MARK_ROWS, Marked, count_while};
use crate::tombstones::Skyline;
use crate::{Broken, Seq, Ts};

/// Rows in time order in pages. Never changed; shared by versions and snapshots.
///
/// A chunk of the memtable that no longer changes is a segment of one page.
#[derive(Debug)]
pub(crate) struct Segment<V> {
    pages: Pages<V>,
    rows: usize,
    min: Ts,
    max: Ts,
    /// Deletes up to this one are applied or older than every row; only newer ones hide rows here.
    watermark: Seq,
}

/// Pages and what is needed to find rows in them. None is empty.
#[derive(Debug)]
enum Pages<V> {
    /// Without a directory: a snapshot makes some of these for every write before it.
    One(Arc<Columns<V>>),
    Many {
        pages: Vec<Arc<Columns<V>>>,
        /// The first timestamp of each page.
        fences: Vec<Ts>,
        /// What lies before each page, and at the end everything.
        starts: Vec<Start>,
        /// Every so manieth timestamp of each page, the first one included: a search in a page
        /// would miss the cache at almost every step, and these fit into it.
        marks: Vec<Ts>,
    },
}

/// Rows and marks before a page.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    rows: usize,
    marks: usize,
}

impl<V> Segment<V> {
    /// # Panics
    /// If there is no page, or an empty one.
    pub fn new(mut pages: Vec<Arc<Columns<V>>>, watermark: Seq) -> Self {
        let (first, last) = (&pages[0], &pages[pages.len() - 1]);
        let (min, max) = (first.ts[0], last.ts[last.len() - 1]);
        let rows = pages.iter().map(|page| page.len()).sum();
        let pages = if pages.len() == 1 {
            Pages::One(pages.remove(0))
        } else {
            let mut starts = vec![Start::default()];
            let mut marks = Vec::new();
            for page in &pages {
                marks.extend(page.ts.iter().step_by(MARK_ROWS));
                starts.push(Start {
                    rows: starts[starts.len() - 1].rows + page.len(),
                    marks: marks.len(),
                });
            }
            Pages::Many {
                fences: pages.iter().map(|page| page.ts[0]).collect(),
                pages,
                starts,
                marks,
            }
        };
        Self::of(pages, rows, min, max, watermark)
    }

    /// # Panics
    /// If the page is empty.
    pub fn of_page(page: Columns<V>, watermark: Seq) -> Arc<Self> {
        let (rows, min, max) = (page.len(), page.ts[0], page.ts[page.len() - 1]);
        let pages = Pages::One(Arc::new(page));
        Arc::new(Self::of(pages, rows, min, max, watermark))
    }

    /// Adds rows that are not before the others, if the only page is this segment's alone.
    ///
    /// If a clone panics, the columns differ in length: the owner drops the segment.
    fn grow(&mut self, span: Span<'_, V>, watermark: Seq) -> bool
    where
        V: Clone,
    {
        let Pages::One(page) = &mut self.pages else {
            return false;
        };
        let Some(page) = Arc::get_mut(page) else {
            return false;
        };
        page.push_span(span);
        self.rows = page.len();
        self.max = span.last();
        self.watermark = watermark;
        true
    }

    fn of(pages: Pages<V>, rows: usize, min: Ts, max: Ts, watermark: Seq) -> Self {
        Self {
            pages,
            rows,
            min,
            max,
            watermark,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn min(&self) -> Ts {
        self.min
    }

    pub fn max(&self) -> Ts {
        self.max
    }

    pub fn watermark(&self) -> Seq {
        self.watermark
    }

    #[inline]
    pub fn pages(&self) -> &[Arc<Columns<V>>] {
        match &self.pages {
            Pages::One(page) => std::slice::from_ref(page),
            Pages::Many { pages, .. } => pages,
        }
    }

    /// The timestamps of a page.
    #[inline]
    pub fn marked(&self, page: usize) -> Marked<'_> {
        match &self.pages {
            Pages::One(page) => Marked {
                ts: &page.ts,
                marks: &[],
            },
            Pages::Many {
                pages,
                starts,
                marks,
                ..
            } => Marked {
                ts: &pages[page].ts,
                marks: &marks[starts[page].marks..starts[page + 1].marks],
            },
        }
    }

    #[inline]
    fn fences(&self) -> &[Ts] {
        match &self.pages {
            Pages::One(_) => std::slice::from_ref(&self.min),
            Pages::Many { fences, .. } => fences,
        }
    }

    /// Whether a timestamp may be in both; touching at one is enough.
    pub fn overlaps(&self, first: Ts, last: Ts) -> bool {
        self.min() <= last && first <= self.max
    }

    /// Whether the first row after `ts`, which is not before this page, is in this page or begins
    /// the next.
    pub fn page_ends_after(&self, page: usize, ts: Ts) -> bool {
        ts < self.fences().get(page + 1).copied().unwrap_or(self.max)
    }

    /// Page and row of the first row at or after `ts`; past the end, the number of pages and 0.
    pub fn lower(&self, ts: Ts) -> (usize, usize) {
        self.place(|other| other < ts)
    }

    /// Page and row of the first row after `ts`.
    pub fn upper(&self, ts: Ts) -> (usize, usize) {
        self.place(|other| other <= ts)
    }

    #[inline]
    fn place(&self, is_before: impl Fn(Ts) -> bool + Copy) -> (usize, usize) {
        let (fences, pages, starts, marks) = match &self.pages {
            Pages::One(page) => {
                let row = count_while(&page.ts, is_before);
                return if row == page.len() { (1, 0) } else { (0, row) };
            }
            Pages::Many {
                pages,
                fences,
                starts,
                marks,
            } => (fences, pages, starts, marks),
        };
        let page = count_while(fences, is_before);
        let Some(before) = page.checked_sub(1) else {
            return (0, 0);
        };
        let rows = &pages[before].ts;
        let marks = &marks[starts[before].marks..starts[page].marks];
        // The first mark is before: the fence is.
        let end = count_while(marks, is_before) * MARK_ROWS;
        let start = end - MARK_ROWS;
        let row = start + count_while(&rows[start..end.min(rows.len())], is_before);
        if row == rows.len() {
            (page, 0)
        } else {
            (before, row)
        }
    }

    /// The rows before a place.
    pub fn rank(&self, (page, row): (usize, usize)) -> usize {
        match &self.pages {
            Pages::One(_) => page * self.rows + row,
            Pages::Many { starts, .. } => starts[page].rows + row,
        }
    }

    /// The rows between two timestamps, both inside.
    pub fn rows_within(&self, first: Ts, last: Ts) -> usize {
        if !self.overlaps(first, last) {
            return 0;
        }
        if first <= self.min && self.max <= last {
            return self.rows();
        }
        self.rank(self.upper(last)) - self.rank(self.lower(first))
    }

    /// The rows from rank `from` to rank `to` that deletes hide, given the timestamps of the first
    /// and the last.
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
        let mut rows = 0;
        for (index, page) in self.pages().iter().enumerate() {
            Broken::unless(!page.is_empty(), || {
                format!("{name}: page {index} is empty")
            })?;
            Broken::unless(page.ts.len() == page.values.len(), || {
                format!("{name}: page {index}: columns differ")
            })?;
            Broken::unless(self.fences()[index] == page.ts[0], || {
                format!("{name}: fence of page {index}")
            })?;
            Broken::unless(self.rank((index, 0)) == rows, || {
                format!("{name}: rows before page {index}")
            })?;
            if let Pages::Many { starts, marks, .. } = &self.pages {
                let marks = &marks[starts[index].marks..starts[index + 1].marks];
                Broken::unless(marks.iter().eq(page.ts.iter().step_by(MARK_ROWS)), || {
                    format!("{name}: marks of page {index}")
                })?;
            }
            rows += page.len();
            Broken::unless(before <= page.ts[0] && page.ts.is_sorted(), || {
                format!("{name}: order in page {index}")
            })?;
            before = page.ts[page.len() - 1];
        }
        Broken::unless(rows == self.rows, || format!("{name}: row count"))?;
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

    /// Those that may have rows from one timestamp to another, both inside.
    pub fn within(&self, first: Ts, last: Ts) -> impl Iterator<Item = &Arc<Segment<V>>> {
        let body = self.body.as_ref().map_or(&[][..], |body| body);
        within(body, first, last).iter().chain(&self.tail)
    }

    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment<V>>> {
        self.body
            .iter()
            .flat_map(|body| body.iter())
            .chain(&self.tail)
    }
}

/// Of segments in time order those that may have rows from one timestamp to another, both inside.
pub(crate) fn within<V>(segments: &[Arc<Segment<V>>], first: Ts, last: Ts) -> &[Arc<Segment<V>>] {
    let start = segments.partition_point(|segment| segment.max() < first);
    let count = segments[start..].partition_point(|segment| segment.min() <= last);
    &segments[start..start + count]
}

/// The copy of a part that is still growing, as the last view has it: parts that did not change are
/// not copied again.
///
/// It is dropped when views are made and when the memtable is sealed, never in the middle of a
/// write, since that may panic with the values' drop.
#[derive(Debug)]
pub(crate) struct Copied<V> {
    segment: Option<Arc<Segment<V>>>,
    /// Whether rows were moved or removed since; added ones show in the number of rows.
    is_stale: bool,
}

impl<V> Copied<V> {
    pub const fn new() -> Self {
        Self {
            segment: None,
            is_stale: false,
        }
    }

    pub fn invalidate(&mut self) {
        self.is_stale = true;
    }

    pub fn forget(&mut self) {
        self.segment = None;
    }

    /// The copy of these rows. Those that were added since the last time are added to it, if no
    /// view holds it any more.
    pub fn follow(&mut self, rows: &Columns<V>, watermark: Seq) -> Option<Arc<Segment<V>>>
    where
        V: Clone,
    {
        let held = self.segment.as_ref().map_or(0, |segment| segment.rows());
        if !self.is_stale && (1..rows.len()).contains(&held) {
            // Dropped if a clone panics.
            let mut segment = self.segment.take()?;
            let added = rows.span(held..rows.len());
            let is_alone = Arc::get_mut(&mut segment);
            if is_alone.is_some_and(|segment| segment.grow(added, watermark)) {
                self.segment = Some(segment);
            }
        }
        let copy = || {
            let mut copy = Columns::with_capacity(rows.len());
            copy.push_span(rows.span(0..rows.len()));
            copy
        };
        self.get(rows.len(), copy, watermark)
    }

    /// The copy of so many rows, made if there is none of them.
    pub fn get(
        &mut self,
        rows: usize,
        copy: impl FnOnce() -> Columns<V>,
        watermark: Seq,
    ) -> Option<Arc<Segment<V>>> {
        let held = self.segment.as_ref().map_or(0, |segment| segment.rows());
        if self.is_stale || held != rows {
            let made = (rows > 0).then(|| Segment::of_page(copy(), watermark));
            self.is_stale = false;
            self.segment = made;
        }
        self.segment.clone()
    }
}
