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
    let max_bytes = |limit| Merging::new(limit, ReadAmplificationLimit::NoLimit, limits).max_bytes;
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
