//! The log in memory.

mod accept;
mod maintain;
mod outcome;

use std::fmt;
use std::sync::Arc;

pub use outcome::{Appended, Progress};

use crate::config::Limits;
use crate::segment::List;
use crate::tombstones::Skyline;
use crate::version::{Version, View};
use crate::write::{Job, Memtable, Windows};
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
    limits: Limits,
    pub(crate) seq: Seq,
    floor: Option<Ts>,
    memtable: Memtable<V>,
    version: Arc<Version<V>>,
    skyline: Arc<Skyline>,
    windows: Windows,
    job: Option<Job<V>>,
    is_compaction_requested: bool,
    /// Calls of `step` in sequence that found nothing to do.
    idle_steps: u32,
    /// Whether nothing was found to do by any trigger, and nothing changed since: an idle step
    /// then costs no search.
    is_settled: bool,
    /// The last snapshot, until something changes.
    cached: Option<Snapshot<V>>,
    counters: Stats,
}

impl<V> fmt::Debug for MemLog<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemLog")
            .field("seq", &self.seq)
            .field("floor", &self.floor)
            .finish_non_exhaustive()
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
            windows: Windows::new(&limits),
            limits,
            seq: Seq(0),
            floor: config.start_floor(),
            memtable: Memtable::new(),
            version: Arc::new(Version::new()),
            skyline: Arc::new(Skyline::new()),
            job: None,
            is_compaction_requested: false,
            idle_steps: 0,
            is_settled: false,
            cached: None,
            counters: Stats::default(),
        })
    }

    /// Adds a row after all rows of the same timestamp.
    ///
    /// O(1) in order or slightly late, else amortized O(log n) of the late rows. Every
    /// `memtable_bytes` one call seals the memtable, which moves no row.
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
    pub fn append(&mut self, ts: Ts, value: V) -> Result<Appended, WriteError<V>> {
        if let Err(kind) = self.admit(&[ts]) {
            return Err(WriteError {
                kind,
                rejected: value,
            });
        }
        self.cached = None;
        let first = self.next_seq();
        self.memtable.insert(ts, value, &self.limits, self.seq);
        self.seq = first;
        Ok(Appended {
            first,
            rows: 1,
            pressure: self.after_write(),
        })
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
        if let Err(kind) = self.admit_batch(rows.len(), rows.iter().map(|row| row.0)) {
            return Err(WriteError {
                kind,
                rejected: rows,
            });
        }
        Ok(self.insert_all(rows))
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
        self.admit_batch(ts.len(), ts.iter().copied())
            .map_err(refuse)?;
        // Before the first row is in: a clone may panic.
        let rows = ts.iter().copied().zip(values.iter().cloned());
        Ok(self.insert_all(rows.collect()))
    }

    /// Deletes the rows of a range that were accepted before; rows accepted after it are not
    /// affected. O(log n): hidden rows stay in memory until they are compacted.
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
    pub fn delete(&mut self, range: impl Into<TimeRange>) -> Result<Seq, WriteError<()>> {
        match range.into().bounds() {
            Some((first, last)) => Ok(self.hide(first, last)),
            None => Err(WriteError {
                kind: WriteErrorKind::EmptyRange,
                rejected: (),
            }),
        }
    }

    /// Deletes the rows at one timestamp.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend([(1, 'a'), (2, 'b'), (2, 'c'), (3, 'd')])?;
    /// log.delete_at(2);
    /// assert_eq!(log.snapshot().count(..), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete_at(&mut self, ts: Ts) -> Seq {
        self.hide(ts, ts)
    }

    /// Deletes the rows before a timestamp. Before `i64::MIN` there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend([(1, 'a'), (2, 'b'), (3, 'c')])?;
    /// log.delete_before(3);
    /// assert_eq!(log.snapshot().first(), Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete_before(&mut self, ts: Ts) -> Seq {
        match ts.checked_sub(1) {
            Some(last) => self.hide(Ts::MIN, last),
            None => {
                self.cached = None;
                self.seq = self.next_seq();
                self.seq
            }
        }
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
        if self.floor.is_some_and(|floor| floor >= ts) {
            return None;
        }
        self.cached = None;
        self.floor = Some(ts);
        Some(self.delete_before(ts))
    }

    /// What the log holds now; it never changes. O(1) if nothing was written since the last one,
    /// else at most a few hundred rows are copied.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.append(1, 'a')?;
    /// let snapshot = log.snapshot();
    /// log.append(2, 'b')?;
    /// drop(log);
    /// assert_eq!(snapshot.count(..), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&mut self) -> Snapshot<V> {
        if let Some(cached) = &self.cached {
            return cached.clone();
        }
        let view = View {
            seq: self.seq,
            version: Arc::clone(&self.version),
            memtable: self.memtable.view(self.seq),
            skyline: Arc::clone(&self.skyline),
        };
        self.cached.insert(Snapshot::new(view)).clone()
    }

    /// Writes all rows to segments. Finishes a compaction that is under way first.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..100).map(|ts| (ts, ts)))?;
    /// log.flush();
    /// assert_eq!((log.stats().memtable_rows, log.stats().segment_rows), (0, 100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&mut self) {
        self.seal();
        while !self.version.sealed.is_empty() {
            self.step(usize::MAX);
        }
    }

    /// Asks for all that overlaps, hides rows or is small to be merged by the next
    /// [`step`](Self::step)s.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend((0..100).map(|ts| (ts, ts)))?;
    /// log.flush();
    /// log.delete_at(50);
    /// log.request_compaction();
    /// while log.step(1_000) == timelog::Progress::More {}
    /// assert_eq!(log.stats().segment_rows, 99);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request_compaction(&mut self) {
        self.is_compaction_requested = true;
        self.is_settled = false;
    }

    /// Does a part of what is to be done: flushes sealed memtables, then compacts. Moves at most
    /// `rows` rows and one page, and at least one row. Asks for the memory that appends will need
    /// next, too.
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
        self.memtable.prepare(&self.limits);
        if self.is_settled {
            return Progress::Idle;
        }
        // Out of the log while it runs: if a clone panics the job is dropped, and the next starts
        // anew.
        let Some(mut job) = self.job.take().or_else(|| self.next_job()) else {
            self.idle_steps = self.idle_steps.saturating_add(1);
            return Progress::Idle;
        };
        self.idle_steps = 0;
        if job.step(rows, &self.limits) {
            self.publish(job);
        } else {
            self.job = Some(job);
        }
        Progress::More
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
        while self.step(usize::MAX) == Progress::More {}
    }

    /// The log in numbers, as a [`Stats`]. Costs a search for every segment and delete.
    pub fn stats(&self) -> Stats {
        let version = &*self.version;
        let sealed_rows = version.sealed.iter().map(|sealed| sealed.rows).sum();
        Stats {
            seq: self.seq,
            floor: self.floor,
            memtable_rows: self.memtable.rows(),
            sealed_runs: version.sealed.len(),
            sealed_rows,
            unflushed_bytes: (self.memtable.rows() + sealed_rows) * self.limits.row_bytes,
            l0_segments: version.l0.len(),
            l1_segments: version.l1.len(),
            segment_rows: version.segments().map(|segment| segment.rows()).sum(),
            hidden_rows: self.hidden_rows(),
            delete_intervals: self.skyline.len(),
            window_ticks: self.windows.ticks(),
            ..self.counters
        }
    }

    /// Verifies order, levels, fences, counts, watermarks and delete intervals. For tests: visits
    /// every row.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend([(2, 'b'), (1, 'a')])?;
    /// log.check()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self) -> Result<(), Broken> {
        self.skyline.check(self.seq)?;
        self.memtable.check(self.seq)?;
        self.version.check(self.seq)
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send::<MemLog<u64>>();
    is_send_and_sync::<Snapshot<u64>>();
    is_send::<List<u64>>();
};
