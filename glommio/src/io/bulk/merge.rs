//! Which requests become one read. Pure: knows numbers only.

#[cfg(test)]
mod tests;

use crate::io::limits::Limits;
use crate::reactor::op::MAX_TRANSFER_BYTES;

/// How long a read may become by merging requests. One request is never split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergedBufferLimit {
    /// Each request is a read of its own, except where two become the same read once they are
    /// aligned.
    NoMerging,
    /// As long as the device takes in one piece.
    #[default]
    DeviceMaxSingleRequest,
    /// So many bytes, rounded down to the alignment of the file: below that, nothing is merged. No more
    /// than the largest segment of the device, and than a gigabyte.
    Custom(usize),
}

/// How many bytes that were not asked for may be read to merge two requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAmplificationLimit {
    /// None: requests are merged if they touch or overlap.
    #[default]
    NoAmplification,
    /// Up to this many in the gap between two requests.
    Custom(usize),
    /// Any number, within the [`MergedBufferLimit`].
    NoLimit,
}

/// The bytes from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Range {
    /// What ends beyond all files ends there for all that matters.
    pub(super) fn of(position: u64, size: usize) -> Self {
        Range {
            start: position,
            end: position.saturating_add(size as u64),
        }
    }

    pub(super) fn len(self) -> u64 {
        self.end - self.start
    }
}

/// When requests that follow each other become one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merging {
    /// No read of several requests is longer.
    max_bytes: u64,
    /// As far a request may be from what was merged before.
    max_gap: u64,
}

impl Merging {
    pub(super) fn new(
        buffer_limit: MergedBufferLimit,
        read_amp_limit: ReadAmplificationLimit,
        limits: Limits,
    ) -> Self {
        let max_bytes = match buffer_limit {
            MergedBufferLimit::NoMerging => 0,
            MergedBufferLimit::DeviceMaxSingleRequest => limits.max_request_bytes as u64,
            MergedBufferLimit::Custom(bytes) => {
                let bytes = bytes.min(limits.max_segment_bytes).min(MAX_TRANSFER_BYTES);
                bytes as u64 & !(limits.alignment - 1)
            }
        };
        let max_gap = match read_amp_limit {
            ReadAmplificationLimit::NoAmplification => 0,
            ReadAmplificationLimit::Custom(bytes) => bytes as u64,
            ReadAmplificationLimit::NoLimit => u64::MAX,
        };
        Merging { max_bytes, max_gap }
    }

    /// The range of both, if `next` may join `merged`.
    pub(super) fn join(&self, merged: Range, next: Range) -> Option<Range> {
        let is_near = next.start <= merged.end.saturating_add(self.max_gap)
            && merged.start.saturating_sub(next.start) <= self.max_gap;
        let both = Range {
            start: merged.start.min(next.start),
            end: merged.end.max(next.end),
        };
        (is_near && both.len() <= self.max_bytes).then_some(both)
    }
}
