//! The log in memory.

mod accept;
mod access;
mod core;
#[cfg(test)]
mod growth;
#[cfg(feature = "durable")]
mod load;
mod maintain;
mod outcome;
mod trash;

use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

pub use access::Reader;
use access::State;
#[cfg(feature = "durable")]
pub(crate) use load::Bulk;
pub use outcome::{Appended, Progress};

pub(crate) use self::core::Core;
use crate::{
    Broken, Config, ConfigError, Seq, Snapshot, Stats, TimeRange, Ts, WriteError, WriteErrorKind,
};

/// A log of time-stamped values in memory: appended in any order, read in time order, deleted by
/// range.
///
/// It reads no clock, does no I/O and starts no thread. Maintenance is the caller's:
/// [`step`](Self::step) does a bounded part of it, [`flush`](Self::flush) and
/// [`compact`](Self::compact) all of it.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog};
///
/// let mut log = MemLog::new(Config::default())?;
/// log.append(20, "late rows are welcome")?;
/// log.extend([(10, "first"), (30, "third")])?;
/// log.delete(25..)?;
/// log.append(40, "after the delete")?;
///
/// let rows: Vec<_> = log.snapshot().into_rows(..).collect();
/// assert_eq!(rows, [(10, "first"), (20, "late rows are welcome"), (40, "after the delete")]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemLog<V> {
    state: State<V>,
}

impl<V> fmt::Debug for MemLog<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.look(|core| core.fmt(f))
    }
}

impl<V: Clone + 'static> MemLog<V> {
    /// An empty log.
    ///
    /// # Errors
    /// If a field of the configuration is out of range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let limits = config.limits(size_of::<Ts>() + size_of::<V>())?;
        Ok(Self {
            state: State::Own(Box::new(Core::new(Arc::new(limits), config.floor))),
        })
    }

    /// Adds a row after all rows of the same timestamp.
    ///
    /// O(1) in order or slightly late, else amortized O(log n) of the late rows. Every
    /// `memtable_bytes` one call seals the memtable, which moves no row. Under
    /// [`Busy::Flush`](crate::Busy::Flush) a part of what maintenance is due besides.
    ///
    /// # Errors
    /// `BelowFloor`, `Full`; the value is given back.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// let appended = log.append(5, "first")?;
    /// log.append(5, "second")?;
    /// assert_eq!((appended.first.0, appended.pressure), (1, false));
    /// let snapshot = log.snapshot();
    /// assert!(snapshot.at(5).map(|row| *row.1).eq(["first", "second"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn append(&mut self, ts: Ts, value: V) -> Result<Appended, WriteError<V>> {
        match self.state.append_plain(ts, value) {
            Ok(appended) => Ok(appended),
            Err(value) => self.append_any(ts, value),
        }
    }

    /// Apart, so that what most appends need becomes part of the caller.
    #[inline(never)]
    fn append_any(&mut self, ts: Ts, value: V) -> Result<Appended, WriteError<V>> {
        self.state.access().append(ts, value)
    }

    /// Adds rows in the order given: all or none. Cheaper for a row than `append`.
    ///
    /// The iterator is drained first; if it panics, nothing has changed. An empty batch changes
    /// nothing.
    ///
    /// # Errors
    /// `BelowFloor`, `Full`; the rows are given back.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default().floor(10))?;
    /// assert_eq!(log.extend([(12, 'a'), (11, 'b')])?.rows, 2);
    /// let refused = log.extend([(13, 'c'), (9, 'd')]).unwrap_err();
    /// assert_eq!(refused.rejected, [(13, 'c'), (9, 'd')]);
    /// assert_eq!(log.snapshot().count(..), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn extend(
        &mut self,
        rows: impl IntoIterator<Item = (Ts, V)>,
    ) -> Result<Appended, WriteError<Vec<(Ts, V)>>> {
        let rows: Vec<(Ts, V)> = rows.into_iter().collect();
        let mut core = self.state.access();
        if let Err(kind) = core.admit_batch(rows.len(), rows.iter().map(|row| row.0)) {
            return Err(WriteError {
                kind,
                rejected: rows,
            });
        }
        Ok(core.insert_all(rows))
    }

    /// As [`extend`](Self::extend), of rows as two columns of one length. The values are cloned.
    ///
    /// # Errors
    /// `LengthMismatch`, `BelowFloor`, `Full`.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// assert_eq!(log.extend_columns(&[1, 2], &["a", "b"])?.rows, 2);
    /// assert!(log.extend_columns(&[1, 2], &["a"]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn extend_columns(&mut self, ts: &[Ts], values: &[V]) -> Result<Appended, WriteError<()>> {
        let refuse = |kind| WriteError { kind, rejected: () };
        if ts.len() != values.len() {
            let kind = WriteErrorKind::LengthMismatch {
                timestamps: ts.len(),
                values: values.len(),
            };
            return Err(refuse(kind));
        }
        let mut core = self.state.access();
        core.admit_batch(ts.len(), ts.iter().copied())
            .map_err(refuse)?;
        // Before the first row is in: a clone may panic.
        let rows = ts.iter().copied().zip(values.iter().cloned());
        Ok(core.insert_all(rows.collect()))
    }

    /// Deletes the rows of a range that were accepted before; rows accepted after it are not
    /// affected. A few searches, whatever the number of deletes: hidden rows stay in memory until
    /// they are compacted.
    ///
    /// # Errors
    /// `EmptyRange`, if the range is empty or reversed.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..10).map(|ts| (ts, ts)))?;
    /// log.delete(3..)?;
    /// log.append(5, 50)?;
    /// assert_eq!(log.snapshot().count(..), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete(&mut self, range: impl RangeBounds<Ts>) -> Result<Seq, WriteError<()>> {
        match TimeRange::new(range).bounds() {
            Some((first, last)) => Ok(self.state.access().hide(first, last)),
            None => Err(WriteError {
                kind: WriteErrorKind::EmptyRange,
                rejected: (),
            }),
        }
    }

    /// Deletes the rows at one timestamp.
    pub fn delete_at(&mut self, ts: Ts) -> Seq {
        self.state.access().hide(ts, ts)
    }

    /// Deletes the rows before a timestamp. Before `i64::MIN` there is none.
    pub fn delete_before(&mut self, ts: Ts) -> Seq {
        self.state.access().hide_before(ts)
    }

    /// Deletes the rows before a timestamp, and refuses such rows from now on. `None` if the floor
    /// is as high already: it never goes down.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend([(1, 'a'), (2, 'b')])?;
    /// assert!(log.raise_floor(2).is_some());
    /// assert!(log.raise_floor(1).is_none());
    /// assert_eq!(log.snapshot().first(), Some(2));
    /// assert!(log.append(1, 'c').is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn raise_floor(&mut self, ts: Ts) -> Option<Seq> {
        self.state.access().raise_floor(ts)
    }

    /// What the log holds now; it never changes. O(1) if nothing was written since the last one,
    /// else at most a few hundred rows are copied.
    pub fn snapshot(&mut self) -> Snapshot<V> {
        self.state.access().snapshot()
    }

    /// A handle that takes snapshots without the log: from other threads, or while it is borrowed.
    ///
    /// From then on each call of the log takes an uncontended lock, which costs some ten
    /// nanoseconds.
    pub fn reader(&mut self) -> Reader<V> {
        self.state.share()
    }

    /// Writes all rows to segments. A compaction that is under way waits.
    pub fn flush(&mut self) {
        self.state.access().seal();
        let rows = self.state.portion();
        while self.state.access().advance_flush(rows) > 0 {}
        while self.state.access().tidy(rows) > 0 {}
    }

    /// Asks for all that overlaps, hides rows or is small to be merged by the next
    /// [`step`](Self::step)s.
    pub fn request_compaction(&mut self) {
        self.state.access().request_compaction();
    }

    /// Does a part of what is to be done: flushes sealed memtables, drops what is no longer needed,
    /// then compacts. Moves at most `rows` rows and one page, fewer where rows of several sources
    /// alternate, or drops or searches as many; at least one. Asks for the memory that appends will
    /// need next, too.
    ///
    /// # Examples
    ///
    /// ```
    /// use timelog::Progress;
    /// # let mut log = timelog::MemLog::new(timelog::Config::default().memtable_bytes(256))?;
    /// log.extend((0..100).map(|ts| (ts, ts)))?;
    /// while log.step(10) == Progress::More {}
    /// assert_eq!(log.stats().segment_rows, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn step(&mut self, rows: usize) -> Progress {
        self.state.access().step(rows)
    }

    /// Requests a compaction and takes steps until there is nothing to do. Rows that are not
    /// flushed stay so.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..100).map(|ts| (ts, ts)))?;
    /// log.flush();
    /// log.delete(10..90)?;
    /// assert_eq!((log.stats().segment_rows, log.stats().hidden_rows), (100, 80));
    /// log.compact();
    /// assert_eq!((log.stats().segment_rows, log.stats().delete_intervals), (20, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&mut self) {
        self.request_compaction();
        let rows = self.state.portion();
        while self.step(rows) == Progress::More {}
    }

    /// The number of the last operation.
    #[cfg(feature = "durable")]
    pub(crate) fn seq(&self) -> Seq {
        self.state.look(|core| core.seq)
    }

    /// Has the operations that follow be numbered after `seq`: what there is was read from files, by
    /// fewer operations than it was written by.
    #[cfg(feature = "durable")]
    pub(crate) fn set_seq(&mut self, seq: Seq) {
        self.state.access().seq = seq;
    }

    /// Another limit of the configuration than that it was made with.
    #[cfg(feature = "durable")]
    pub(crate) fn set_memory_limit(&mut self, bytes: Option<usize>) {
        let mut core = self.state.access();
        Arc::make_mut(&mut core.limits).memory_limit_bytes = bytes;
    }

    /// The log in numbers, as a [`Stats`]. O(1), but while maintenance has yet to count what
    /// deletes hide: then a search for every segment and delete.
    pub fn stats(&self) -> Stats {
        self.state.look(Core::stats)
    }

    /// Verifies order, levels, fences, counts, watermarks and delete intervals. For tests: visits
    /// every row.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), Broken> {
        self.state.look(Core::check)
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send::<MemLog<u64>>();
    is_send_and_sync::<Reader<u64>>();
    is_send_and_sync::<Snapshot<u64>>();
};
