//! What a flow carries: segments of random length and random bytes, which both ends can make from the seed.

use std::ops::RangeInclusive;
use std::rc::Rc;

use examples::reliable_udp::wire::SEGMENT_BYTES_MAX;
use support::generator::{Rng, stream};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_make_the_same_and_no_two_segments_are_alike() {
        let segments = |flow| {
            let mut content = Content::new(7, flow);
            (0..100).map(|_| content.next_segment()).collect::<Vec<_>>()
        };
        assert_eq!(segments(3), segments(3));
        let [mut all, other] = [segments(3), segments(4)];
        all.extend(other);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 200);
    }
}
