//! Sources merged into one order, from both ends.

use std::sync::Arc;
use std::{mem, slice};

use super::{Cursor, Place};
use crate::Ts;
use crate::column::{Columns, Span};
use crate::search::all_or_gallop_back;

/// Visible rows of several sources in order, as slices. An older source comes first among equal
/// timestamps.
///
/// The least source gives all rows up to the first of the runner-up at once, found by galloping:
/// sources that do not overlap cost one comparison a page. The order of sources is touched only
/// when another one is least. A single source has no order to keep: what was flushed in time order
/// is read without a comparison or an allocation.
#[derive(Debug)]
pub(crate) enum Merge<'s, V> {
    /// No source, or none that has rows left.
    Empty,
    /// The only source, or the only one that is left.
    One(Source<'s, V>),
    Many(Box<Many<'s, V>>),
}

/// A source and its place among those taken.
#[derive(Debug)]
pub(crate) struct Source<'s, V> {
    number: usize,
    cursor: Cursor<'s, V>,
}

/// Two sources or more.
#[derive(Debug)]
pub(crate) struct Many<'s, V> {
    /// By age, the oldest first.
    sources: Vec<Source<'s, V>>,
    /// By the first timestamp those that have rows, once the front was asked for.
    heads: Option<Order>,
    /// By the last timestamp, the greatest first, once the back was asked for.
    tails: Option<Order>,
}

/// Rows, and their page if they are all of it.
type Taken<'s, V> = (Span<'s, V>, Option<&'s Arc<Columns<V>>>);

impl<V> Clone for Source<'_, V> {
    fn clone(&self) -> Self {
        Self {
            number: self.number,
            cursor: self.cursor.clone(),
        }
    }
}

impl<V> Clone for Many<'_, V> {
    fn clone(&self) -> Self {
        Self {
            sources: self.sources.clone(),
            heads: self.heads.clone(),
            tails: self.tails.clone(),
        }
    }
}

impl<V> Clone for Merge<'_, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::One(source) => Self::One(source.clone()),
            Self::Many(many) => Self::Many(many.clone()),
        }
    }
}

impl<'s, V> Merge<'s, V> {
    /// Takes a source that is newer than those before. Not once rows were taken.
    #[inline]
    pub fn push(&mut self, cursor: Cursor<'s, V>) {
        match self {
            Self::Empty => *self = Self::One(Source { number: 0, cursor }),
            _ => self.push_another(cursor),
        }
    }

    fn push_another(&mut self, cursor: Cursor<'s, V>) {
        let mut many = match mem::replace(self, Self::Empty) {
            Self::Many(many) => many,
            one => Box::new(Many::of(one)),
        };
        let number = many.sources.len();
        many.sources.push(Source { number, cursor });
        *self = Self::Many(many);
    }

    fn sources(&self) -> &[Source<'s, V>] {
        match self {
            Self::Empty => &[],
            Self::One(source) => slice::from_ref(source),
            Self::Many(many) => &many.sources,
        }
    }

    /// The rows that are left.
    pub fn remaining(&self) -> usize {
        let sources = self.sources().iter();
        sources.map(|source| source.cursor.remaining()).sum()
    }

    /// The numbers of the sources that are left, and where each goes on. Only for merges that are
    /// read forward.
    pub fn places(&self) -> impl Iterator<Item = (usize, Place)> {
        let sources = self.sources().iter();
        sources.map(|source| (source.number, source.cursor.position()))
    }

    /// Whether no row is left.
    pub fn is_exhausted(&mut self) -> bool {
        self.find_heads();
        match self {
            Self::Empty => true,
            Self::One(source) => source.cursor.front().is_empty(),
            Self::Many(_) => false,
        }
    }

    /// The next rows that are in order and lie in one page.
    #[inline]
    pub fn take_front(&mut self) -> Option<Span<'s, V>> {
        if let Self::Many(_) = self {
            return self.take_front_of_many();
        }
        match self {
            Self::One(source) => source.cursor.next_front(),
            _ => None,
        }
    }

    #[inline(never)]
    fn take_front_of_many(&mut self) -> Option<Span<'s, V>> {
        self.find_heads();
        let Self::Many(many) = self else {
            return self.take_front();
        };
        let (least, other, is_inclusive) = many.least()?;
        let cursor = &mut many.sources[least].cursor;
        let (taken, head) = cursor.take_before(other, is_inclusive);
        self.replace_head(least, head);
        Some(taken)
    }

    /// The next row, if another source is next after it: sources that interleave give one row at a
    /// time, and a slice of one costs more than the row. `None` says nothing about what is left.
    #[inline]
    pub fn take_single(&mut self) -> Option<(Ts, &'s V)> {
        let Self::Many(many) = self else { return None };
        let (least, other, is_inclusive) = many.least()?;
        let cursor = &mut many.sources[least].cursor;
        let (row, head) = cursor.take_single(other, is_inclusive)?;
        many.heads.as_mut()?.replace_first((head, least));
        Some(row)
    }

    /// As `take_front`, and the page if the rows are all of it.
    pub fn take_front_and_page(&mut self) -> Option<Taken<'s, V>> {
        self.find_heads();
        let cursor = match self {
            Self::Empty => return None,
            Self::One(source) => &mut source.cursor,
            Self::Many(many) => {
                let (least, ..) = many.least()?;
                &mut many.sources[least].cursor
            }
        };
        // Loads what `whole_page` tells about.
        cursor.front();
        let page = cursor.whole_page();
        let taken = self.take_front()?;
        Some((taken, page.filter(|page| page.len() == taken.len())))
    }

    /// The next rows of the source whose first timestamp is least, whether or not others overlap
    /// them.
    #[inline]
    pub fn take_whole(&mut self) -> Option<Span<'s, V>> {
        self.find_heads();
        let Self::Many(many) = self else {
            return self.take_front();
        };
        let (least, ..) = many.least()?;
        let cursor = &mut many.sources[least].cursor;
        let taken = cursor.next_front();
        let head = cursor.front().timestamps().first().copied();
        self.replace_head(least, head);
        taken
    }

    /// The last rows that are in order and lie in one page.
    #[inline]
    pub fn take_back(&mut self) -> Option<Span<'s, V>> {
        if let Self::Many(many) = self
            && many.tails.is_none()
        {
            many.find_tails();
            self.keep_only();
        }
        match self {
            Self::Empty => None,
            Self::One(source) => source.cursor.next_back(),
            Self::Many(many) => {
                let (taken, emptied) = many.take_back()?;
                if let Some(index) = emptied {
                    self.remove(index);
                }
                Some(taken)
            }
        }
    }

    #[inline]
    fn find_heads(&mut self) {
        if let Self::Many(many) = self
            && many.heads.is_none()
        {
            many.find_heads();
            self.keep_only();
        }
    }

    /// Notes the first timestamp that is left of the least source, which gave rows.
    #[inline]
    fn replace_head(&mut self, index: usize, head: Option<Ts>) {
        match (self, head) {
            (Self::Many(many), Some(head)) => {
                if let Some(heads) = &mut many.heads {
                    heads.replace_first((head, index));
                }
            }
            (merge, _) => merge.remove(index),
        }
    }

    /// Removes a source that has no more rows.
    #[cold]
    fn remove(&mut self, index: usize) {
        if let Self::Many(many) = self {
            if let Some(heads) = &mut many.heads {
                heads.remove(index);
            }
            if let Some(tails) = &mut many.tails {
                tails.remove(!index);
            }
            self.keep_only();
        }
    }

    /// Leaves the order once there is one source, or none, that has rows.
    fn keep_only(&mut self) {
        let Self::Many(many) = self else { return };
        let by_heads = many.heads.as_ref().map(|order| (order, false));
        let by_tails = many.tails.as_ref().map(|order| (order, true));
        let Some((order, is_back)) = by_heads.or(by_tails) else {
            return;
        };
        match order.0[..] {
            [] => *self = Self::Empty,
            [(_, index)] => {
                let index = if is_back { !index } else { index };
                *self = Self::One(many.sources.swap_remove(index));
            }
            _ => {}
        }
    }
}

impl<'s, V> Many<'s, V> {
    /// The only source, to be joined by others.
    fn of(one: Merge<'s, V>) -> Self {
        let mut sources = Vec::with_capacity(4);
        if let Merge::One(source) = one {
            sources.push(source);
        }
        Self {
            sources,
            heads: None,
            tails: None,
        }
    }

    /// The source whose first row is next, the first timestamp of the runner-up, and whether rows
    /// with that timestamp come before it too.
    #[inline]
    fn least(&self) -> Option<(usize, Ts, bool)> {
        let ((_, least), (other, runner_up)) = self.heads.as_ref()?.first_two()?;
        let is_inclusive = least < runner_up;
        Some((least, other, is_inclusive))
    }

    /// The last rows that come after all others, and their source if they were all that it had.
    fn take_back(&mut self) -> Option<(Span<'s, V>, Option<usize>)> {
        let tails = self.tails.as_mut()?;
        let ((_, greatest), (other, runner_up)) = tails.first_two()?;
        let (greatest, other, runner_up) = (!greatest, !other, !runner_up);
        let cursor = &mut self.sources[greatest].cursor;
        let back = cursor.back();
        let rows = if greatest > runner_up {
            all_or_gallop_back(back.timestamps(), |ts| ts >= other)
        } else {
            all_or_gallop_back(back.timestamps(), |ts| ts > other)
        };
        let taken = cursor.take_back(rows);
        let back = cursor.back();
        if back.is_empty() {
            return Some((taken, Some(greatest)));
        }
        tails.replace_first((!back.last(), !greatest));
        Some((taken, None))
    }

    fn find_heads(&mut self) {
        let first = |cursor: &mut Cursor<'s, V>| cursor.front().timestamps().first().copied();
        self.heads = Some(self.order(|cursor, index| Some((first(cursor)?, index))));
    }

    fn find_tails(&mut self) {
        let last = |cursor: &mut Cursor<'s, V>| cursor.back().timestamps().last().copied();
        self.tails = Some(self.order(|cursor, index| Some((!last(cursor)?, !index))));
    }

    fn order(&mut self, end: impl Fn(&mut Cursor<'s, V>, usize) -> Option<(Ts, usize)>) -> Order {
        let sources = self.sources.iter_mut().enumerate();
        let ends = sources.filter_map(|(index, source)| end(&mut source.cursor, index));
        Order::of(ends.collect())
    }
}

/// Ends of sources with their places, in rising order. Of equal ends the lesser place is first.
///
/// The order of tails is that of their complements, and of the complements of their places: the
/// greatest comes first, and of equal ones that of the newest source.
#[derive(Clone, Debug)]
struct Order(Vec<(Ts, usize)>);

/// Up to so many sources an end finds its place by looking at one after the other.
const FEW: usize = 8;

impl Order {
    fn of(mut ends: Vec<(Ts, usize)>) -> Self {
        ends.sort_unstable();
        Self(ends)
    }

    #[inline]
    fn first_two(&self) -> Option<((Ts, usize), (Ts, usize))> {
        match &self.0[..] {
            [first, second, ..] => Some((*first, *second)),
            _ => None,
        }
    }

    /// Puts the end of another row in the place of the first one.
    #[inline]
    fn replace_first(&mut self, end: (Ts, usize)) {
        let ends = &mut self.0[..];
        let mut place = 0;
        if ends.len() <= FEW {
            while let Some(next) = ends.get(place + 1).copied()
                && next < end
            {
                ends[place] = next;
                place += 1;
            }
        } else {
            place = ends[1..].partition_point(|other| *other < end);
            ends.copy_within(1..=place, 0);
        }
        ends[place] = end;
    }

    fn remove(&mut self, index: usize) {
        self.0.retain(|end| end.1 != index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_finds_its_place() {
        for count in [2, 3, 8, 9, 20] {
            let mut order = Order::of((0..count).map(|index| (10 * index as Ts, index)).collect());
            for (step, end) in (0..).zip([0, 5, 95, 10, 200, 200, 15, 1_000, 90]) {
                let first = order.first_two().unwrap().0;
                let mut expected = order.0.clone();
                expected[0] = (end.max(first.0), first.1);
                order.replace_first(expected[0]);
                expected.sort_unstable();
                assert_eq!(order.0, expected, "step {step} of {count}");
            }
        }
    }
}
