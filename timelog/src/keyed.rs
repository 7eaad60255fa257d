//! A log for each key.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::ops::RangeBounds;
use std::sync::Arc;

use crate::config::{Busy, Limits};
use crate::mem_log::Core;
use crate::tombstones::Skyline;
use crate::version::Version;
use crate::{
    Appended, Broken, Config, ConfigError, Progress, Seq, Snapshot, Stats, TimeRange, Ts,
    WriteError, WriteErrorKind,
};

/// A log for each key, with one limit of memory for all of them.
///
/// A key is there from its first row on, until it is [removed](Self::remove). Its log is that of a
/// [`MemLog`](crate::MemLog) of the same configuration, with an order of acceptance of its own. But
/// [`Config::memory_limit_bytes`] is for the unflushed rows of all keys together: under
/// [`Busy::Flush`] a write that meets it flushes the logs that have most of them.
///
/// A key of few rows takes about a kilobyte.
///
/// # Examples
///
/// ```
/// use timelog::{Config, Keyed};
///
/// let mut prices = Keyed::new(Config::streaming().memory_limit_bytes(64 << 20))?;
/// prices.append("ABC", 2, 20.0)?;
/// prices.append("XYZ", 1, 7.5)?;
/// prices.extend("ABC", [(1, 19.5), (3, 20.5)])?;
///
/// assert_eq!(prices.snapshot("ABC").unwrap().count(2..), 2);
/// assert_eq!(prices.len(), 2);
/// assert!(prices.snapshot("DEF").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Keyed<K, V> {
    limits: Arc<Limits>,
    floor: Option<Ts>,
    /// Of all keys.
    memory_limit_bytes: Option<usize>,
    unflushed_rows: usize,
    places: HashMap<K, usize>,
    logs: Vec<Option<Box<Core<V>>>>,
    /// Places without a log.
    free: Vec<usize>,
    /// Logs that may have something to do.
    due: VecDeque<usize>,
    /// Whether a place is among them, also one whose log was removed since.
    is_due: Vec<bool>,
    /// Of a log that has nothing yet, shared until it has.
    nothing: (Arc<Version<V>>, Arc<Skyline>),
}

impl<K, V> fmt::Debug for Keyed<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("keys", &self.places.len())
            .finish_non_exhaustive()
    }
}

impl<K: Hash + Eq, V: Clone + 'static> Keyed<K, V> {
    /// No keys yet.
    ///
    /// # Errors
    /// If a field of the configuration is out of range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let mut limits = config.limits(size_of::<Ts>() + size_of::<V>())?;
        let memory_limit_bytes = limits.memory_limit_bytes.take();
        Ok(Self {
            limits: Arc::new(limits),
            floor: config.floor,
            memory_limit_bytes,
            unflushed_rows: 0,
            places: HashMap::new(),
            logs: Vec::new(),
            free: Vec::new(),
            due: VecDeque::new(),
            is_due: Vec::new(),
            nothing: (Arc::new(Version::new()), Arc::new(Skyline::new())),
        })
    }

    /// Adds a row to the log of `key`. As [`MemLog::append`](crate::MemLog::append).
    ///
    /// # Errors
    /// `BelowFloor`, `Full`; the value is given back.
    pub fn append(&mut self, key: K, ts: Ts, value: V) -> Result<Appended, WriteError<V>> {
        if let Err(kind) = self.admit(1, [ts].into_iter()) {
            return Err(WriteError {
                kind,
                rejected: value,
            });
        }
        let place = self.place(key);
        self.with(place, |core| core.append(ts, value))
    }

    /// Adds rows to the log of `key`: all or none. As [`MemLog::extend`](crate::MemLog::extend).
    ///
    /// # Errors
    /// `BelowFloor`, `Full`; the rows are given back.
    pub fn extend(
        &mut self,
        key: K,
        rows: impl IntoIterator<Item = (Ts, V)>,
    ) -> Result<Appended, WriteError<Vec<(Ts, V)>>> {
        let rows: Vec<(Ts, V)> = rows.into_iter().collect();
        if let Err(kind) = self.admit(rows.len(), rows.iter().map(|row| row.0)) {
            return Err(WriteError {
                kind,
                rejected: rows,
            });
        }
        let place = self.place(key);
        Ok(self.with(place, |core| core.insert_all(rows)))
    }

    /// Deletes the rows of a range of one key. `None` if there is no such key.
    ///
    /// # Errors
    /// `EmptyRange`, if the range is empty or reversed.
    pub fn delete<Q>(
        &mut self,
        key: &Q,
        range: impl RangeBounds<Ts>,
    ) -> Result<Option<Seq>, WriteError<()>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some((first, last)) = TimeRange::new(range).bounds() else {
            return Err(WriteError {
                kind: WriteErrorKind::EmptyRange,
                rejected: (),
            });
        };
        let place = self.places.get(key).copied();
        Ok(place.map(|place| self.with(place, |core| core.hide(first, last))))
    }

    /// Deletes the rows before a timestamp in all logs, and refuses such rows from now on. Whether
    /// the floor was lower. O(keys).
    pub fn raise_floor(&mut self, ts: Ts) -> bool {
        if self.floor.is_some_and(|floor| floor >= ts) {
            return false;
        }
        self.floor = Some(ts);
        for place in 0..self.logs.len() {
            if self.logs[place].is_some() {
                self.with(place, |core| core.raise_floor(ts));
            }
        }
        true
    }

    /// Drops a key with its rows, and tells whether it was there. Snapshots keep what they show.
    pub fn remove<Q>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(place) = self.places.remove(key) else {
            return false;
        };
        // Dropped at the end: a value's drop may panic.
        let removed = self.logs[place].take();
        if let Some(log) = &removed {
            self.unflushed_rows -= log.unflushed_rows();
        }
        self.free.push(place);
        true
    }

    /// What the log of a key holds now; `None` if there is no such key.
    pub fn snapshot<Q>(&mut self, key: &Q) -> Option<Snapshot<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let place = *self.places.get(key)?;
        Some(self.with(place, Core::snapshot))
    }

    /// The log of a key in numbers; `None` if there is no such key.
    pub fn stats<Q>(&self, key: &Q) -> Option<Stats>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let log = self.logs[*self.places.get(key)?].as_ref()?;
        Some(log.stats())
    }

    /// The keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.places.keys()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What the unflushed rows of all keys take, in bytes, without what values own on the heap. It
    /// is at most `memory_limit_bytes`.
    pub fn unflushed_bytes(&self) -> usize {
        self.unflushed_rows * self.limits.row_bytes
    }

    /// Does a part of what is due in one of the logs, which take turns. As
    /// [`MemLog::step`](crate::MemLog::step), without the merges that wait for idle steps.
    pub fn step(&mut self, rows: usize) -> Progress {
        while let Some(place) = self.due.pop_front() {
            self.is_due[place] = false;
            if self.logs[place].is_none() {
                continue;
            }
            // The log asks for its next turn itself, if there is more to do.
            if self.with(place, |core| core.advance(rows.max(1), false)) > 0 {
                return Progress::More;
            }
        }
        Progress::Idle
    }

    /// Writes all rows of all keys to segments.
    pub fn flush(&mut self) {
        for place in 0..self.logs.len() {
            self.flush_one(place);
        }
    }

    /// Merges what overlaps, hides rows or is small, in all logs. Rows that are not flushed stay
    /// so.
    pub fn compact(&mut self) {
        for place in 0..self.logs.len() {
            if self.logs[place].is_some() {
                self.with(place, |core| {
                    core.request_compaction();
                    while core.advance(usize::MAX, false) > 0 {}
                });
            }
        }
    }

    /// Verifies each log, and the sum of their rows. For tests.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), Broken> {
        let mut rows = 0;
        for log in self.logs.iter().flatten() {
            log.check()?;
            rows += log.unflushed_rows();
        }
        Broken::unless(rows == self.unflushed_rows, || {
            format!("{rows} unflushed rows, counted {}", self.unflushed_rows)
        })
    }

    /// The place of a key, which gets a log if it has none.
    fn place(&mut self, key: K) -> usize {
        let (logs, is_due, free) = (&mut self.logs, &mut self.is_due, &mut self.free);
        *self.places.entry(key).or_insert_with(|| {
            let mut core = Core::new(Arc::clone(&self.limits), self.floor);
            core.version = Arc::clone(&self.nothing.0);
            core.skyline = Arc::clone(&self.nothing.1);
            let log = Some(Box::new(core));
            match free.pop() {
                Some(place) => {
                    logs[place] = log;
                    place
                }
                None => {
                    logs.push(log);
                    is_due.push(false);
                    logs.len() - 1
                }
            }
        })
    }

    /// Works with a log, and counts its unflushed rows again, also if a value panics.
    fn with<T>(&mut self, place: usize, work: impl FnOnce(&mut Core<V>) -> T) -> T {
        let log = self.logs[place]
            .as_mut()
            .expect("a place of a key has a log");
        let counted = Counted {
            before: log.unflushed_rows(),
            log,
            place,
            unflushed_rows: &mut self.unflushed_rows,
            due: &mut self.due,
            is_due: &mut self.is_due[place],
        };
        work(counted.log)
    }

    fn flush_one(&mut self, place: usize) {
        if self.logs[place].is_some() {
            self.with(place, |core| {
                core.seal();
                while core.advance_flush(usize::MAX) > 0 {}
                while core.tidy(usize::MAX) > 0 {}
            });
        }
    }

    /// Whether rows may be written. Under `Flush`, makes space first.
    fn admit(
        &mut self,
        rows: usize,
        mut timestamps: impl Iterator<Item = Ts>,
    ) -> Result<(), WriteErrorKind> {
        if let Some(floor) = self.floor
            && let Some((index, ts)) = timestamps.by_ref().enumerate().find(|(_, ts)| *ts < floor)
        {
            return Err(WriteErrorKind::BelowFloor { index, ts, floor });
        }
        let Some(limit_bytes) = self.memory_limit_bytes else {
            return Ok(());
        };
        let batch_bytes = rows.saturating_mul(self.limits.row_bytes);
        let needed = |keyed: &Self| batch_bytes.saturating_add(keyed.unflushed_bytes());
        if self.limits.busy == Busy::Flush
            && batch_bytes <= limit_bytes
            && needed(self) > limit_bytes
        {
            self.make_space((limit_bytes - batch_bytes).min(limit_bytes / 2));
        }
        let needed_bytes = needed(self);
        if needed_bytes > limit_bytes {
            return Err(WriteErrorKind::Full {
                needed_bytes,
                limit_bytes,
            });
        }
        Ok(())
    }

    /// Flushes the logs with the most unflushed rows, until so many bytes are left.
    fn make_space(&mut self, left_bytes: usize) {
        let logs = self.logs.iter().enumerate();
        let mut sizes: Vec<(usize, usize)> = logs
            .filter_map(|(place, log)| Some((log.as_ref()?.unflushed_rows(), place)))
            .filter(|(rows, _)| *rows > 0)
            .collect();
        sizes.sort_unstable();
        while self.unflushed_bytes() > left_bytes
            && let Some((_, place)) = sizes.pop()
        {
            self.flush_one(place);
        }
    }
}

/// Counts what a log has done to the sum when it is dropped.
struct Counted<'k, V> {
    log: &'k mut Core<V>,
    place: usize,
    before: usize,
    unflushed_rows: &'k mut usize,
    due: &'k mut VecDeque<usize>,
    is_due: &'k mut bool,
}

impl<V> Drop for Counted<'_, V> {
    fn drop(&mut self) {
        *self.unflushed_rows = *self.unflushed_rows - self.before + self.log.unflushed_rows();
        if !self.log.is_quiet && !*self.is_due {
            *self.is_due = true;
            self.due.push_back(self.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Keyed;
    use crate::{Config, Progress};

    /// Neither is the list of logs that are due looked through, nor does it grow.
    #[test]
    fn removing_a_key_costs_the_same_among_many() {
        let mut logs = Keyed::new(Config::default().memtable_bytes(256)).unwrap();
        let rows = || (0..20).map(|ts| (ts, 0u64));
        for key in 0..100 {
            logs.extend(key, rows()).unwrap();
        }
        assert_eq!(logs.due.len(), 100);
        for _ in 0..10 {
            assert!(logs.remove(&50));
            assert_eq!(logs.due.len(), 100, "its place stays until its turn");
            logs.extend(50, rows()).unwrap();
            assert_eq!(logs.due.len(), 100);
        }
        logs.remove(&7);
        while logs.step(100) == Progress::More {}
        assert!(logs.due.is_empty());
        logs.check().unwrap();
    }
}
