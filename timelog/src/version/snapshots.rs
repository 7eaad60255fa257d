//! Snapshots of several logs, read as one.

use std::fmt;
use std::ops::{Deref, RangeBounds};

use super::Snapshot;
use crate::read::{Buckets, Every, Number, Rows};
use crate::{TimeRange, Ts};

/// Snapshots of several logs, read in one order: by timestamp, then by the place of the log, then by
/// arrival.
///
/// Rows are merged while they are read and not copied, so a scan takes no memory for its rows, and as
/// long as its reader likes. What the snapshots show stays in memory meanwhile.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog, Snapshots};
///
/// let mut logs = [MemLog::new(Config::default())?, MemLog::new(Config::default())?];
/// logs[1].extend([(10, "b"), (20, "c")])?;
/// logs[0].extend([(10, "a"), (30, "d")])?;
/// let all: Snapshots<_> = logs.iter_mut().map(|log| log.snapshot()).collect();
/// let values: String = all.range(..).map(|(_, value)| *value).collect();
/// assert_eq!((values.as_str(), all.count(..30)), ("abcd", 3));
/// assert_eq!(all[1].last(), Some(20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Snapshots<V> {
    each: Box<[Snapshot<V>]>,
}

impl<V> Clone for Snapshots<V> {
    fn clone(&self) -> Self {
        let each = self.each.clone();
        Self { each }
    }
}

impl<V> fmt::Debug for Snapshots<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.each).finish()
    }
}

impl<V> FromIterator<Snapshot<V>> for Snapshots<V> {
    fn from_iter<I: IntoIterator<Item = Snapshot<V>>>(each: I) -> Self {
        let each = each.into_iter().collect();
        Self { each }
    }
}

/// The snapshot of each log.
impl<V> Deref for Snapshots<V> {
    type Target = [Snapshot<V>];

    fn deref(&self) -> &[Snapshot<V>] {
        &self.each
    }
}

impl<V> Snapshots<V> {
    /// As [`Snapshot::range`], over all logs.
    pub fn range(&self, range: impl RangeBounds<Ts>) -> Rows<'_, V> {
        let range = TimeRange::new(range);
        let mut rows = Rows::EMPTY;
        for snapshot in &self.each {
            snapshot.for_each_source(range, |cursor| rows.push(cursor));
        }
        rows
    }

    /// As [`Snapshot::fold`], over all logs.
    pub fn fold<N: Number, F: FnMut(&V) -> N>(
        &self,
        range: impl RangeBounds<Ts>,
        every: Every,
        number: F,
    ) -> Buckets<'_, V, F> {
        Buckets::new(self.range(range), every, number)
    }

    /// As [`Snapshot::count`], over all logs.
    pub fn count(&self, range: impl RangeBounds<Ts>) -> u64 {
        let range = TimeRange::new(range);
        self.each.iter().map(|it| it.count(range)).sum()
    }

    /// The least timestamp that has a row in any of the logs.
    pub fn first(&self) -> Option<Ts> {
        self.each.iter().filter_map(Snapshot::first).min()
    }

    /// The greatest timestamp that has a row in any of the logs.
    pub fn last(&self) -> Option<Ts> {
        self.each.iter().filter_map(Snapshot::last).max()
    }
}
