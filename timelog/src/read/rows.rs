//! Rows of a range, from both ends.

use std::fmt;
use std::iter::FusedIterator;

use super::{Cursor, Merge};
use crate::Ts;
use crate::column::{Batch, Rest, Span};

/// The rows of a range in order, from [`Snapshot::range`](crate::Snapshot::range).
///
/// `next` gives the least by (timestamp, arrival), `next_back` the greatest; they meet, and each
/// row is given once.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog};
///
/// let mut log = MemLog::new(Config::default())?;
/// log.extend([(2, 'b'), (1, 'a'), (3, 'c'), (2, 'd')])?;
/// let snapshot = log.snapshot();
/// let mut rows = snapshot.range(..);
/// assert_eq!(rows.next(), Some((1, &'a')));
/// assert_eq!(rows.next_back(), Some((3, &'c')));
/// assert_eq!(rows.remaining(), 2);
/// assert_eq!(rows.collect::<Vec<_>>(), [(2, &'b'), (2, &'d')]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rows<'s, V> {
    front: Rest<'s, V>,
    merge: Merge<'s, V>,
    back: Rest<'s, V>,
}

impl<V> fmt::Debug for Rows<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl<V> Clone for Rows<'_, V> {
    fn clone(&self) -> Self {
        Self {
            front: self.front,
            merge: self.merge.clone(),
            back: self.back,
        }
    }
}

impl<'s, V> Rows<'s, V> {
    pub(crate) const EMPTY: Self = Self {
        front: Rest::EMPTY,
        merge: Merge::Empty,
        back: Rest::EMPTY,
    };

    /// Takes a source that is newer than those before.
    #[inline]
    pub(crate) fn push(&mut self, source: Cursor<'s, V>) {
        self.merge.push(source);
    }

    /// The number of rows that are left. Computed by each call: a few binary searches for every
    /// source and delete.
    pub fn remaining(&self) -> u64 {
        (self.front.len() + self.merge.remaining() + self.back.len()) as u64
    }

    /// The next rows as slices: the longest run in order that lies in one page, not copied.
    ///
    /// The slices in sequence are the rows of `next`; the calls mix.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..1_000).map(|ts| (ts, 1)))?;
    /// let snapshot = log.snapshot();
    /// let mut rows = snapshot.range(10..20);
    /// let mut sum = 0;
    /// while let Some(span) = rows.next_slice() {
    ///     sum += span.values().iter().sum::<i32>();
    /// }
    /// assert_eq!(sum, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn next_slice(&mut self) -> Option<Span<'s, V>> {
        if self.front.is_empty() {
            self.load_front();
        }
        let span = self.front.take();
        (!span.is_empty()).then_some(span)
    }

    /// As [`next_slice`](Self::next_slice), of at most so many rows.
    pub(crate) fn next_slice_of(&mut self, most: usize) -> Option<Span<'s, V>> {
        let span = self.next_slice()?;
        let (taken, rest) = span.split_at(span.len().min(most));
        self.front = rest.into();
        Some(taken)
    }

    /// Replaces what is in `out` by copies of the next `n` rows, or of those that are left, and
    /// gives their number. Copies slices, and asks for memory only if `out` has too little.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..25).map(|ts| (ts, ts)))?;
    /// let snapshot = log.snapshot();
    /// let (mut rows, mut batch) = (snapshot.range(..), timelog::Batch::default());
    /// let sizes = std::iter::from_fn(|| Some(rows.next_batch(10, &mut batch)).filter(|n| *n > 0));
    /// assert!(sizes.eq([10, 10, 5]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_batch(&mut self, n: usize, out: &mut Batch<V>) -> usize
    where
        V: Clone,
    {
        out.timestamps.clear();
        out.values.clear();
        while out.timestamps.len() < n {
            let Some(taken) = self.next_slice_of(n - out.timestamps.len()) else {
                break;
            };
            out.values.extend_from_slice(taken.values());
            out.timestamps.extend_from_slice(taken.timestamps());
        }
        out.timestamps.len()
    }

    /// Passes over rows, a slice at a time.
    pub(crate) fn skip_rows(&mut self, mut rows: usize) {
        while rows > 0 {
            let Some(passed) = self.next_slice_of(rows) else {
                break;
            };
            rows -= passed.len();
        }
    }

    #[inline(never)]
    fn next_loaded(&mut self) -> Option<(Ts, &'s V)> {
        if let Some(row) = self.merge.take_single() {
            return Some(row);
        }
        self.load_front();
        self.front.pop_first()
    }

    #[inline(never)]
    fn load_front(&mut self) {
        self.front = match self.merge.take_front() {
            Some(span) => span.into(),
            None => std::mem::replace(&mut self.back, Rest::EMPTY),
        };
    }

    #[inline(never)]
    fn load_back(&mut self) {
        self.back = match self.merge.take_back() {
            Some(span) => span.into(),
            None => std::mem::replace(&mut self.front, Rest::EMPTY),
        };
    }
}

impl<'s, V> Iterator for Rows<'s, V> {
    type Item = (Ts, &'s V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.front.pop_first() {
            Some(row) => Some(row),
            None => self.next_loaded(),
        }
    }

    fn nth(&mut self, rows: usize) -> Option<Self::Item> {
        self.skip_rows(rows);
        self.next()
    }

    /// By slices: the inner loop has no state to keep.
    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, init: B, mut f: F) -> B {
        let mut result = init;
        while let Some(span) = self.next_slice() {
            let rows = span.timestamps().iter().copied().zip(span.values());
            result = rows.fold(result, &mut f);
        }
        result
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Counting costs searches; a lower bound is enough.
        (self.front.len() + self.back.len(), None)
    }

    fn count(self) -> usize {
        self.remaining() as usize
    }
}

impl<V> DoubleEndedIterator for Rows<'_, V> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.is_empty() {
            self.load_back();
        }
        self.back.pop_last()
    }
}

impl<V> FusedIterator for Rows<'_, V> {}
