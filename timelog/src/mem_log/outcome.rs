//! What calls of the log tell.

use crate::Seq;

/// An accepted write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The place of the first row in the order of acceptance; the others follow without gaps. For
    /// an empty batch, the place that the next operation will take.
    pub first: Seq,
    /// The number of rows.
    pub rows: u64,
    /// Whether as many sealed memtables wait for a flush as the configuration allows. The rows are
    /// in all the same: repeating the write would double them.
    pub pressure: bool,
}

/// What a [`step`](crate::MemLog::step) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to do.
    Idle,
    /// Rows were moved; there may be more to do.
    More,
}
