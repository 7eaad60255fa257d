//! Places in a source.

use std::sync::Arc;

use crate::Ts;
use crate::list::List;
use crate::search::gallop;
use crate::segment::Segment;
use crate::segments::{Segments, Slot};
use crate::tombstones::{Piece, Skyline};

/// Segments in time order, read as one source.
#[derive(Debug)]
pub(crate) struct Run<'s, V> {
    body: Option<&'s Segments<V>>,
    /// The slot of `tail`.
    body_end: Slot,
    tail: Option<&'s Arc<Segment<V>>>,
}

impl<V> Clone for Run<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Run<'_, V> {}

impl<'s, V> From<&'s Arc<Segment<V>>> for Run<'s, V> {
    fn from(segment: &'s Arc<Segment<V>>) -> Self {
        Self {
            body: None,
            body_end: 0,
            tail: Some(segment),
        }
    }
}

impl<'s, V> From<&'s Segments<V>> for Run<'s, V> {
    fn from(body: &'s Segments<V>) -> Self {
        Self {
            body: Some(body),
            body_end: body.end(),
            tail: None,
        }
    }
}

impl<'s, V> From<&'s List<V>> for Run<'s, V> {
    fn from(list: &'s List<V>) -> Self {
        Self {
            body: list.body.as_deref(),
            body_end: list.body.as_ref().map_or(0, |body| body.end()),
            tail: list.tail.as_ref(),
        }
    }
}

/// A row of a run, or its end: `row` is a row of its page, or the place is the one past the last
/// segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub segment: Slot,
    pub page: usize,
    pub row: usize,
}

impl<'s, V> Run<'s, V> {
    #[inline]
    pub fn segment(&self, at: Slot) -> &'s Segment<V> {
        let in_body = self.body.and_then(|body| body.get(at));
        in_body
            .or(self.tail)
            .expect("a place before the end names a segment")
    }

    pub fn end(&self) -> Place {
        Place {
            segment: self.body_end + usize::from(self.tail.is_some()),
            page: 0,
            row: 0,
        }
    }

    /// The slot after one that has a segment.
    fn after(&self, at: Slot) -> Slot {
        match self.body {
            Some(body) if at < self.body_end => body.after(at),
            _ => at + 1,
        }
    }

    /// The rows before a place.
    fn rank(&self, place: Place) -> usize {
        let before = self.body.map_or(0, |body| body.rank(place.segment));
        let inside = || self.segment(place.segment).rank((place.page, place.row));
        let past = self.tail.filter(|_| place.segment > self.body_end);
        match past {
            Some(tail) => before + tail.rows(),
            None if place.segment == self.body_end && self.tail.is_none() => before,
            None => before + inside(),
        }
    }

    /// The rows between two places.
    pub fn distance(&self, from: Place, to: Place) -> usize {
        if from.segment == to.segment && from != to {
            let segment = self.segment(from.segment);
            let rank = |place: Place| segment.rank((place.page, place.row));
            return rank(to) - rank(from);
        }
        self.rank(to) - self.rank(from)
    }

    /// The rows between two places that a delete hides. Looks at segments one by one only where
    /// some of a block are newer than it.
    pub fn rows_under(&self, piece: &Piece, from: Place, to: Place) -> usize {
        let (lower, upper) = self.bounds(piece.first, piece.last);
        let (from, to) = (lower.max(from), upper.min(to));
        if from >= to {
            return 0;
        }
        let is_older = |at: Slot| self.segment(at).watermark() < piece.seq;
        if from.segment == to.segment {
            return if is_older(from.segment) {
                self.distance(from, to)
            } else {
                0
            };
        }
        let next = Place {
            segment: self.after(from.segment),
            page: 0,
            row: 0,
        };
        let last = Place {
            page: 0,
            row: 0,
            ..to
        };
        let mut rows = 0;
        if is_older(from.segment) {
            rows += self.distance(from, next);
        }
        if last < to && is_older(to.segment) {
            rows += self.distance(last, to);
        }
        if let Some(body) = self.body {
            let end = to.segment.min(self.body_end);
            rows += body.rows_older_than(piece.seq, next.segment.min(end)..end);
        }
        if let Some(tail) = self.tail
            && (next.segment..to.segment).contains(&self.body_end)
            && tail.watermark() < piece.seq
        {
            rows += tail.rows();
        }
        rows
    }

    /// The visible rows from one timestamp to another, both inside: all of them, without those
    /// that each delete hides.
    pub fn count(&self, cut: &Skyline, first: Ts, last: Ts) -> usize {
        let start = self.partition_point(|max| max < first);
        let end = self.partition_point(|max| max <= last);
        let past = self.end().segment;
        let rank = |at: Slot| self.body.map_or(0, |body| body.rank(at));
        let all = if start == past {
            0
        } else if start == end {
            let (lower, upper) = self.segment(start).ranks(first, last);
            upper - lower
        } else {
            let lower = self.segment(start).ranks(first, last).0;
            let upper = if end == past {
                rank(self.body_end) + self.tail.map_or(0, |tail| tail.rows())
            } else {
                rank(end) + self.segment(end).ranks(first, last).1
            };
            upper - rank(start) - lower
        };
        if all == 0 || cut.is_empty() {
            return all;
        }
        let (from, to) = self.bounds(first, last);
        let hiding = cut.between(first, last);
        let hidden = hiding.map(|piece| self.rows_under(piece, from, to));
        all - hidden.sum::<usize>()
    }

    /// All rows that a delete hides.
    pub fn rows_under_all(&self, piece: &Piece) -> usize {
        let start = self.partition_point(|max| max < piece.first);
        if start == self.end().segment {
            return 0;
        }
        let segment = self.segment(start);
        if piece.last < segment.max() {
            return if segment.watermark() < piece.seq {
                segment.rows_within(piece.first, piece.last)
            } else {
                0
            };
        }
        self.rows_under(piece, Place::default(), self.end())
    }

    /// The first row at or after `first`, and the first after `last`.
    pub fn bounds(&self, first: Ts, last: Ts) -> (Place, Place) {
        let lower = if first == Ts::MIN {
            self.start()
        } else {
            self.lower(first)
        };
        let upper = if last == Ts::MAX {
            self.end()
        } else {
            self.upper_from(lower, last)
        };
        (lower, upper)
    }

    /// The first row, or the end.
    pub fn start(&self) -> Place {
        Place::default()
    }

    /// The first row at or after `ts`.
    pub fn lower(&self, ts: Ts) -> Place {
        let segment = self.partition_point(|max| max < ts);
        self.within(segment, |segment| segment.lower(ts))
    }

    /// The first row after `ts`.
    pub fn upper(&self, ts: Ts) -> Place {
        let segment = self.partition_point(|max| max <= ts);
        self.within(segment, |segment| segment.upper(ts))
    }

    /// The first row after `ts`, sought from a place on that is not after it: most ranges end near
    /// their start.
    fn upper_from(&self, from: Place, ts: Ts) -> Place {
        if from == self.end() {
            return from;
        }
        let segment = self.segment(from.segment);
        if !segment.page_ends_after(from.page, ts) {
            return self.upper(ts).max(from);
        }
        let rows = &segment.pages()[from.page].ts[from.row..];
        let row = match rows {
            [first, ..] if *first > ts => return from,
            // Of a point, most have one row.
            [_, second, ..] if *second > ts => 1,
            _ => gallop(rows, |other| other <= ts),
        };
        self.place(from.segment, from.page, from.row + row)
    }

    /// The segments whose greatest timestamps hold.
    #[inline]
    fn partition_point(&self, is_before: impl Fn(Ts) -> bool) -> Slot {
        let segment = self.body.map_or(0, |body| body.partition_point(&is_before));
        let is_tail_before =
            segment == self.body_end && self.tail.is_some_and(|tail| is_before(tail.max()));
        segment + usize::from(is_tail_before)
    }

    #[inline]
    fn within(&self, segment: Slot, find: impl Fn(&Segment<V>) -> (usize, usize)) -> Place {
        if segment == self.end().segment {
            return self.end();
        }
        let (page, row) = find(self.segment(segment));
        self.place(segment, page, row)
    }

    /// The place of a row, or of the next page's first if `row` is past the end of its page.
    pub fn place(&self, segment: Slot, page: usize, row: usize) -> Place {
        let pages = self.segment(segment).pages();
        if pages.get(page).is_some_and(|page| row < page.len()) {
            Place { segment, page, row }
        } else {
            self.next_page(segment, page)
        }
    }

    /// The first row after a page.
    #[inline]
    pub fn next_page(&self, segment: Slot, page: usize) -> Place {
        let (segment, page) = if page + 1 < self.segment(segment).pages().len() {
            (segment, page + 1)
        } else {
            (self.after(segment), 0)
        };
        Place {
            segment,
            page,
            row: 0,
        }
    }

    /// The last row before a place that is not the first.
    pub fn before(&self, place: Place) -> Place {
        if let Some(row) = place.row.checked_sub(1) {
            return Place { row, ..place };
        }
        let (segment, page) = match place.page.checked_sub(1) {
            Some(page) => (place.segment, page),
            None => {
                let segment = match self.body {
                    Some(body) if place.segment <= self.body_end => body.before(place.segment),
                    _ => place.segment - 1,
                };
                (segment, self.segment(segment).pages().len() - 1)
            }
        };
        Place {
            segment,
            page,
            row: self.segment(segment).pages()[page].len() - 1,
        }
    }

    /// The first timestamp from `ts` on, of rows that may be hidden.
    pub fn first_from(&self, ts: Ts) -> Option<Ts> {
        let place = if ts == Ts::MIN {
            self.start()
        } else {
            self.lower(ts)
        };
        (place < self.end()).then(|| self.ts(place))
    }

    /// The last timestamp up to `ts`, of rows that may be hidden.
    pub fn last_to(&self, ts: Ts) -> Option<Ts> {
        if ts == Ts::MAX {
            let last = self.tail.or_else(|| self.body?.last());
            return last.map(|segment| segment.max());
        }
        let place = self.upper(ts);
        (self.start() < place).then(|| self.ts(self.before(place)))
    }

    /// The timestamp at a place before the end.
    pub fn ts(&self, place: Place) -> Ts {
        self.segment(place.segment).pages()[place.page].ts[place.row]
    }
}
