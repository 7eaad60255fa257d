//! Whole stretches of pages.

use std::fmt;
use std::iter::FusedIterator;

use super::{Cursor, Merge};
use crate::column::Span;

/// The rows of a range as slices of pages, from [`Snapshot::spans`](crate::Snapshot::spans): by
/// first timestamp, and possibly overlapping in time.
pub struct Spans<'s, V> {
    merge: Merge<'s, V>,
}

impl<V> fmt::Debug for Spans<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans")
            .field("rows", &self.merge.remaining())
            .finish_non_exhaustive()
    }
}

impl<V> Clone for Spans<'_, V> {
    fn clone(&self) -> Self {
        Self {
            merge: self.merge.clone(),
        }
    }
}

impl<'s, V> Spans<'s, V> {
    pub(crate) const EMPTY: Self = Self {
        merge: Merge::Empty,
    };

    /// Takes a source that is newer than those before.
    #[inline]
    pub(crate) fn push(&mut self, source: Cursor<'s, V>) {
        self.merge.push(source);
    }
}

impl<'s, V> Iterator for Spans<'s, V> {
    type Item = Span<'s, V>;

    fn next(&mut self) -> Option<Span<'s, V>> {
        self.merge.take_whole()
    }
}

impl<V> FusedIterator for Spans<'_, V> {}
