//! A segment: sorted pages with fences, row counts and a watermark.

use std::sync::Arc;

use crate::column::{Columns, Span};
use crate::search::{MARK_ROWS, Marked, count_both, count_while};
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

/// None is empty.
#[derive(Debug)]
enum Pages<V> {
    /// Without a directory: a snapshot makes some of these for every write before it.
    One(Arc<Columns<V>>),
    Many(Directory<V>),
}

/// Pages, and what is needed to find rows in them.
#[derive(Debug)]
pub(crate) struct Directory<V> {
    pages: Vec<Arc<Columns<V>>>,
    /// The first timestamp of each page.
    fences: Vec<Ts>,
    /// What lies before each page, and at the end everything.
    starts: Vec<Start>,
    /// Every so manieth timestamp of each page, the first one included: a search in a page
    /// would miss the cache at almost every step, and these fit into it.
    marks: Vec<Ts>,
}

impl<V> Directory<V> {
    pub fn new() -> Self {
        Self {
            pages: Vec::new(),
            fences: Vec::new(),
            starts: vec![Start::default()],
            marks: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Adds a page that is not empty. Page by page, so that no step makes the directory of a whole
    /// segment at once.
    pub fn push(&mut self, page: Arc<Columns<V>>) {
        self.fences.push(page.ts[0]);
        self.marks.extend(page.ts.iter().step_by(MARK_ROWS));
        self.starts.push(Start {
            rows: self.starts[self.starts.len() - 1].rows + page.len(),
            marks: self.marks.len(),
        });
        self.pages.push(page);
    }

    fn rows(&self) -> usize {
        self.starts[self.pages.len()].rows
    }

    #[inline]
    fn marks_of(&self, page: usize) -> &[Ts] {
        &self.marks[self.starts[page].marks..self.starts[page + 1].marks]
    }
}

/// Rows and marks before a page.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    rows: usize,
    marks: usize,
}

impl<V> Segment<V> {
    /// # Panics
    /// If there is no page.
    pub fn new(mut directory: Directory<V>, watermark: Seq) -> Self {
        let pages = &directory.pages;
        let (first, last) = (&pages[0], &pages[pages.len() - 1]);
        let (min, max) = (first.ts[0], last.ts[last.len() - 1]);
        let rows = directory.rows();
        let pages = if pages.len() == 1 {
            Pages::One(directory.pages.remove(0))
        } else {
            Pages::Many(directory)
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
            Pages::Many(directory) => &directory.pages,
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
            Pages::Many(directory) => Marked {
                ts: &directory.pages[page].ts,
                marks: directory.marks_of(page),
            },
        }
    }

    #[inline]
    fn fences(&self) -> &[Ts] {
        match &self.pages {
            Pages::One(_) => std::slice::from_ref(&self.min),
            Pages::Many(directory) => &directory.fences,
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
        let directory = match &self.pages {
            Pages::One(page) => {
                let row = count_while(&page.ts, is_before);
                return if row == page.len() { (1, 0) } else { (0, row) };
            }
            Pages::Many(directory) => directory,
        };
        let page = count_while(&directory.fences, is_before);
        let Some(before) = page.checked_sub(1) else {
            return (0, 0);
        };
        let rows = &directory.pages[before].ts;
        let marks = directory.marks_of(before);
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

    /// How many rows are before `first`, and how many are not after `last`: both searched at once.
    #[inline]
    pub fn ranks(&self, first: Ts, last: Ts) -> (usize, usize) {
        let (is_before, is_within) = (|ts| ts < first, |ts| ts <= last);
        let directory = match &self.pages {
            Pages::One(page) => return count_both((&page.ts, is_before), (&page.ts, is_within)),
            Pages::Many(directory) => directory,
        };
        let fences = &directory.fences;
        let (a, b) = count_both((fences, is_before), (fences, is_within));
        // At or before the first row: there is no page to search.
        let (Some(a), Some(b)) = (a.checked_sub(1), b.checked_sub(1)) else {
            let upper = self.rank(self.upper(last));
            return (0, upper);
        };
        let (a_block, b_block) = count_both(
            (directory.marks_of(a), is_before),
            (directory.marks_of(b), is_within),
        );
        let rows = |page: usize, block: usize| {
            let start = (block - 1) * MARK_ROWS;
            let rows = &directory.pages[page].ts[start..];
            (
                directory.starts[page].rows + start,
                &rows[..rows.len().min(MARK_ROWS)],
            )
        };
        // The first mark is before: the fence is.
        let ((a_start, a), (b_start, b)) = (rows(a, a_block), rows(b, b_block));
        let (a, b) = count_both((a, is_before), (b, is_within));
        (a_start + a, b_start + b)
    }

    /// The rows before a place.
    pub fn rank(&self, (page, row): (usize, usize)) -> usize {
        match &self.pages {
            Pages::One(_) => page * self.rows + row,
            Pages::Many(directory) => directory.starts[page].rows + row,
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
        let (start, end) = self.ranks(first, last);
        end - start
    }

    /// All rows that deletes hide.
    pub fn hidden_rows(&self, cut: &Skyline) -> usize {
        let hiding = cut.between(self.min, self.max);
        let hiding = hiding.filter(|piece| piece.seq > self.watermark);
        hiding
            .map(|piece| self.rows_within(piece.first, piece.last))
            .sum()
    }

    /// The pages, if there is no other owner.
    pub fn into_pages(self: Arc<Self>) -> Vec<Arc<Columns<V>>> {
        match Arc::into_inner(self).map(|segment| segment.pages) {
            Some(Pages::One(page)) => vec![page],
            Some(Pages::Many(directory)) => directory.pages,
            None => Vec::new(),
        }
    }

    pub fn check(&self, name: &str, last: Seq) -> Result<(), Broken> {
        let mut before = Ts::MIN;
        let mut rows = 0;
        for (index, page) in self.pages().iter().enumerate() {
            let first = page.ts.first().copied();
            let marks = match &self.pages {
                Pages::One(_) => None,
                Pages::Many(directory) => Some(directory.marks_of(index)),
            };
            let is_marked = |marks: &[Ts]| marks.iter().eq(page.ts.iter().step_by(MARK_ROWS));
            for (holds, what) in [
                (!page.is_empty(), "no rows"),
                (page.ts.len() == page.values.len(), "columns differ"),
                (Some(self.fences()[index]) == first, "fence"),
                (self.rank((index, 0)) == rows, "rows before it"),
                (marks.is_none_or(is_marked), "marks"),
                (Some(before) <= first && page.ts.is_sorted(), "order"),
            ] {
                Broken::unless(holds, || format!("{name}: page {index}: {what}"))?;
            }
            rows += page.len();
            before = page.ts[page.len() - 1];
        }
        Broken::unless(rows == self.rows, || format!("{name}: row count"))?;
        Broken::unless(before == self.max, || format!("{name}: greatest timestamp"))?;
        Broken::unless(self.watermark <= last, || {
            format!("{name}: watermark {} above {last}", self.watermark)
        })
    }
}

/// The copy of a part that is still growing, as the last view has it: parts that did not change are
/// not copied again.
///
/// What is copied is given out when it no longer shows the rows: deleted values must not stay
/// alive in it. It is not dropped here, in the middle of a write, since a value's drop may panic.
#[derive(Debug)]
pub(crate) struct Copied<V>(Option<Arc<Segment<V>>>);

impl<V> Copied<V> {
    pub const fn new() -> Self {
        Self(None)
    }

    /// Takes the copy out: rows were moved or removed. Added ones show in the number of rows.
    #[must_use]
    pub fn take(&mut self) -> Option<Arc<Segment<V>>> {
        self.0.take()
    }

    fn rows(&self) -> usize {
        self.0.as_ref().map_or(0, |segment| segment.rows())
    }

    /// The copy of these rows. Those that were added since the last time are added to it, if no
    /// view holds it any more.
    pub fn follow(&mut self, rows: &Columns<V>, watermark: Seq) -> Option<Arc<Segment<V>>>
    where
        V: Clone,
    {
        let held = self.rows();
        if (1..rows.len()).contains(&held) {
            // Dropped if a clone panics.
            let mut segment = self.0.take()?;
            let added = rows.span(held..rows.len());
            let is_alone = Arc::get_mut(&mut segment);
            if is_alone.is_some_and(|segment| segment.grow(added, watermark)) {
                self.0 = Some(segment);
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
        if self.rows() != rows {
            self.0 = (rows > 0).then(|| Segment::of_page(copy(), watermark));
        }
        self.0.clone()
    }
}
