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
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub(super) memory: crate::Config,
    pub(super) commit_delay: Duration,
    pub(super) commit_bytes: usize,
    pub(super) pending_bytes: usize,
    pub(super) wal_file_bytes: u64,
    pub(super) wake_up: Duration,
    pub(super) keep: Option<Duration>,
    pub(super) keep_bytes: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory: crate::Config::default(),
            commit_delay: Duration::ZERO,
            commit_bytes: 256 << 10,
            pending_bytes: 64 << 20,
            wal_file_bytes: 32 << 20,
            wake_up: Duration::from_millis(100),
            keep: None,
            keep_bytes: None,
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
        self.commit_bytes = bytes;
        self
    }

    /// The most that may wait for the device, in bytes, from 4 KiB to 1 GiB. A write beyond is
    /// refused with [`Error::Busy`]; a single one may be as large as that. Default 64 MiB.
    pub fn pending_bytes(mut self, bytes: usize) -> Self {
        self.pending_bytes = bytes;
        self
    }

    /// The size of a file of the write-ahead log, in bytes, from 8 KiB to 4 GiB. A full one is turned into a
    /// checkpoint. Default 32 MiB.
    pub fn wal_file_bytes(mut self, bytes: u64) -> Self {
        self.wal_file_bytes = bytes;
        self
    }

    /// How often maintenance looks for work that nothing woke it for, and applies
    /// [`keep`](Self::keep) and [`keep_bytes`](Self::keep_bytes). From 1 ms to a day. Default 100 ms.
    pub fn wake_up(mut self, period: Duration) -> Self {
        self.wake_up = period;
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
        let row_bytes = size_of::<Ts>() + V::BYTES;
        let (wanted, delay) = ("at most 64 KiB", self.commit_delay);
        ConfigError::within("Record::BYTES", V::BYTES, 0..=MAX_RECORD_BYTES, wanted)?;
        ConfigError::within("commit_delay", delay, Duration::ZERO..=DAY, "at most a day")?;
        let (bytes, wanted) = (self.commit_bytes, "1 byte to 1 GiB");
        ConfigError::within("commit_bytes", bytes, 1..=1 << 30, wanted)?;
        let (bytes, wanted) = (self.pending_bytes, "4 KiB to 1 GiB");
        ConfigError::within("pending_bytes", bytes, 4 << 10..=1 << 30, wanted)?;
        let (bytes, wanted) = (self.wal_file_bytes, "8 KiB to 4 GiB");
        ConfigError::within("wal_file_bytes", bytes, 2 * UNIT as u64..=4 << 30, wanted)?;
        let periods = Duration::from_millis(1)..=DAY;
        ConfigError::within("wake_up", self.wake_up, periods, "1 ms to a day")?;
        let (age, wanted) = (self.keep.unwrap_or(DAY), "one tick of the unit or more");
        ConfigError::unless(self.memory.unit.ticks(age) > 0, "keep", age, wanted)?;
        let bytes = self.keep_bytes.unwrap_or(usize::MAX);
        ConfigError::within(
            "keep_bytes",
            bytes,
            row_bytes..=usize::MAX,
            "one row or more",
        )?;
        // Before a file is touched.
        self.memory.limits(size_of::<Ts>() + size_of::<V>())?;
        Ok(())
    }
}

const _: () = assert!(MAX_RECORD_BYTES + 8 <= ROW_PAGE_BYTES && ROW_PAGE_BYTES < PAGE_BYTES);
