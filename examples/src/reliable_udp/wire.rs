//! The format of a datagram.
//!
//! ```text
//!   ┌────────┬───────────┬──────────────────────────┬─────────────┐
//!   │ DATA   │ resent:u8 │ sequence:u64 │ segment   │ checksum:u64│
//!   ├────────┼───────────┼──────────────┼───────────┼─────────────┤   all numbers little-endian
//!   │ ACK    │ 0         │ next:u64     │ bitmap    │ checksum:u64│
//!   └────────┴───────────┴──────────────┴───────────┴─────────────┘
//! ```
//!
//! The checksum covers all before it and begins with the salt of one direction of one flow of one
//! run, so that what comes from elsewhere is refused as what was damaged is. Nothing that comes in
//! can do worse than be refused.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};

use super::ack::{Ack, WINDOW_MAX};

/// A datagram in either direction. A segment is borrowed from the buffer it was received in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// From the sender: a piece of the stream.
    Data {
        /// Its place in the stream.
        sequence: u64,
        /// So many times, 255 for more.
        resent: u8,
        /// The piece.
        segment: &'a [u8],
    },
    /// From the receiver.
    Ack(Ack),
}

/// Tells datagrams of one direction of one flow from all others.
#[derive(Clone, Copy, Debug)]
pub struct Salt(pub u64);

impl<'a> Datagram<'a> {
    /// The bytes of it.
    ///
    /// # Panics
    ///
    /// Panics if the segment is longer than [`SEGMENT_BYTES_MAX`].
    pub fn encode(&self, salt: Salt) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(DATAGRAM_BYTES_MAX);
        match *self {
            Datagram::Data {
                sequence,
                resent,
                segment,
            } => {
                assert!(segment.len() <= SEGMENT_BYTES_MAX, "a segment is too long");
                bytes.extend_from_slice(&[DATA, resent]);
                bytes.extend_from_slice(&sequence.to_le_bytes());
                bytes.extend_from_slice(segment);
            }
            Datagram::Ack(ack) => {
                bytes.extend_from_slice(&[ACK, 0]);
                bytes.extend_from_slice(&ack.next.to_le_bytes());
                for word in ack.words() {
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
            }
        }
        let checksum = checksum(&bytes, salt);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// What the bytes stand for.
    ///
    /// # Errors
    ///
    /// Whatever `encode` with the same salt would not have made.
    pub fn decode(bytes: &'a [u8], salt: Salt) -> Result<Self, Refused> {
        let (content, sum) = bytes.split_last_chunk().ok_or(Refused::Malformed)?;
        if checksum(content, salt) != u64::from_le_bytes(*sum) {
            return Err(Refused::Checksum);
        }
        let ([kind, resent], rest) = content.split_first_chunk().ok_or(Refused::Malformed)?;
        let (number, body) = rest.split_first_chunk().ok_or(Refused::Malformed)?;
        let number = u64::from_le_bytes(*number);
        match *kind {
            DATA if body.len() <= SEGMENT_BYTES_MAX => Ok(Datagram::Data {
                sequence: number,
                resent: *resent,
                segment: body,
            }),
            ACK => {
                let (words, []) = body.as_chunks() else {
                    return Err(Refused::Malformed);
                };
                Ack::from_words(number, words.iter().map(|&word| u64::from_le_bytes(word)))
                    .map(Datagram::Ack)
                    .ok_or(Refused::Malformed)
            }
            _ => Err(Refused::Malformed),
        }
    }
}

/// Why something that was received is no datagram of this flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It was damaged on its way, or belongs elsewhere.
    Checksum,
    /// The checksum is right, if there is room for one, and what it covers makes no sense.
    Malformed,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Checksum => "a datagram with a wrong checksum",
            Refused::Malformed => "a malformed datagram",
        })
    }
}

fn checksum(bytes: &[u8], salt: Salt) -> u64 {
    let mut hash = DefaultHasher::new();
    hash.write(&salt.0.to_le_bytes());
    hash.write(bytes);
    hash.finish()
}

/// With the headers it fits an Ethernet frame, as that of any such protocol should.
pub const SEGMENT_BYTES_MAX: usize = 1_200;

/// The longest datagram.
pub const DATAGRAM_BYTES_MAX: usize = 2 + 8 + SEGMENT_BYTES_MAX + 8;
const _: () = assert!(
    WINDOW_MAX / 8 <= SEGMENT_BYTES_MAX,
    "the longest bitmap fits as well"
);

const DATA: u8 = 1;
const ACK: u8 = 2;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SALT: Salt = Salt(0x1234_5678_9ABC_DEF0);

    fn assert_round_trip(datagram: Datagram<'_>) {
        let bytes = datagram.encode(SALT);
        assert!(bytes.len() <= DATAGRAM_BYTES_MAX);
        assert_eq!(Datagram::decode(&bytes, SALT), Ok(datagram));
        assert_eq!(
            Datagram::decode(&bytes, Salt(SALT.0 + 1)),
            Err(Refused::Checksum)
        );
    }

    fn sealed(content: &[u8]) -> Vec<u8> {
        let mut bytes = content.to_vec();
        bytes.extend_from_slice(&checksum(content, SALT).to_le_bytes());
        bytes
    }

    proptest! {
        #[test]
        fn data_come_back_as_they_were(
            sequence: u64,
            resent: u8,
            segment in vec(any::<u8>(), 0..=SEGMENT_BYTES_MAX),
        ) {
            assert_round_trip(Datagram::Data { sequence, resent, segment: &segment });
        }

        #[test]
        fn acknowledgements_come_back_as_they_were(
            next in 0..u64::MAX / 2,
            ahead in vec(1..=WINDOW_MAX as u64, 0..50),
        ) {
            let mut ack = Ack::new(next);
            ahead.iter().for_each(|&ahead| ack.note(next + ahead));
            assert_round_trip(Datagram::Ack(ack));
        }

        /// Any bit that is turned is noticed.
        #[test]
        fn damage_is_noticed(segment in vec(any::<u8>(), 0..100), at: prop::sample::Index) {
            let mut bytes = Datagram::Data { sequence: 5, resent: 0, segment: &segment }.encode(SALT);
            let bit = at.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Datagram::decode(&bytes, SALT), Err(Refused::Checksum));
        }

        #[test]
        fn random_bytes_are_refused(bytes in vec(any::<u8>(), 0..200)) {
            assert!(Datagram::decode(&bytes, SALT).is_err());
        }

        /// Even where the checksum is right: no content makes it panic, and what is accepted is what
        /// such a datagram is encoded to.
        #[test]
        fn sealed_random_bytes_are_read_or_refused(
            kind in 0u8..4,
            content in vec(any::<u8>(), 0..DATAGRAM_BYTES_MAX + 20),
        ) {
            let mut content = content;
            if let Some(first) = content.first_mut() {
                *first = kind;
            }
            match Datagram::decode(&sealed(&content), SALT) {
                Ok(Datagram::Data { segment, .. }) => {
                    assert_eq!((kind, segment), (DATA, &content[10..]));
                }
                Ok(Datagram::Ack(_)) => {
                    assert_eq!((kind, content.len() % 8), (ACK, 2));
                }
                Err(refused) => assert_eq!(refused, Refused::Malformed),
            }
        }
    }

    #[test]
    fn what_is_too_long_or_too_short_is_refused() {
        for content in [
            &[][..],
            &[DATA],
            &[DATA, 0, 1, 2, 3],
            &[ACK; 9],
            &[3; 10],
            &[DATA; 10 + SEGMENT_BYTES_MAX + 1],
            &[ACK; 10 + WINDOW_MAX / 8 + 8],
        ] {
            let decoded = Datagram::decode(&sealed(content), SALT).map(|_| ());
            assert_eq!(decoded, Err(Refused::Malformed), "{}", content.len());
        }
        for length in 0..8 {
            assert_eq!(
                Datagram::decode(&vec![0; length], SALT).map(|_| ()),
                Err(Refused::Malformed)
            );
        }
    }
}
