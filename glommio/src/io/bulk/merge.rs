//! Which requests become one read. Pure: knows numbers only.

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
    /// So many bytes, rounded down to the alignment of the file: below that, nothing is merged. A
    /// gigabyte at most.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sys::block_device::BlockDevice;

    const NO_LIMIT: u64 = u64::MAX;

    /// For each read, where it begins, how long it is, and how many requests share it.
    fn reads(max_bytes: u64, max_gap: u64, requests: &[(u64, usize)]) -> Vec<(u64, u64, usize)> {
        let merging = Merging { max_bytes, max_gap };
        let mut reads: Vec<(Range, usize)> = Vec::new();
        for &(position, size) in requests {
            let next = Range::of(position, size);
            match reads
                .last_mut()
                .and_then(|last| Some((merging.join(last.0, next)?, last)))
            {
                Some((both, last)) => *last = (both, last.1 + 1),
                None => reads.push((next, 1)),
            }
        }
        reads
            .into_iter()
            .map(|(range, shared)| (range.start, range.len(), shared))
            .collect()
    }

    #[test]
    fn requests_share_a_read_up_to_its_limit() {
        let requests = [(0, 64), (0, 256), (32, 4064), (4095, 10), (8192, 4096)];
        assert_eq!(
            reads(4096, NO_LIMIT, &requests),
            [(0, 4096, 3), (4095, 10, 1), (8192, 4096, 1)]
        );
        assert_eq!(
            reads(500, NO_LIMIT, &requests),
            [(0, 256, 2), (32, 4064, 1), (4095, 10, 1), (8192, 4096, 1)]
        );
        assert_eq!(
            reads(4096, NO_LIMIT, &[(64, 256), (32, 4064), (4095, 10)]),
            [(32, 4073, 3)]
        );
    }

    #[test]
    fn going_back_counts_from_start_to_start() {
        let (first, again) = (
            [(100, 100), (100, 1), (125, 75)],
            [(75, 125), (50, 150), (0, 200)],
        );
        let requests = [first, again].concat();
        assert_eq!(
            reads(4096, 0, &requests),
            [(100, 100, 3), (75, 125, 1), (50, 150, 1), (0, 200, 1)]
        );
        assert_eq!(reads(4096, 25, &requests), [(50, 150, 5), (0, 200, 1)]);
    }

    #[test]
    fn gaps_are_bridged_up_to_the_amplification() {
        assert_eq!(reads(4096, 0, &[(0, 10), (10, 10)]), [(0, 20, 2)]);
        assert_eq!(reads(4096, 0, &[(0, 10), (11, 10)]).len(), 2);
        assert_eq!(reads(4096, 1, &[(0, 10), (11, 10)]), [(0, 21, 2)]);
        assert_eq!(reads(0, NO_LIMIT, &[(0, 10), (0, 10)]).len(), 2);
    }

    #[test]
    fn limits_are_those_of_the_device_or_below() {
        let limits = Limits::of_device(BlockDevice {
            logical_block_bytes: 4096,
            max_request_bytes: 1 << 20,
            max_segment_bytes: 65_536,
        });
        let max_bytes =
            |limit| Merging::new(limit, ReadAmplificationLimit::NoLimit, limits).max_bytes;
        assert_eq!(max_bytes(MergedBufferLimit::NoMerging), 0);
        assert_eq!(max_bytes(MergedBufferLimit::default()), 1 << 20);
        assert_eq!(max_bytes(MergedBufferLimit::Custom(4095)), 0);
        assert_eq!(max_bytes(MergedBufferLimit::Custom(10_000)), 8192);
        assert_eq!(max_bytes(MergedBufferLimit::Custom(usize::MAX)), 65_536);
        let merging = Merging::new(
            MergedBufferLimit::Custom(usize::MAX),
            ReadAmplificationLimit::NoLimit,
            Limits::of_device(BlockDevice::PLAINEST),
        );
        assert_eq!(merging.max_bytes, 1 << 30);
    }

    proptest! {
        /// A read covers its requests, and is no longer than the limit unless it is of one request.
        #[test]
        fn reads_cover_their_requests(
            requests in prop::collection::vec((any::<u64>(), 0usize..10_000), 1..40),
            near in any::<bool>(),
            max_bytes in 0u64..20_000,
            max_gap in 0u64..5_000,
        ) {
            let requests: Vec<_> = requests
                .into_iter()
                .map(|(position, size)| (if near { position % 30_000 } else { position }, size))
                .collect();
            let reads = reads(max_bytes, max_gap, &requests);
            let mut left = &requests[..];
            for (start, len, shared) in reads {
                let (these, rest) = left.split_at(shared);
                left = rest;
                for &(position, size) in these {
                    let range = Range::of(position, size);
                    prop_assert!(start <= range.start && range.end <= start + len);
                }
                prop_assert!(shared == 1 || len <= max_bytes);
            }
            prop_assert!(left.is_empty());
        }
    }
}
