//! Configuration of a durable log.

use std::time::Duration;

use super::error::Error;
use super::format::{PAGE_BYTES, ROW_PAGE_BYTES, UNIT};
use crate::{ConfigError, Record, Ts};

/// The widest value, in bytes.
pub const MAX_RECORD_BYTES: usize = 64 << 10;

/// The configuration of a [`Log`](super::Log).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timelog::durable::Config;
///
/// let config = Config::default()
///     .memory(timelog::Config::default().memtable_bytes(4 << 20))
///     .commit_delay(Duration::from_millis(2))
///     .keep(Duration::from_secs(7 * 24 * 3600));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub(super) memory: crate::Config,
    pub(super) commit_delay: Duration,
    pub(super) limits: Limits,
    pub(super) keep: Option<Duration>,
    pub(super) keep_bytes: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limits {
    pub commit_bytes: usize,
    pub pending_bytes: usize,
    pub wal_file_bytes: u64,
    pub wake_up: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            commit_bytes: 256 << 10,
            pending_bytes: 64 << 20,
            wal_file_bytes: 32 << 20,
            wake_up: Duration::from_millis(100),
        }
    }
}

impl Config {
    /// The configuration of the log in memory. Its floor is raised when the log is opened, if the log
    /// has a lower one.
    pub fn memory(mut self, config: crate::Config) -> Self {
        self.memory = config;
        self
    }

    /// How long the first operation of a group waits for others, up to a day. Default zero: a group is written as
    /// soon as the device is idle, and the next one gathers meanwhile.
    pub fn commit_delay(mut self, delay: Duration) -> Self {
        self.commit_delay = delay;
        self
    }

    /// The most bytes of a group, up to 1 GiB, unless a single batch is larger. One that has as many is not delayed,
    /// and the next one gathers meanwhile. Default 256 KiB: more makes better use of a device that is
    /// slow to sync, less lets writers go on while others are written.
    pub fn commit_bytes(mut self, bytes: usize) -> Self {
        self.limits.commit_bytes = bytes;
        self
    }

    /// The most that may wait for the device, in bytes, from 4 KiB to 1 GiB. A write beyond is
    /// refused with [`Error::Busy`]; a single one may be as large as that. Default 64 MiB.
    pub fn pending_bytes(mut self, bytes: usize) -> Self {
        self.limits.pending_bytes = bytes;
        self
    }

    /// The size of a file of the write-ahead log, in bytes, from 8 KiB to 4 GiB. A full one is turned into a
    /// checkpoint. Default 32 MiB.
    pub fn wal_file_bytes(mut self, bytes: u64) -> Self {
        self.limits.wal_file_bytes = bytes;
        self
    }

    /// How often maintenance looks for work that nothing woke it for, and applies
    /// [`keep`](Self::keep) and [`keep_bytes`](Self::keep_bytes). From 1 ms to a day. Default 100 ms.
    pub fn wake_up(mut self, period: Duration) -> Self {
        self.limits.wake_up = period;
        self
    }

    /// Deletes rows older than this, by raising the floor. The age of a row is counted from the
    /// system's clock or the newest row, whichever is older: so neither one row from the future nor
    /// the load of an old file deletes what is young. At least one tick of the unit. Default: rows are
    /// kept.
    pub fn keep(mut self, age: Duration) -> Self {
        self.keep = Some(age);
        self
    }

    /// Deletes the oldest rows beyond so many bytes of rows, by raising the floor. A row counts
    /// `8 + V::BYTES`. Rows of one timestamp are kept or deleted together. At least one row. Default:
    /// rows are kept.
    pub fn keep_bytes(mut self, bytes: usize) -> Self {
        self.keep_bytes = Some(bytes);
        self
    }

    pub(super) fn check<V: Record>(&self) -> Result<(), Error> {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        let (limits, keep) = (&self.limits, self.keep);
        let (wanted, delay) = ("at most 64 KiB", self.commit_delay);
        ConfigError::within("Record::BYTES", V::BYTES, 0..=MAX_RECORD_BYTES, wanted)?;
        ConfigError::within("commit_delay", delay, Duration::ZERO..=DAY, "at most a day")?;
        let (commit, pending) = (limits.commit_bytes, limits.pending_bytes);
        ConfigError::within("commit_bytes", commit, 1..=1 << 30, "1 byte to 1 GiB")?;
        ConfigError::within(
            "pending_bytes",
            pending,
            4 << 10..=1 << 30,
            "4 KiB to 1 GiB",
        )?;
        let file = limits.wal_file_bytes;
        ConfigError::within(
            "wal_file_bytes",
            file,
            2 * UNIT as u64..=4 << 30,
            "8 KiB to 4 GiB",
        )?;
        let shortest = Duration::from_millis(1);
        ConfigError::within("wake_up", limits.wake_up, shortest..=DAY, "1 ms to a day")?;
        let is_tick = keep.is_none_or(|age| self.memory.unit.ticks(age) > 0);
        ConfigError::unless(
            is_tick,
            "keep",
            keep.unwrap_or_default(),
            "one tick of the unit or more",
        )?;
        let row_bytes = size_of::<Ts>() + V::BYTES;
        let kept = self.keep_bytes.unwrap_or(usize::MAX);
        ConfigError::within(
            "keep_bytes",
            kept,
            row_bytes..=usize::MAX,
            "one row or more",
        )?;
        // Before a file is touched.
        self.memory.limits(size_of::<Ts>() + size_of::<V>())?;
        Ok(())
    }
}

const _: () = assert!(MAX_RECORD_BYTES + 8 <= ROW_PAGE_BYTES && ROW_PAGE_BYTES < PAGE_BYTES);
