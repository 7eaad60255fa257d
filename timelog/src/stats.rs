//! What a log holds and has done.

use crate::{Seq, Ts};

/// The state of a log in numbers, as of the call of [`MemLog::stats`](crate::MemLog::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The last operation that was accepted.
    pub seq: Seq,
    /// The least timestamp that is accepted, if there is a limit.
    pub floor: Option<Ts>,
    /// Rows in the memtable, hidden ones included.
    pub memtable_rows: usize,
    /// Sealed memtables that wait for a flush.
    pub sealed_runs: usize,
    /// The most sealed memtables that ever waited.
    pub sealed_runs_max: usize,
    /// Rows in sealed memtables, hidden ones included.
    pub sealed_rows: usize,
    /// What unflushed rows take, in bytes, without what values own on the heap.
    pub unflushed_bytes: usize,
    /// Segments that may overlap others.
    pub l0_segments: usize,
    /// Segments in time order that overlap none of their level.
    pub l1_segments: usize,
    /// Rows in segments, hidden ones included.
    pub segment_rows: usize,
    /// Rows in segments that deletes hide.
    pub hidden_rows: usize,
    /// Delete intervals that are kept because they still hide rows.
    pub delete_intervals: usize,
    /// Writes that left the limit of sealed memtables reached, or twice as many overlapping
    /// segments as start a compaction.
    pub pressure: u64,
    /// Rows that flushes have written to segments.
    pub rows_flushed: u64,
    /// Rows that compactions have written again.
    pub rows_rewritten: u64,
    /// Rows that flushes and compactions have moved so far, also those of a job that is not
    /// finished.
    pub rows_moved: u64,
    /// Segments that entered the lower level without being written again.
    pub promotions: u64,
    /// The length of the windows at which segments are cut, in ticks.
    pub window_ticks: i64,
}
