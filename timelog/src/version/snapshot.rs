//! A frozen view of a log, and its reads.

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use super::Version;
use crate::list::List;
use crate::read::{Buckets, Cursor, Every, Number, Rows, Run, Spans};
use crate::tombstones::Skyline;
use crate::{Seq, TimeRange, Ts};

/// What a snapshot shows.
#[derive(Debug)]
pub(crate) struct View<V> {
    pub seq: Seq,
    pub version: Arc<Version<V>>,
    /// The memtable's lanes and late runs, in the order of their equals.
    pub memtable: Vec<List<V>>,
    pub skyline: Arc<Skyline>,
    /// Whether the delete intervals know what they hide in segments.
    pub is_counted: bool,
}

/// A view of a log that never changes: not by writes, flush, compaction, or the drop of the log.
///
/// A clone costs O(1). `Send` and `Sync` when the values are.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog};
///
/// let mut log = MemLog::new(Config::default())?;
/// log.extend([(30, 'c'), (10, 'a'), (20, 'b')])?;
/// let before = log.snapshot();
/// log.delete(..=20)?;
///
/// assert_eq!(before.count(..), 3);
/// assert_eq!(log.snapshot().first(), Some(30));
/// assert_eq!(before.range(15..).next(), Some((20, &'b')));
/// assert_eq!(before.range(15..).next_back(), Some((30, &'c')));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Snapshot<V> {
    view: Arc<View<V>>,
}

impl<V> Clone for Snapshot<V> {
    fn clone(&self) -> Self {
        Self {
            view: Arc::clone(&self.view),
        }
    }
}

impl<V> fmt::Debug for Snapshot<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("seq", &self.view.seq)
            .finish_non_exhaustive()
    }
}

static NOTHING_HIDDEN: Skyline = Skyline::new();

impl<V> Snapshot<V> {
    pub(crate) fn new(view: View<V>) -> Self {
        Self {
            view: Arc::new(view),
        }
    }

    /// The last operation that is seen. O(1).
    pub fn seq(&self) -> Seq {
        self.view.seq
    }

    /// The rows of a range, in order, from both ends. A binary search for every source, then O(1) a
    /// row; where sources overlap, a few comparisons for each change of source.
    pub fn range(&self, range: impl RangeBounds<Ts>) -> Rows<'_, V> {
        self.rows(TimeRange::new(range))
    }

    fn rows(&self, range: TimeRange) -> Rows<'_, V> {
        let mut rows = Rows::EMPTY;
        self.for_each_source(range, |cursor| rows.push(cursor));
        rows
    }

    /// The rows of a range by windows of one width: count, sum, least, greatest and last number of
    /// those windows that have rows, in order. `number` gives the number of a value.
    ///
    /// Windows at the ends of the range hold only the rows inside it. Rows are visited by slices
    /// of pages.
    ///
    /// # Examples
    ///
    /// ```
    /// use timelog::Every;
    ///
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend([(3, 2.5), (61, 4.0), (59, 1.5), (300, 7.0)])?;
    /// let snapshot = log.snapshot();
    /// let mut minutes = snapshot.fold(.., Every::ticks(60)?, |price| *price);
    /// let first = minutes.next().unwrap();
    /// assert_eq!((first.first, first.end, first.count), (0, 59, 2));
    /// assert_eq!((first.sum, first.min, first.max, first.last), (4.0, 1.5, 2.5, 1.5));
    /// assert_eq!(minutes.map(|minute| minute.first).collect::<Vec<_>>(), [60, 300]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fold<N: Number, F: FnMut(&V) -> N>(
        &self,
        range: impl RangeBounds<Ts>,
        every: Every,
        number: F,
    ) -> Buckets<'_, V, F> {
        Buckets::new(self.range(range), every, number)
    }

    /// The rows at one timestamp, in the order of their arrival.
    pub fn at(&self, ts: Ts) -> Rows<'_, V> {
        self.rows(TimeRange::at(ts))
    }

    /// Whether there is a row at `ts`.
    pub fn contains(&self, ts: Ts) -> bool {
        let mut is_found = false;
        self.for_each_source(TimeRange::at(ts), |mut cursor| {
            is_found = is_found || !cursor.front().is_empty();
        });
        is_found
    }

    /// The number of rows in a range. Two binary searches for every source, and for every delete
    /// that hides rows there; rows are not visited.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..1_000).map(|ts| (ts, ts)))?;
    /// log.delete(100..200)?;
    /// assert_eq!(log.snapshot().count(..500), 400);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn count(&self, range: impl RangeBounds<Ts>) -> u64 {
        let Some((first, last)) = TimeRange::new(range).bounds() else {
            return 0;
        };
        let (version, cut) = (&*self.view.version, &*self.view.skyline);
        // All rows of segments, without those that the deletes hide in all of them.
        let in_segments = if self.view.is_counted {
            &NOTHING_HIDDEN
        } else {
            cut
        };
        let mut rows = Run::from(&version.l1).count(in_segments, first, last);
        if !version.l0.is_empty() {
            let l0 = version.l0.overlapping(first, last);
            let l0 = l0.map(|(_, segment)| Run::from(segment).count(in_segments, first, last));
            rows += l0.sum::<usize>();
        }
        if self.view.is_counted && !cut.is_empty() {
            rows -= cut.hidden_between(first, last, |piece| version.rows_under(piece));
        }
        let sealed = version.sealed.iter().flat_map(|sealed| &sealed.lists);
        for list in sealed.chain(&self.view.memtable) {
            rows += Run::from(list).count(cut, first, last);
        }
        rows as u64
    }

    /// The least timestamp greater than `ts` that has a row. A binary search for every source, as
    /// for its relatives below, and for every delete that is crossed.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend([(1, 'a'), (5, 'b'), (9, 'c')])?;
    /// log.delete_at(5);
    /// let snapshot = log.snapshot();
    /// assert_eq!(snapshot.next_after(1), Some(9));
    /// assert_eq!(snapshot.prev_before(9), Some(1));
    /// assert_eq!(snapshot.at_or_after(9), Some(9));
    /// assert_eq!(snapshot.at_or_before(8), Some(1));
    /// assert_eq!(snapshot.next_after(i64::MAX), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_after(&self, ts: Ts) -> Option<Ts> {
        self.at_or_after(ts.checked_add(1)?)
    }

    /// The greatest timestamp less than `ts` that has a row.
    pub fn prev_before(&self, ts: Ts) -> Option<Ts> {
        self.at_or_before(ts.checked_sub(1)?)
    }

    /// The least timestamp that has a row and is not less than `ts`.
    pub fn at_or_after(&self, ts: Ts) -> Option<Ts> {
        let mut least: Option<Ts> = None;
        let mut found = |first: Option<Ts>| least = first.into_iter().chain(least).min();
        if self.view.skyline.is_empty() {
            self.for_each_run(ts, Ts::MAX, |run| found(run.first_from(ts)));
        } else {
            self.for_each_source((ts..).into(), |mut cursor| {
                found(cursor.front().timestamps().first().copied());
            });
        }
        least
    }

    /// The greatest timestamp that has a row and is not greater than `ts`.
    pub fn at_or_before(&self, ts: Ts) -> Option<Ts> {
        let mut greatest: Option<Ts> = None;
        let mut found = |last: Option<Ts>| greatest = last.into_iter().chain(greatest).max();
        if self.view.skyline.is_empty() {
            self.for_each_run(Ts::MIN, ts, |run| found(run.last_to(ts)));
        } else {
            self.for_each_source((..=ts).into(), |mut cursor| {
                found(cursor.back().timestamps().last().copied());
            });
        }
        greatest
    }

    /// The least timestamp that has a row.
    pub fn first(&self) -> Option<Ts> {
        self.at_or_after(Ts::MIN)
    }

    /// The greatest timestamp that has a row.
    pub fn last(&self) -> Option<Ts> {
        self.at_or_before(Ts::MAX)
    }

    /// The rows of a range as slices of pages, not copied and not merged: each row in exactly one
    /// span, unflushed ones too. Inside a span rows are in order; spans are by first timestamp
    /// and may overlap in time.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..100).map(|ts| (ts, ts)))?;
    /// log.delete(10..20)?;
    /// let snapshot = log.snapshot();
    /// let lengths = snapshot.spans(..50).map(|span| span.len());
    /// assert_eq!(lengths.sum::<usize>(), 40);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spans(&self, range: impl RangeBounds<Ts>) -> Spans<'_, V> {
        let mut spans = Spans::EMPTY;
        self.for_each_source(TimeRange::new(range), |cursor| spans.push(cursor));
        spans
    }

    /// As [`spans`](Self::spans), of flushed rows alone and with deletes **not** applied.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..100).map(|ts| (ts, ts)))?;
    /// log.flush();
    /// log.delete(..50)?;
    /// let snapshot = log.snapshot();
    /// assert_eq!(snapshot.physical_spans(..80).map(|span| span.len()).sum::<usize>(), 80);
    /// assert_eq!(snapshot.count(..80), 30);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn physical_spans(&self, range: impl RangeBounds<Ts>) -> Spans<'_, V> {
        let mut spans = Spans::EMPTY;
        if let Some((first, last)) = TimeRange::new(range).bounds() {
            self.for_each_flushed(first, last, &mut |run| {
                if let Some(cursor) = Cursor::new(run, &NOTHING_HIDDEN, first, last) {
                    spans.push(cursor);
                }
            });
        }
        spans
    }

    /// Gives the sources of a range, by age.
    pub(super) fn for_each_source<'s>(
        &'s self,
        range: TimeRange,
        mut give: impl FnMut(Cursor<'s, V>),
    ) {
        let Some((first, last)) = range.bounds() else {
            return;
        };
        let cut = &*self.view.skyline;
        self.for_each_run(first, last, |run| {
            if let Some(cursor) = Cursor::new(run, cut, first, last) {
                give(cursor);
            }
        });
    }

    /// Gives what may have rows from one timestamp to another, both inside, by age.
    fn for_each_run<'s>(&'s self, first: Ts, last: Ts, mut give: impl FnMut(Run<'s, V>)) {
        self.for_each_flushed(first, last, &mut give);
        let sealed = self.view.version.sealed.iter();
        let sealed = sealed.flat_map(|sealed| &sealed.lists);
        sealed
            .chain(&self.view.memtable)
            .map(Run::from)
            .for_each(give);
    }

    /// Gives what is flushed of that, by age.
    fn for_each_flushed<'s>(&'s self, first: Ts, last: Ts, give: &mut impl FnMut(Run<'s, V>)) {
        let version = &*self.view.version;
        give(Run::from(&version.l1));
        if version.l0.is_empty() {
            return;
        }
        let l0 = version.l0.overlapping(first, last);
        l0.for_each(|(_, segment)| give(Run::from(segment)));
    }
}
