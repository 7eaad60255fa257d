//! Rows that own their snapshot.

use std::iter::FusedIterator;
use std::ops::RangeBounds;

use super::Snapshot;
use crate::{Batch, TimeRange, Ts};

/// The rows of a range, copied, from [`Snapshot::into_rows`]. Owns its snapshot, so it may be kept
/// and sent.
#[derive(Debug)]
pub struct IntoRows<V> {
    snapshot: Snapshot<V>,
    rest: TimeRange,
    /// Rows at the start of `rest` that were copied already: they share its first timestamp.
    copied: usize,
    batch: Batch<V>,
}

/// Rows that are copied at once.
const BATCH_ROWS: usize = 256;

impl<V> Snapshot<V> {
    /// The rows of a range, copied, from an iterator that owns the snapshot.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend([(2, "b"), (1, "a")])?;
    /// let rows = log.snapshot().into_rows(..);
    /// drop(log);
    /// assert!(rows.eq([(1, "a"), (2, "b")]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_rows(self, range: impl RangeBounds<Ts>) -> IntoRows<V>
    where
        V: Clone,
    {
        IntoRows::new(self, TimeRange::new(range))
    }
}

impl<V> IntoRows<V> {
    fn new(snapshot: Snapshot<V>, range: TimeRange) -> Self {
        Self {
            snapshot,
            rest: range,
            copied: 0,
            batch: Batch::default(),
        }
    }
}

impl<V: Clone> IntoRows<V> {
    fn fill(&mut self) {
        let mut batch = Batch::default();
        let mut rows = self.snapshot.range(self.rest);
        rows.skip_rows(self.copied);
        rows.next_batch(BATCH_ROWS, &mut batch);
        if let Some(last) = batch.timestamps.last().copied() {
            let equal = batch
                .timestamps
                .iter()
                .rev()
                .take_while(|ts| **ts == last)
                .count();
            let (first, end) = self.rest.bounds().expect("rows came from it");
            self.copied = if first == last {
                self.copied + equal
            } else {
                equal
            };
            self.rest = (last..=end).into();
        } else {
            self.rest = TimeRange::EMPTY;
        }
        // Taken from the end.
        batch.timestamps.reverse();
        batch.values.reverse();
        self.batch = batch;
    }
}

impl<V: Clone> Iterator for IntoRows<V> {
    type Item = (Ts, V);

    fn next(&mut self) -> Option<(Ts, V)> {
        if self.batch.timestamps.is_empty() && !self.rest.is_empty() {
            self.fill();
        }
        self.batch.timestamps.pop().zip(self.batch.values.pop())
    }
}

impl<V: Clone> FusedIterator for IntoRows<V> {}
