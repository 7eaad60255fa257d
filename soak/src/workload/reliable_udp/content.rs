//! What a flow carries: segments of random length and random bytes, which both ends can make from the seed.

use std::ops::RangeInclusive;

use examples::reliable_udp::wire::SEGMENT_BYTES_MAX;

use crate::workload::prelude::*;

/// The segments, one after the other: what the sender sends, and what the receiver compares with.
pub(super) struct Content(Rng);

impl Content {
    pub(super) fn new(seed: u64, flow: u64) -> Self {
        Content(stream(seed ^ flow << 32, flow))
    }

    pub(super) fn next_segment(&mut self) -> Rc<[u8]> {
        let mut segment = vec![0; self.0.usize(SEGMENT_BYTES)];
        self.0.fill(&mut segment);
        Rc::from(segment)
    }
}

const SEGMENT_BYTES: RangeInclusive<usize> = 200..=SEGMENT_BYTES_MAX;
