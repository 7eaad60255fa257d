//! Rows as two columns, and views of them.

use std::mem::{self, MaybeUninit};
use std::ops::Range;

use crate::Ts;

/// Rows in time order, timestamps and values apart.
#[derive(Debug)]
pub(crate) struct Columns<V> {
    pub ts: Vec<Ts>,
    pub values: Vec<V>,
}

impl<V> Columns<V> {
    pub const fn new() -> Self {
        Self {
            ts: Vec::new(),
            values: Vec::new(),
        }
    }

    pub fn with_capacity(rows: usize) -> Self {
        Self {
            ts: Vec::with_capacity(rows),
            values: Vec::with_capacity(rows),
        }
    }

    /// As `with_capacity`, with every page of the memory written to once: the kernel gives a page
    /// when that happens, which takes longer than dozens of appends.
    pub fn touched(rows: usize) -> Self {
        let mut columns = Self::with_capacity(rows);
        touch(columns.ts.spare_capacity_mut());
        touch(columns.values.spare_capacity_mut());
        columns
    }

    pub fn len(&self) -> usize {
        self.ts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ts.is_empty()
    }

    /// Whether another row would need more memory for its timestamp.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.ts.len() == self.ts.capacity()
    }

    /// Makes memory for so many more rows.
    pub fn reserve(&mut self, rows: usize) {
        self.ts.reserve_exact(rows);
        self.values.reserve_exact(rows);
    }

    pub fn span(&self, rows: Range<usize>) -> Span<'_, V> {
        Span {
            timestamps: &self.ts[rows.clone()],
            values: &self.values[rows],
        }
    }

    /// Copies `span` to the end. If a clone panics, the columns differ in length: the owner drops
    /// them.
    pub fn push_span(&mut self, span: Span<'_, V>)
    where
        V: Clone,
    {
        self.values.extend_from_slice(span.values);
        self.ts.extend_from_slice(span.timestamps);
    }

    /// Moves rows to the end.
    pub fn extend(&mut self, rows: impl Iterator<Item = (Ts, V)>) {
        // As a pair the columns ask for room once, not for each row.
        let mut columns = (mem::take(&mut self.ts), mem::take(&mut self.values));
        columns.extend(rows);
        (self.ts, self.values) = columns;
    }

    /// Merges two that are in order row by row, of equals the older first: the runs of late rows
    /// interleave, and looking for stretches would cost more. If a clone panics, as
    /// `push_span`.
    pub fn push_both(&mut self, older: &Self, newer: &Self)
    where
        V: Clone,
    {
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (older.ts.get(i), newer.ts.get(j)) {
            if b < a {
                self.values.push(newer.values[j].clone());
                self.ts.push(*b);
                j += 1;
            } else {
                self.values.push(older.values[i].clone());
                self.ts.push(*a);
                i += 1;
            }
        }
        self.push_span(older.span(i..older.len()));
        self.push_span(newer.span(j..newer.len()));
    }

    /// Gives memory back when more than a ninth of it is not used.
    pub fn trim(&mut self) {
        if self.ts.capacity() > self.len() + self.len() / 8 {
            self.ts.shrink_to_fit();
            self.values.shrink_to_fit();
        }
    }
}

fn touch<T>(memory: &mut [MaybeUninit<T>]) {
    const PAGE_BYTES: usize = 4_096;
    let Some(step) = PAGE_BYTES.checked_div(size_of::<T>()) else {
        return;
    };
    for slot in memory.iter_mut().step_by(step.max(1)) {
        *slot = MaybeUninit::zeroed();
    }
}

impl<V> From<Vec<(Ts, V)>> for Columns<V> {
    fn from(rows: Vec<(Ts, V)>) -> Self {
        let (ts, values) = rows.into_iter().unzip();
        Self { ts, values }
    }
}

/// Rows that lie side by side in one page: their timestamps and values as slices, not copied.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog};
///
/// let mut log = MemLog::new(Config::default())?;
/// log.extend([(1, 'a'), (2, 'b')])?;
/// let snapshot = log.snapshot();
/// let span = snapshot.spans(..).next().unwrap();
/// assert_eq!((span.timestamps(), span.values()), (&[1, 2][..], &['a', 'b'][..]));
/// assert_eq!((span.first(), span.last(), span.len()), (1, 2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Span<'s, V> {
    timestamps: &'s [Ts],
    values: &'s [V],
}

impl<V> Clone for Span<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Span<'_, V> {}

impl<'s, V> Span<'s, V> {
    pub(crate) const EMPTY: Self = Self {
        timestamps: &[],
        values: &[],
    };

    /// The timestamps, in order.
    pub fn timestamps(&self) -> &'s [Ts] {
        self.timestamps
    }

    /// The values, in the same order.
    pub fn values(&self) -> &'s [V] {
        self.values
    }

    /// The number of rows: one or more in every span that a read gives.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// The first timestamp.
    ///
    /// # Panics
    /// If the span is empty, which none is that a read gives.
    pub fn first(&self) -> Ts {
        self.timestamps[0]
    }

    /// The last timestamp.
    ///
    /// # Panics
    /// If the span is empty, which none is that a read gives.
    pub fn last(&self) -> Ts {
        self.timestamps[self.timestamps.len() - 1]
    }

    /// The first `rows` rows, and the rest.
    pub(crate) fn split_at(self, rows: usize) -> (Self, Self) {
        let (timestamps, ts_rest) = self.timestamps.split_at(rows);
        let (values, values_rest) = self.values.split_at(rows);
        (
            Self { timestamps, values },
            Self {
                timestamps: ts_rest,
                values: values_rest,
            },
        )
    }

    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<(Ts, &'s V)> {
        let (ts, timestamps) = self.timestamps.split_first()?;
        let (value, values) = self.values.split_first()?;
        *self = Self { timestamps, values };
        Some((*ts, value))
    }
}

/// A span that rows are taken from at both ends. A row that is taken moves one index; taken from a
/// span, it would store two slices.
#[derive(Debug)]
pub(crate) struct Rest<'s, V> {
    span: Span<'s, V>,
    start: usize,
    end: usize,
}

impl<V> Clone for Rest<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Rest<'_, V> {}

impl<'s, V> From<Span<'s, V>> for Rest<'s, V> {
    #[inline]
    fn from(span: Span<'s, V>) -> Self {
        let (start, end) = (0, span.len());
        Self { span, start, end }
    }
}

impl<'s, V> Rest<'s, V> {
    pub const EMPTY: Self = Self {
        span: Span::EMPTY,
        start: 0,
        end: 0,
    };

    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// All that is left.
    #[inline]
    pub fn take(&mut self) -> Span<'s, V> {
        let rows = self.start..self.end;
        self.start = self.end;
        Span {
            timestamps: &self.span.timestamps[rows.clone()],
            values: &self.span.values[rows],
        }
    }

    #[inline]
    pub fn pop_first(&mut self) -> Option<(Ts, &'s V)> {
        let row = self.row(self.start)?;
        self.start += 1;
        Some(row)
    }

    #[inline]
    pub fn pop_last(&mut self) -> Option<(Ts, &'s V)> {
        let last = self.end.checked_sub(1)?;
        let row = self.row(last)?;
        self.end = last;
        Some(row)
    }

    #[inline]
    fn row(&self, row: usize) -> Option<(Ts, &'s V)> {
        if !(self.start..self.end).contains(&row) {
            return None;
        }
        Some((*self.span.timestamps.get(row)?, self.span.values.get(row)?))
    }
}

/// Copied rows, timestamps and values apart: the target of
/// [`Rows::next_batch`](crate::Rows::next_batch).
#[derive(Clone, Debug)]
pub struct Batch<V> {
    /// The timestamps, in order.
    pub timestamps: Vec<Ts>,
    /// The values, in the same order.
    pub values: Vec<V>,
}

impl<V> Default for Batch<V> {
    fn default() -> Self {
        Self {
            timestamps: Vec::new(),
            values: Vec::new(),
        }
    }
}
