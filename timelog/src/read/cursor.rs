//! The visible rows of one source, taken from both ends.

use std::mem;
use std::sync::Arc;

use super::{Place, Run};
use crate::Ts;
use crate::column::{Columns, Span};
use crate::search::{all_or_gallop, is_before};
use crate::tombstones::{At, Skyline};

/// What is left of a range of a source.
///
/// ```text
///   taken | front | lo … hi | back | taken
/// ```
///
/// `front` and `back` are visible and each in one page; between `lo` and `hi` nothing was looked at
/// yet.
#[derive(Debug)]
pub(crate) struct Cursor<'s, V> {
    run: Run<'s, V>,
    cut: &'s Skyline,
    front: Span<'s, V>,
    /// Where `front` begins.
    front_at: Place,
    lo: Place,
    hi: Place,
    back: Span<'s, V>,
    /// The first piece of the skyline that does not end before `lo`, or one before it.
    passed: At,
}

impl<V> Clone for Cursor<'_, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'s, V> Cursor<'s, V> {
    /// The visible rows from one timestamp to another, both inside. `None` if the source has no row
    /// there, hidden or not.
    #[inline]
    pub fn new(run: Run<'s, V>, cut: &'s Skyline, first: Ts, last: Ts) -> Option<Self> {
        let (lo, hi) = run.bounds(first, last);
        (lo < hi).then(|| Self::between(run, cut, lo, hi))
    }

    /// The visible rows from a place on.
    pub fn resume(run: Run<'s, V>, cut: &'s Skyline, at: Place) -> Self {
        Self::between(run, cut, at, run.end())
    }

    #[inline]
    fn between(run: Run<'s, V>, cut: &'s Skyline, lo: Place, hi: Place) -> Self {
        Self {
            run,
            cut,
            front: Span::EMPTY,
            front_at: lo,
            lo,
            hi,
            back: Span::EMPTY,
            passed: At::default(),
        }
    }

    /// Where `resume` goes on. Only for cursors that are read forward.
    pub fn position(&self) -> Place {
        debug_assert!(
            self.back.is_empty(),
            "a cursor that is resumed is read forward"
        );
        if self.front.is_empty() {
            self.lo
        } else {
            self.front_at
        }
    }

    /// Takes the next visible rows of one page.
    #[inline]
    pub fn next_front(&mut self) -> Option<Span<'s, V>> {
        if self.front.is_empty() && self.lo < self.hi {
            self.load_front();
        }
        let from = if self.front.is_empty() {
            &mut self.back
        } else {
            &mut self.front
        };
        let taken = mem::replace(from, Span::EMPTY);
        (!taken.is_empty()).then_some(taken)
    }

    /// Takes the last visible rows of one page.
    #[inline]
    pub fn next_back(&mut self) -> Option<Span<'s, V>> {
        let rows = self.back().len();
        (rows > 0).then(|| self.take_back(rows))
    }

    /// The next visible rows of one page, empty at the end.
    #[inline]
    pub fn front(&mut self) -> Span<'s, V> {
        if self.front.is_empty() && self.lo < self.hi {
            self.load_front();
        }
        if self.front.is_empty() {
            self.back
        } else {
            self.front
        }
    }

    /// The last visible rows of one page, empty at the end.
    #[inline]
    pub fn back(&mut self) -> Span<'s, V> {
        if self.back.is_empty() && self.lo < self.hi {
            self.load_back();
        }
        if self.back.is_empty() {
            self.front
        } else {
            self.back
        }
    }

    /// Takes rows that `front` gave.
    #[inline]
    pub fn take_front(&mut self, rows: usize) -> Span<'s, V> {
        let from = if self.front.is_empty() {
            &mut self.back
        } else {
            &mut self.front
        };
        let (taken, rest) = from.split_at(rows);
        *from = rest;
        self.front_at.row += rows;
        taken
    }

    /// Takes the next rows of one page that come before a row of another source, the first of them
    /// in any case, and gives the timestamp after them. Not at the end.
    #[inline]
    pub fn take_before(&mut self, other: Ts, is_inclusive: bool) -> (Span<'s, V>, Option<Ts>) {
        let front = self.front();
        let holds = |ts| is_before(ts, other, is_inclusive);
        let rows = all_or_gallop(front.timestamps(), holds).max(1);
        let taken = self.take_front(rows);
        (taken, self.front().timestamps().first().copied())
    }

    /// Takes the next row and gives the timestamp after it, if both are known and the second does
    /// not come before a row of another source.
    #[inline]
    pub fn take_single(&mut self, other: Ts, is_inclusive: bool) -> Option<((Ts, &'s V), Ts)> {
        let second = *self.front.timestamps().get(1)?;
        if is_before(second, other, is_inclusive) {
            return None;
        }
        self.front_at.row += 1;
        let row = self.front.pop_first()?;
        Some((row, second))
    }

    /// Takes rows that `back` gave.
    #[inline]
    pub fn take_back(&mut self, rows: usize) -> Span<'s, V> {
        let from = if self.back.is_empty() {
            &mut self.front
        } else {
            &mut self.back
        };
        let (rest, taken) = from.split_at(from.len() - rows);
        *from = rest;
        taken
    }

    /// The page of `front`, if that is the whole page.
    pub fn whole_page(&self) -> Option<&'s Arc<Columns<V>>> {
        if self.front.is_empty() {
            return None;
        }
        let page = &self.run.segment(self.front_at.segment).pages()[self.front_at.page];
        (self.front.len() == page.len()).then_some(page)
    }

    fn load_front(&mut self) {
        if self.cut.is_empty() {
            return self.load_uncut_front();
        }
        while self.lo < self.hi {
            let Place {
                segment: index,
                page: number,
                row,
            } = self.lo;
            let segment = self.run.segment(index);
            let page = &segment.pages()[number];
            let is_last = (self.hi.segment, self.hi.page) == (index, number);
            let end = if is_last { self.hi.row } else { page.len() };
            let (visible, next) = self.cut.first_visible(
                segment.marked(number),
                row..end,
                segment.watermark(),
                &mut self.passed,
            );
            if !visible.is_empty() {
                self.front_at = Place {
                    row: visible.start,
                    ..self.lo
                };
                self.lo = if next < page.len() {
                    Place {
                        row: next,
                        ..self.lo
                    }
                } else {
                    self.run.next_page(index, number)
                };
                self.front = page.span(visible);
                return;
            }
            self.lo = self.run.place(index, number, end);
            // What hides the last of them may hide many pages more.
            if let Some(piece) = self.cut.hiding_at(page.ts[end - 1], segment.watermark()) {
                let (page, row) = segment.upper(piece.last);
                self.lo = self.run.place(index, page, row).max(self.lo);
            }
        }
        // A jump may pass the end of the range.
        self.lo = self.hi;
    }

    /// As `load_front` where nothing is hidden, and `lo` is before `hi`.
    fn load_uncut_front(&mut self) {
        let Place { segment, page, row } = self.lo;
        let rows = &self.run.segment(segment).pages()[page];
        let is_last = (self.hi.segment, self.hi.page) == (segment, page);
        let end = if is_last { self.hi.row } else { rows.len() };
        self.front = rows.span(row..end);
        self.front_at = self.lo;
        self.lo = if is_last {
            self.hi
        } else {
            self.run.next_page(segment, page)
        };
    }

    fn load_back(&mut self) {
        if self.cut.is_empty() {
            return self.load_uncut_back();
        }
        while self.lo < self.hi {
            let last = self.run.before(self.hi);
            let segment = self.run.segment(last.segment);
            let page = &segment.pages()[last.page];
            let is_first = (self.lo.segment, self.lo.page) == (last.segment, last.page);
            let start = if is_first { self.lo.row } else { 0 };
            let visible = self.cut.last_visible(
                segment.marked(last.page),
                start..last.row + 1,
                segment.watermark(),
            );
            if !visible.is_empty() {
                self.hi = Place {
                    row: visible.start,
                    ..last
                };
                self.back = page.span(visible);
                return;
            }
            self.hi = Place { row: start, ..last };
            if let Some(piece) = self.cut.hiding_at(page.ts[start], segment.watermark()) {
                let (page, row) = segment.lower(piece.first);
                self.hi = self.run.place(last.segment, page, row).min(self.hi);
            }
        }
        self.hi = self.lo;
    }

    /// As `load_back` where nothing is hidden, and `lo` is before `hi`.
    fn load_uncut_back(&mut self) {
        let last = self.run.before(self.hi);
        let page = &self.run.segment(last.segment).pages()[last.page];
        let is_first = (self.lo.segment, self.lo.page) == (last.segment, last.page);
        let start = if is_first { self.lo.row } else { 0 };
        self.hi = Place { row: start, ..last };
        self.back = page.span(start..last.row + 1);
    }

    /// The rows that are left.
    pub fn remaining(&self) -> usize {
        self.front.len() + self.back.len() + self.unseen()
    }

    /// The visible rows from `lo` to `hi`: all of them, without those that each delete hides.
    fn unseen(&self) -> usize {
        if self.lo >= self.hi {
            return 0;
        }
        let rows = self.run.distance(self.lo, self.hi);
        if self.cut.is_empty() {
            return rows;
        }
        let (first, last) = (self.run.ts(self.lo), self.run.ts(self.run.before(self.hi)));
        let hiding = self.cut.between(first, last);
        let hidden = hiding.map(|piece| self.run.rows_under(piece, self.lo, self.hi));
        rows - hidden.sum::<usize>()
    }
}
