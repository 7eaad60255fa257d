//! Sources merged into one order, from both ends.

use std::sync::Arc;

use super::{Cursor, Place};
use crate::Ts;
use crate::column::{Columns, Span};
use crate::planted::planted;
use crate::search::{gallop, gallop_back};

/// Visible rows of several sources in order, as slices. An older source comes first among equal
/// timestamps.
///
/// The least source gives all rows up to the first of the runner-up at once, found by galloping:
/// sources that do not overlap cost one comparison a page. The order of sources is touched only
/// when another one is least. A single source has no order to keep: what was flushed in time order
/// is read without a comparison or an allocation.
#[derive(Debug)]
pub(crate) struct Merge<'s, V> {
    /// The source, if it is the only one that is left.
    only: Option<Source<'s, V>>,
    /// Two or more by age, the oldest first.
    many: Vec<Source<'s, V>>,
    /// By the first timestamp those of `many` that have rows, once the front was asked for.
    heads: Option<Order>,
    /// By the last timestamp, the greatest first, once the back was asked for.
    tails: Option<Order>,
    /// How many sources were taken.
    taken: usize,
}

/// Rows, and their page if they are all of it.
type Taken<'s, V> = (Span<'s, V>, Option<&'s Arc<Columns<V>>>);

/// A source and its place among those taken.
#[derive(Debug)]
struct Source<'s, V> {
    number: usize,
    cursor: Cursor<'s, V>,
}

impl<V> Clone for Source<'_, V> {
    fn clone(&self) -> Self {
        Self {
            number: self.number,
            cursor: self.cursor.clone(),
        }
    }
}

impl<V> Clone for Merge<'_, V> {
    fn clone(&self) -> Self {
        Self {
            only: self.only.clone(),
            many: self.many.clone(),
            heads: self.heads.clone(),
            tails: self.tails.clone(),
            taken: self.taken,
        }
    }
}

impl<'s, V> Merge<'s, V> {
    pub const fn new() -> Self {
        Self {
            only: None,
            many: Vec::new(),
            heads: None,
            tails: None,
            taken: 0,
        }
    }

    /// Takes a source that is newer than those before. Not once rows were taken.
    pub fn push(&mut self, cursor: Cursor<'s, V>) {
        let source = Source {
            number: self.taken,
            cursor,
        };
        self.taken += 1;
        if self.taken == 1 {
            self.only = Some(source);
        } else {
            self.many.extend(self.only.take());
            self.many.push(source);
        }
    }

    /// The rows that are left.
    pub fn remaining(&self) -> usize {
        self.sources().map(|source| source.cursor.remaining()).sum()
    }

    /// The numbers of the sources that are left, and where each goes on. Only for merges that are
    /// read forward.
    pub fn places(&self) -> impl Iterator<Item = (usize, Place)> {
        self.sources()
            .map(|source| (source.number, source.cursor.position()))
    }

    /// Whether no row is left.
    pub fn is_exhausted(&mut self) -> bool {
        self.least().is_none()
    }

    /// The next rows that are in order and lie in one page.
    #[inline]
    pub fn take_front(&mut self) -> Option<Span<'s, V>> {
        if let Some(source) = &mut self.only {
            return source.cursor.next_front();
        }
        self.take_least()
    }

    /// The next row, if another source is next after it: sources that interleave give one row at a
    /// time, and a slice of one costs more than the row. `None` says nothing about what is left.
    #[inline]
    pub fn take_single(&mut self) -> Option<(Ts, &'s V)> {
        let heads = self.heads.as_mut()?;
        let ((_, least), (other, runner_up)) = heads.first_two()?;
        let is_inclusive = (least < runner_up) != planted!("newer_source_first");
        let (row, head) = self.many[least].cursor.take_single(other, is_inclusive)?;
        heads.replace_first((head, least));
        Some(row)
    }

    /// As `take_front`, of many sources: the least gives what comes before the runner-up.
    fn take_least(&mut self) -> Option<Span<'s, V>> {
        let Some(heads) = &mut self.heads else {
            self.find_heads();
            return self.take_front();
        };
        let ((_, least), (other, runner_up)) = heads.first_two()?;
        let is_inclusive = (least < runner_up) != planted!("newer_source_first");
        let (taken, head) = self.many[least].cursor.take_before(other, is_inclusive);
        match head {
            Some(head) => heads.replace_first((head, least)),
            None => self.remove(least),
        }
        Some(taken)
    }

    /// As `take_front`, and the page if the rows are all of it.
    pub fn take_front_and_page(&mut self) -> Option<Taken<'s, V>> {
        let (index, rows) = self.least()?;
        let source = self.only.as_ref().unwrap_or_else(|| &self.many[index]);
        let page = source.cursor.whole_page();
        let page = page.filter(|page| page.len() == rows);
        Some((self.take(index, rows), page))
    }

    /// The next rows of the source whose first timestamp is least, whether or not others overlap
    /// them.
    #[inline]
    pub fn take_whole(&mut self) -> Option<Span<'s, V>> {
        if self.only.is_none() {
            self.find_heads();
        }
        if let Some(source) = &mut self.only {
            return source.cursor.next_front();
        }
        let ((_, index), _) = self.heads.as_ref()?.first_two()?;
        let rows = self.many[index].cursor.front().len();
        Some(self.take(index, rows))
    }

    /// The last rows that are in order and lie in one page.
    #[inline]
    pub fn take_back(&mut self) -> Option<Span<'s, V>> {
        if self.only.is_none() {
            self.find_tails();
        }
        if let Some(source) = &mut self.only {
            return source.cursor.next_back();
        }
        let tails = self.tails.as_mut()?;
        let ((_, greatest), (other, runner_up)) = tails.first_two()?;
        let (greatest, other, runner_up) = (!greatest, !other, !runner_up);
        let cursor = &mut self.many[greatest].cursor;
        let back = cursor.back();
        let rows = if greatest > runner_up {
            all_or_gallop_back(back.timestamps(), |ts| ts >= other)
        } else {
            all_or_gallop_back(back.timestamps(), |ts| ts > other)
        };
        let taken = cursor.take_back(rows);
        let back = cursor.back();
        if back.is_empty() {
            self.remove(greatest);
        } else {
            tails.replace_first((!back.last(), !greatest));
        }
        Some(taken)
    }

    fn sources(&self) -> impl Iterator<Item = &Source<'s, V>> {
        self.only.iter().chain(&self.many)
    }

    /// The source that is next, and how many of its rows come before all others: one or more, in
    /// one page.
    #[inline]
    fn least(&mut self) -> Option<(usize, usize)> {
        if self.only.is_none() {
            self.find_heads();
        }
        if let Some(source) = &mut self.only {
            let rows = source.cursor.front().len();
            return (rows > 0).then_some((0, rows));
        }
        let ((_, least), (other, runner_up)) = self.heads.as_ref()?.first_two()?;
        let front = self.many[least].cursor.front();
        let is_inclusive = (least < runner_up) != planted!("newer_source_first");
        let rows = all_or_gallop(front.timestamps(), |ts| is_before(ts, other, is_inclusive));
        Some((least, rows))
    }

    /// Takes rows that `least` gave.
    #[inline]
    fn take(&mut self, index: usize, rows: usize) -> Span<'s, V> {
        if let Some(source) = &mut self.only {
            return source.cursor.take_front(rows);
        }
        let cursor = &mut self.many[index].cursor;
        let taken = cursor.take_front(rows);
        let front = cursor.front();
        if front.is_empty() {
            self.remove(index);
        } else if let Some(heads) = &mut self.heads {
            heads.replace_first((front.first(), index));
        }
        taken
    }

    fn find_heads(&mut self) {
        if self.heads.is_none() {
            let cursors = (0..).zip(self.many.iter_mut().map(|source| &mut source.cursor));
            let heads = cursors.filter_map(|(index, cursor)| {
                let first = cursor.front().timestamps().first().copied();
                first.map(|first| (first, index))
            });
            self.heads = Some(Order::of(heads.collect()));
            self.keep_only();
        }
    }

    fn find_tails(&mut self) {
        if self.tails.is_none() {
            let cursors = (0..).zip(self.many.iter_mut().map(|source| &mut source.cursor));
            let tails = cursors.filter_map(|(index, cursor): (usize, _)| {
                let last = cursor.back().timestamps().last().copied();
                last.map(|last| (!last, !index))
            });
            self.tails = Some(Order::of(tails.collect()));
            self.keep_only();
        }
    }

    /// Removes a source that has no more rows.
    #[cold]
    fn remove(&mut self, index: usize) {
        if let Some(heads) = &mut self.heads {
            heads.remove(index);
        }
        if let Some(tails) = &mut self.tails {
            tails.remove(!index);
        }
        self.keep_only();
    }

    fn keep_only(&mut self) {
        let left = |order: &Order| (order.0.len() == 1).then(|| order.0[0].1);
        let index = self.heads.as_ref().and_then(left);
        let index = index.or_else(|| self.tails.as_ref().and_then(left).map(|index| !index));
        if let Some(index) = index {
            self.only = Some(self.many.swap_remove(index));
            self.many.clear();
        }
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

/// As `gallop`, after a look at the second and the last.
#[inline]
pub(super) fn all_or_gallop(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    // Sources that interleave give one row at a time.
    if ts.get(1).is_some_and(|second| !holds(*second)) {
        return ts.first().map_or(0, |first| usize::from(holds(*first)));
    }
    if ts.last().is_none_or(|last| holds(*last)) {
        ts.len()
    } else {
        gallop(ts, holds)
    }
}

/// As `gallop_back`, after a look at the last but one and the first.
#[inline]
fn all_or_gallop_back(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    if let [.., before, last] = ts
        && !holds(*before)
    {
        return usize::from(holds(*last));
    }
    if ts.first().is_none_or(|first| holds(*first)) {
        ts.len()
    } else {
        gallop_back(ts, holds)
    }
}

/// Whether a row comes before the first of another source, which wins among equals unless this is
/// inclusive.
#[inline]
pub(super) fn is_before(ts: Ts, other: Ts, is_inclusive: bool) -> bool {
    ts < other || (is_inclusive && ts == other)
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

    #[test]
    fn galloping_finds_every_place() {
        for len in 0..40 {
            let ts: Vec<Ts> = (0..len).collect();
            for end in -1..=len {
                let expected = ts.iter().filter(|ts| **ts <= end).count();
                assert_eq!(all_or_gallop(&ts, |ts| ts <= end), expected);
                assert_eq!(all_or_gallop_back(&ts, |ts| ts > end), ts.len() - expected);
            }
        }
    }
}
