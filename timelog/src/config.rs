//! Configuration, its limits and its presets.

use std::time::Duration;

use crate::{ConfigError, TimeUnit, Ts};

/// What a write does when `sealed_runs` memtables wait for a flush. Pressure is counted in each
/// case.
///
/// # Examples
///
/// ```
/// use timelog::{Busy, Config, MemLog};
///
/// let config = Config::default().memtable_bytes(256).sealed_runs(1).busy(Busy::Signal);
/// let mut log = MemLog::new(config)?;
/// // Accepted all the same: writing the batch again would double it.
/// assert!(log.extend((0..100).map(|ts| (ts, ts)))?.pressure);
/// log.flush();
/// assert!(!log.append(100, 100)?.pressure);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Busy {
    /// The write is accepted and says so in [`Appended::pressure`](crate::Appended::pressure).
    #[default]
    Signal,
    /// The write is accepted; pressure is only counted.
    Silent,
    /// Each write does a part of what is due, in proportion to its rows: flushes first, then
    /// compaction. So the log needs no [`step`](crate::MemLog::step), and no write waits for all of
    /// it. Pressure is told as under `Signal`. A write that would pass `memory_limit_bytes` flushes
    /// before it returns.
    Flush,
}

/// Where segments prefer to be cut.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timelog::{Config, MemLog, Window};
///
/// let (min, max) = (Duration::from_secs(1), Duration::from_secs(3600));
/// let log = MemLog::<u64>::new(Config::default().window(Window::Adaptive { rows: 1 << 20, min, max }))?;
/// assert_eq!(log.stats().window_ticks, 1_000_000_000);
/// # Ok::<(), timelog::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// At multiples of this duration from the origin.
    Fixed(Duration),
    /// As `Fixed`, with a duration that follows the data towards this many rows a window.
    Adaptive {
        /// The goal.
        rows: usize,
        /// The shortest window, and the first one.
        min: Duration,
        /// The longest window.
        max: Duration,
    },
}

/// The configuration of a log. [`MemLog::new`](crate::MemLog::new) refuses values out of range.
///
/// # Examples
///
/// ```
/// use timelog::{Busy, Config, MemLog, TimeUnit};
///
/// let config = Config::default().unit(TimeUnit::Millis).memtable_bytes(256 << 10).busy(Busy::Flush);
/// let log = MemLog::<u64>::new(config)?;
/// # Ok::<(), timelog::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub(crate) unit: TimeUnit,
    page_bytes: usize,
    pub(crate) memtable_bytes: usize,
    late_bytes: Option<usize>,
    pub(crate) sealed_runs: usize,
    busy: Busy,
    pub(crate) memory_limit_bytes: Option<usize>,
    l0_segments: usize,
    window: Window,
    window_origin: Ts,
    delete_debt: f64,
    segment_bytes: usize,
    compaction_inputs: usize,
    pub(crate) floor: Option<Ts>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            unit: TimeUnit::Nanos,
            page_bytes: 64 << 10,
            memtable_bytes: 1 << 20,
            late_bytes: None,
            sealed_runs: 4,
            busy: Busy::Signal,
            memory_limit_bytes: None,
            l0_segments: 8,
            window: Window::Fixed(Duration::from_secs(3600)),
            window_origin: 0,
            delete_debt: 0.2,
            segment_bytes: 64 << 20,
            compaction_inputs: 0,
            floor: None,
        }
    }
}

impl Config {
    /// For a steady stream: writes do the maintenance that steps between them leave.
    pub fn streaming() -> Self {
        Self::default().busy(Busy::Flush)
    }

    /// For loading much at once: memtables of 16 MiB, flushed and compacted by the writer.
    pub fn bulk_ingest() -> Self {
        Self::default().memtable_bytes(16 << 20).busy(Busy::Flush)
    }

    /// For short appends: memtables of 256 KiB; pressure is only signalled.
    pub fn low_latency() -> Self {
        Self::default().memtable_bytes(256 << 10).busy(Busy::Signal)
    }

    /// The unit of every timestamp. Default nanoseconds.
    pub fn unit(mut self, unit: TimeUnit) -> Self {
        self.unit = unit;
        self
    }

    /// The size of a page in bytes, 64 B to 1 MiB. Default 64 KiB.
    pub fn page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = bytes;
        self
    }

    /// The size at which a memtable is sealed, in bytes, 256 B to 1 GiB. Default 1 MiB.
    pub fn memtable_bytes(mut self, bytes: usize) -> Self {
        self.memtable_bytes = bytes;
        self
    }

    /// The largest run of late rows that an append merges itself, in bytes. Sixteen runs that are
    /// too long for that make the memtable full, whatever its size: rows that are late over all
    /// history need more here, or more compaction. Default a tenth of the memtable, at most 64 KiB.
    pub fn late_bytes(mut self, bytes: usize) -> Self {
        self.late_bytes = Some(bytes);
        self
    }

    /// How many sealed memtables may wait before there is pressure, 1 to 64. Default 4.
    pub fn sealed_runs(mut self, runs: usize) -> Self {
        self.sealed_runs = runs;
        self
    }

    /// What a write does under pressure. Default [`Busy::Signal`].
    pub fn busy(mut self, busy: Busy) -> Self {
        self.busy = busy;
        self
    }

    /// The most that unflushed rows may take, in bytes, without what values own on the heap.
    /// Default no limit.
    pub fn memory_limit_bytes(mut self, bytes: usize) -> Self {
        self.memory_limit_bytes = Some(bytes);
        self
    }

    /// How many possibly overlapping segments start a compaction, 1 to 256; twice as many are
    /// pressure. Default 8.
    pub fn l0_segments(mut self, segments: usize) -> Self {
        self.l0_segments = segments;
        self
    }

    /// Where segments prefer to be cut. Default each hour.
    pub fn window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// The timestamp at which a window starts. Default 0.
    pub fn window_origin(mut self, origin: Ts) -> Self {
        self.window_origin = origin;
        self
    }

    /// The share of hidden rows that starts a compaction, 0 to 1; 0 turns this off. Default 0.2.
    pub fn delete_debt(mut self, share: f64) -> Self {
        self.delete_debt = share;
        self
    }

    /// The size at which a segment is cut, in bytes, at least a page. Default 64 MiB.
    pub fn segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// How many segments a compaction merges at once where it has a choice; 0 for all, else 2 or
    /// more. Default 0.
    pub fn compaction_inputs(mut self, inputs: usize) -> Self {
        self.compaction_inputs = inputs;
        self
    }

    /// The least timestamp that is accepted. Default none.
    pub fn floor(mut self, floor: Ts) -> Self {
        self.floor = Some(floor);
        self
    }

    /// The limits in rows of `row_bytes`, after checking each field.
    pub(crate) fn limits(&self, row_bytes: usize) -> Result<Limits, ConfigError> {
        let (page, memtable) = (self.page_bytes, self.memtable_bytes);
        ConfigError::within("page_bytes", page, 64..=1 << 20, "64 bytes to 1 MiB")?;
        let wanted = "256 bytes to 1 GiB";
        ConfigError::within("memtable_bytes", memtable, 256..=1 << 30, wanted)?;
        let late_bytes = self.late_bytes.unwrap_or((memtable / 10).min(64 << 10));
        let wanted = "at most memtable_bytes";
        ConfigError::within("late_bytes", late_bytes, 0..=memtable, wanted)?;
        ConfigError::within("sealed_runs", self.sealed_runs, 1..=64, "1 to 64")?;
        ConfigError::within("l0_segments", self.l0_segments, 1..=256, "1 to 256")?;
        ConfigError::within("delete_debt", self.delete_debt, 0.0..=1.0, "0 to 1")?;
        let (segment, wanted) = (self.segment_bytes, "at least page_bytes");
        ConfigError::within("segment_bytes", segment, page..=usize::MAX, wanted)?;
        let (inputs, wanted) = (self.compaction_inputs, "0 for all, else 2 or more");
        ConfigError::unless(inputs != 1, "compaction_inputs", inputs, wanted)?;
        let (limit, wanted) = (self.memory_limit_bytes, "at least one row");
        let is_row = limit.is_none_or(|limit| limit >= row_bytes);
        ConfigError::unless(is_row, "memory_limit_bytes", limit.unwrap_or(0), wanted)?;
        let (min, max, window_rows) = match self.window {
            Window::Fixed(window) => (window, window, None),
            Window::Adaptive { rows, min, max } => (min, max, Some(rows)),
        };
        ConfigError::unless(
            window_rows != Some(0),
            "window",
            self.window,
            "1 row or more",
        )?;
        let (ticks, max_ticks) = (self.unit.ticks(min), self.unit.ticks(max));
        let wanted = "one tick of the unit or more, min not above max";
        ConfigError::unless(
            1 <= ticks && ticks <= max_ticks,
            "window",
            self.window,
            wanted,
        )?;

        let page_rows = (self.page_bytes / row_bytes).max(1);
        let memtable_rows = (self.memtable_bytes / row_bytes).max(1);
        let late_rows = late_bytes / row_bytes;
        Ok(Limits {
            row_bytes,
            page_rows,
            memtable_rows,
            // A new chunk asks for memory: by sixteenths, in a small memtable, that would meet more
            // than one append in a hundred.
            chunk_rows: page_rows.min(memtable_rows.div_ceil(8)).min(4096),
            late_rows,
            late_head_rows: (late_rows / 4).clamp(4, 1024),
            sealed_runs: self.sealed_runs,
            busy: self.busy,
            memory_limit_bytes: self.memory_limit_bytes,
            l0_segments: self.l0_segments,
            delete_debt: self.delete_debt,
            segment_rows: (self.segment_bytes / row_bytes).max(1),
            compaction_inputs: self.compaction_inputs,
            window_ticks: ticks,
            window_max_ticks: max_ticks,
            window_rows,
            window_origin: self.window_origin,
        })
    }
}

/// A checked configuration, in rows where that is what counts.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub row_bytes: usize,
    pub page_rows: usize,
    pub memtable_rows: usize,
    pub chunk_rows: usize,
    pub late_rows: usize,
    pub late_head_rows: usize,
    pub sealed_runs: usize,
    pub busy: Busy,
    pub memory_limit_bytes: Option<usize>,
    pub l0_segments: usize,
    pub delete_debt: f64,
    pub segment_rows: usize,
    pub compaction_inputs: usize,
    pub window_ticks: i64,
    pub window_max_ticks: i64,
    pub window_rows: Option<usize>,
    pub window_origin: Ts,
}
