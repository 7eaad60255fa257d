//! What a flow carries: transfers of random bytes that both ends can make from the seed.
//!
//! ```text
//!   Bytes(..) Bytes(..) Bytes(..) End(transfer, length, hash) Bytes(..) ..
//! ```
//!
//! The sender cuts the bytes at random, so no two datagrams need be of the same length. The
//! receiver compares every byte as it comes in order with those it makes itself, and at the end of
//! a transfer its length and its hash with those that the sender found.

use std::hash::{DefaultHasher, Hasher};
use std::ops::RangeInclusive;
use std::rc::Rc;

use examples::reliable_udp::wire::SEGMENT_BYTES_MAX;
use support::generator::{Rng, stream};

/// The sender's end: makes the segments.
#[derive(Debug)]
pub(super) struct Outbound {
    source: Source,
    cuts: Rng,
}

impl Outbound {
    pub(super) fn new(seed: u64, flow: u64) -> Self {
        Outbound {
            source: Source::new(seed, flow),
            cuts: stream(!seed, flow),
        }
    }

    pub(super) fn next_segment(&mut self) -> Rc<[u8]> {
        let left = self.source.length - self.source.made;
        if left == 0 {
            let end = self.source.end();
            self.source.begin_next();
            return Rc::from(end);
        }
        let (least, most) = CUT_BYTES.into_inner();
        let cut = least + self.cuts.usize(..most - least + 1);
        let mut segment = vec![0; 1 + cut.min(usize::try_from(left).unwrap_or(cut))];
        segment[0] = BYTES;
        self.source.make(&mut segment[1..]);
        Rc::from(segment)
    }
}

/// The receiver's end: judges the segments, which come in order.
#[derive(Debug)]
pub(super) struct Inbound {
    source: Source,
    hash: DefaultHasher,
    expected: Vec<u8>,
}

/// What a segment brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// So many bytes, each as it should be.
    Bytes(usize),
    /// The end of a transfer that came whole.
    Whole,
}

impl Inbound {
    pub(super) fn new(seed: u64, flow: u64) -> Self {
        Inbound {
            source: Source::new(seed, flow),
            hash: DefaultHasher::new(),
            expected: Vec::new(),
        }
    }

    /// # Errors
    ///
    /// In words, how the segment differs from what it ought to be.
    pub(super) fn consume(&mut self, segment: &[u8]) -> Result<Progress, String> {
        let source = &self.source;
        let at = format_args!("transfer {} at byte {}", source.transfer, source.made).to_string();
        match segment.split_first() {
            Some((&BYTES, bytes)) if bytes.len() as u64 <= source.length - source.made => {
                self.expected.resize(bytes.len(), 0);
                self.source.make(&mut self.expected);
                self.hash.write(bytes);
                match bytes.iter().zip(&self.expected).position(|(a, b)| a != b) {
                    None => Ok(Progress::Bytes(bytes.len())),
                    Some(offset) => Err(format!("{at}: other bytes from {offset} on")),
                }
            }
            Some((&END, _)) => {
                // The hash is of what came, not of what was made here to compare it with.
                let hash = std::mem::replace(&mut self.hash, DefaultHasher::new());
                let expected = end(source.transfer, source.made, hash);
                let is_whole = source.made == source.length && *segment == expected;
                let ended = format!("{at} of {}: ended by {segment:?}", source.length);
                self.source.begin_next();
                is_whole.then_some(Progress::Whole).ok_or(ended)
            }
            _ => Err(format!("{at}: a segment of {} bytes", segment.len())),
        }
    }
}

/// The bytes of one transfer after another.
#[derive(Debug)]
struct Source {
    seed: u64,
    flow: u64,
    transfer: u64,
    length: u64,
    made: u64,
    hash: DefaultHasher,
    rng: Rng,
}

impl Source {
    fn new(seed: u64, flow: u64) -> Self {
        let (rng, length) = transfer_script(seed, flow, 0);
        Source {
            seed,
            flow,
            transfer: 0,
            length,
            made: 0,
            hash: DefaultHasher::new(),
            rng,
        }
    }

    /// Makes the next bytes. Both ends ask for them in the same pieces.
    fn make(&mut self, bytes: &mut [u8]) {
        self.rng.fill(bytes);
        self.hash.write(bytes);
        self.made += bytes.len() as u64;
    }

    fn end(&self) -> [u8; END_BYTES] {
        end(self.transfer, self.made, self.hash.clone())
    }

    fn begin_next(&mut self) {
        self.transfer += 1;
        (self.rng, self.length) = transfer_script(self.seed, self.flow, self.transfer);
        self.made = 0;
        self.hash = DefaultHasher::new();
    }
}

/// The generator of a transfer's bytes, and their number.
fn transfer_script(seed: u64, flow: u64, transfer: u64) -> (Rng, u64) {
    let mut rng = stream(seed ^ flow << 32, transfer);
    // Each power of two as likely: many are over soon, and some take a while.
    let doublings = rng.u32(..(TRANSFER_BYTES_MAX / TRANSFER_BYTES_MIN).ilog2());
    let least = TRANSFER_BYTES_MIN << doublings;
    let length = least + rng.u64(..least);
    (rng, length)
}

fn end(transfer: u64, length: u64, hash: DefaultHasher) -> [u8; END_BYTES] {
    let mut bytes = [END; END_BYTES];
    let numbers = [transfer, length, hash.finish()];
    for (place, number) in bytes[1..].as_chunks_mut().0.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
    bytes
}

const BYTES: u8 = 1;
const END: u8 = 2;
const END_BYTES: usize = 1 + 3 * 8;

const TRANSFER_BYTES_MIN: u64 = 64 << 10;
const TRANSFER_BYTES_MAX: u64 = 2 << 20;

const CUT_BYTES: RangeInclusive<usize> = 200..=SEGMENT_BYTES_MAX - 1;
const _: () = assert!(END_BYTES <= SEGMENT_BYTES_MAX, "the end is a segment too");

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(seed: u64, transfers: u64) -> Vec<Rc<[u8]>> {
        let mut outbound = Outbound::new(seed, 3);
        let mut segments = Vec::new();
        while outbound.source.transfer < transfers {
            segments.push(outbound.next_segment());
        }
        segments
    }

    fn consume(segments: &[Rc<[u8]>]) -> Result<(u64, u64), String> {
        let mut inbound = Inbound::new(7, 3);
        let (mut bytes, mut whole) = (0, 0);
        for segment in segments {
            match inbound.consume(segment)? {
                Progress::Bytes(count) => bytes += count as u64,
                Progress::Whole => whole += 1,
            }
        }
        Ok((bytes, whole))
    }

    #[test]
    fn what_is_sent_is_what_is_expected() {
        let lengths: u64 = (0..8)
            .map(|transfer| transfer_script(7, 3, transfer).1)
            .sum();
        assert_eq!(consume(&segments(7, 8)), Ok((lengths, 8)));
    }

    #[test]
    fn lengths_stay_within_their_bounds() {
        for transfer in 0..1_000 {
            let (_, length) = transfer_script(1, 2, transfer);
            assert!((TRANSFER_BYTES_MIN..TRANSFER_BYTES_MAX).contains(&length));
        }
    }

    /// Left out, put twice, swapped, changed in one bit, or of another seed.
    #[test]
    fn whatever_is_wrong_is_noticed() {
        let segments = segments(7, 2);
        let last = segments.len() - 1;
        for at in [0, 1, last / 2, last - 1, last] {
            let mut left_out = segments.clone();
            left_out.remove(at);
            // Without its last segment a stream is a correct beginning of itself.
            assert_eq!(consume(&left_out).is_ok(), at == last, "{at} left out");

            let mut twice = segments.clone();
            twice.insert(at, Rc::clone(&segments[at]));
            assert!(consume(&twice).is_err(), "{at} twice");

            let mut swapped = segments.clone();
            swapped.swap(at, at.max(1) - 1);
            assert_eq!(consume(&swapped).is_ok(), at == 0, "{at} swapped");

            for byte in [0, 1, segments[at].len() - 1] {
                let mut changed = segments[at].to_vec();
                changed[byte] ^= 0x40;
                let mut with_change = segments.clone();
                with_change[at] = Rc::from(changed);
                assert!(consume(&with_change).is_err(), "{at} changed at {byte}");
            }
        }
        assert!(consume(&super::tests::segments(8, 1)).is_err());
        assert!(consume(&[Rc::from([])]).is_err());
    }

    /// The sender's hash alone tells, where the receiver makes other bytes than came.
    #[test]
    fn the_hash_is_of_the_bytes_that_came() {
        let mut inbound = Inbound::new(7, 3);
        let mut segments = segments(7, 1);
        let mut changed = segments[0].to_vec();
        changed[1] ^= 1;
        segments[0] = Rc::from(changed);
        let answers: Vec<_> = segments
            .iter()
            .map(|segment| inbound.consume(segment))
            .collect();
        assert!(answers[0].is_err(), "the byte itself");
        let (last, between) = answers[1..].split_last().expect("a transfer has an end");
        assert!(between.iter().all(Result::is_ok));
        assert!(last.is_err(), "the hash at the end");
    }
}
