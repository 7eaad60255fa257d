//! Places in a source.

use std::sync::Arc;

use crate::Ts;
use crate::search::{count_while, gallop};
use crate::segment::{List, Segment};

/// Segments in time order, read as one source.
#[derive(Debug)]
pub(crate) struct Run<'s, V> {
    body: &'s [Arc<Segment<V>>],
    /// Of `body`, when there is one.
    index: Option<&'s Index>,
    tail: Option<&'s Arc<Segment<V>>>,
}

impl<V> Clone for Run<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Run<'_, V> {}

impl<'s, V> From<&'s [Arc<Segment<V>>]> for Run<'s, V> {
    fn from(body: &'s [Arc<Segment<V>>]) -> Self {
        Self {
            body,
            index: None,
            tail: None,
        }
    }
}

impl<'s, V> From<&'s List<V>> for Run<'s, V> {
    fn from(list: &'s List<V>) -> Self {
        Self {
            body: list.body.as_ref().map_or(&[], |body| body),
            index: None,
            tail: list.tail.as_ref(),
        }
    }
}

/// What a search and a count need of many segments, side by side: the segments themselves lie all
/// over the memory.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    maxes: Vec<Ts>,
    /// The rows before each segment, and at the end all rows.
    starts: Vec<usize>,
}

impl Index {
    pub fn of<V>(segments: &[Arc<Segment<V>>]) -> Self {
        let rows = segments.iter().scan(0, |rows, segment| {
            *rows += segment.rows();
            Some(*rows)
        });
        Self {
            maxes: segments.iter().map(|segment| segment.max()).collect(),
            starts: std::iter::once(0).chain(rows).collect(),
        }
    }

    pub fn is_of<V>(&self, segments: &[Arc<Segment<V>>]) -> bool {
        let expected = Self::of(segments);
        self.maxes == expected.maxes && self.starts == expected.starts
    }
}

/// A row of a run, or its end: `row` is a row of its page, or the place is the one past the last
/// segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub segment: usize,
    pub page: usize,
    pub row: usize,
}

impl<'s, V> Run<'s, V> {
    pub fn len(&self) -> usize {
        self.body.len() + usize::from(self.tail.is_some())
    }

    pub fn segment(&self, index: usize) -> &'s Segment<V> {
        match self.body.get(index) {
            Some(segment) => segment,
            None => self.tail.expect("a place before the end names a segment"),
        }
    }

    pub fn end(&self) -> Place {
        Place {
            segment: self.len(),
            page: 0,
            row: 0,
        }
    }

    /// Segments with their index.
    pub fn indexed(body: &'s [Arc<Segment<V>>], index: &'s Index) -> Self {
        Self {
            body,
            index: Some(index),
            tail: None,
        }
    }

    /// The rows between two places, if that needs no look at the segments between.
    pub fn distance(&self, from: Place, to: Place) -> Option<usize> {
        let rank = |index: &Index, place: Place| {
            let before = index.starts[place.segment];
            match self.body.get(place.segment) {
                Some(segment) => before + segment.rank((place.page, place.row)),
                None => before,
            }
        };
        if from.segment == to.segment {
            let segment = self.segment(from.segment);
            let rank = |place: Place| segment.rank((place.page, place.row));
            return Some(rank(to) - rank(from));
        }
        self.index.map(|index| rank(index, to) - rank(index, from))
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
    pub fn upper_from(&self, from: Place, ts: Ts) -> Place {
        if from == self.end() {
            return from;
        }
        let segment = self.segment(from.segment);
        if !segment.page_ends_after(from.page, ts) {
            return self.upper(ts).max(from);
        }
        let rows = &segment.pages()[from.page].ts[from.row..];
        let row = from.row + gallop(rows, |other| other <= ts);
        self.place(from.segment, from.page, row)
    }

    /// The segments whose greatest timestamps hold.
    fn partition_point(&self, is_before: impl Fn(Ts) -> bool) -> usize {
        let segment = match self.index {
            Some(index) => count_while(&index.maxes, &is_before),
            None => self
                .body
                .partition_point(|segment| is_before(segment.max())),
        };
        let is_tail_before =
            segment == self.body.len() && self.tail.is_some_and(|tail| is_before(tail.max()));
        segment + usize::from(is_tail_before)
    }

    fn within(&self, segment: usize, find: impl Fn(&Segment<V>) -> (usize, usize)) -> Place {
        if segment == self.len() {
            return self.end();
        }
        let (page, row) = find(self.segment(segment));
        self.place(segment, page, row)
    }

    /// The place of a row, or of the next page's first if `row` is past the end of its page.
    pub fn place(&self, segment: usize, page: usize, row: usize) -> Place {
        let pages = self.segment(segment).pages();
        if pages.get(page).is_some_and(|page| row < page.len()) {
            Place { segment, page, row }
        } else if page + 1 < pages.len() {
            Place {
                segment,
                page: page + 1,
                row: 0,
            }
        } else {
            Place {
                segment: segment + 1,
                page: 0,
                row: 0,
            }
        }
    }

    /// The last row before a place that is not the first.
    pub fn before(&self, place: Place) -> Place {
        if let Some(row) = place.row.checked_sub(1) {
            return Place { row, ..place };
        }
        let (segment, page) = match place.page.checked_sub(1) {
            Some(page) => (place.segment, page),
            None => (
                place.segment - 1,
                self.segment(place.segment - 1).pages().len() - 1,
            ),
        };
        Place {
            segment,
            page,
            row: self.segment(segment).pages()[page].len() - 1,
        }
    }

    /// The timestamp at a place before the end.
    pub fn ts(&self, place: Place) -> Ts {
        self.segment(place.segment).pages()[place.page].ts[place.row]
    }
}
