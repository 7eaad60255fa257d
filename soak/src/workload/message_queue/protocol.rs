//! What the frames mean that client and broker exchange: one byte that says which frame it is, and its
//! fields, which are little-endian numbers. A payload takes the rest.

use std::io;
use std::time::Duration;

use examples::broker::frames::{Fields, frame, malformed};

/// A frame in either direction. Payloads are borrowed from the buffer they were read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// Client: keep this message and deliver it until it is acked within `allowance_us`.
    Publish {
        id: u64,
        allowance_us: u32,
        payload: &'a [u8],
    },
    /// Broker: here it is, for the `attempt`th time, to be acked by `deadline_ns` of the run.
    Deliver {
        id: u64,
        attempt: u8,
        deadline_ns: u64,
        payload: &'a [u8],
    },
    /// Client: done with it.
    Ack { id: u64, attempt: u8 },
    /// Client: still at it; the allowance begins anew.
    Extend { id: u64, attempt: u8 },
    /// Broker: the message is gone, after `attempts` deliveries.
    Settled {
        id: u64,
        attempts: u8,
        is_dead: bool,
    },
    /// Client: nothing to say, but here.
    Ping,
}

impl<'a> Frame<'a> {
    /// Appends the frame to `out`.
    ///
    /// # Panics
    ///
    /// Panics if the payload makes it longer than [`FRAME_BYTES_MAX`].
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        frame(out, |out| {
            let start = out.len();
            let mut put = |kind, id: u64, fields: &[&[u8]]| {
                out.push(kind);
                out.extend_from_slice(&id.to_le_bytes());
                fields.iter().for_each(|field| out.extend_from_slice(field));
            };
            match *self {
                Frame::Publish {
                    id,
                    allowance_us,
                    payload,
                } => put(PUBLISH, id, &[&allowance_us.to_le_bytes(), payload]),
                Frame::Deliver {
                    id,
                    attempt,
                    deadline_ns,
                    payload,
                } => put(
                    DELIVER,
                    id,
                    &[&[attempt], &deadline_ns.to_le_bytes(), payload],
                ),
                Frame::Ack { id, attempt } => put(ACK, id, &[&[attempt]]),
                Frame::Extend { id, attempt } => put(EXTEND, id, &[&[attempt]]),
                Frame::Settled {
                    id,
                    attempts,
                    is_dead,
                } => put(SETTLED, id, &[&[attempts, is_dead.into()]]),
                Frame::Ping => out.push(PING),
            }
            let length = out.len() - start;
            assert!(length <= FRAME_BYTES_MAX, "a frame of {length} bytes");
        });
    }

    /// Reads a frame, without its length.
    ///
    /// # Errors
    ///
    /// If it is what no peer of ours sends: bytes were lost, doubled or mixed up.
    pub(crate) fn decode(bytes: &'a [u8]) -> io::Result<Frame<'a>> {
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(malformed("a frame that is too long"));
        }
        let mut fields = Fields(bytes);
        let kind = fields.byte()?;
        if kind == PING {
            fields.end()?;
            return Ok(Frame::Ping);
        }
        let id = u64::from_le_bytes(fields.array()?);
        let frame = match kind {
            PUBLISH => Frame::Publish {
                id,
                allowance_us: u32::from_le_bytes(fields.array()?),
                payload: fields.rest(),
            },
            DELIVER => Frame::Deliver {
                id,
                attempt: fields.byte()?,
                deadline_ns: u64::from_le_bytes(fields.array()?),
                payload: fields.rest(),
            },
            ACK => Frame::Ack {
                id,
                attempt: fields.byte()?,
            },
            EXTEND => Frame::Extend {
                id,
                attempt: fields.byte()?,
            },
            SETTLED => Frame::Settled {
                id,
                attempts: fields.byte()?,
                is_dead: fields.byte()? != 0,
            },
            _ => return Err(malformed("an unknown frame")),
        };
        fields.end()?;
        Ok(frame)
    }
}

/// The allowance as the wire carries it.
pub(crate) fn allowance_us(allowance: Duration) -> u32 {
    u32::try_from(allowance.as_micros()).expect("allowances are below an hour")
}

pub(crate) const FRAME_BYTES_MAX: usize = 1_024;

const PUBLISH: u8 = 1;
const DELIVER: u8 = 2;
const ACK: u8 = 3;
const EXTEND: u8 = 4;
const SETTLED: u8 = 5;
const PING: u8 = 6;

#[cfg(test)]
mod tests {
    use examples::broker::frames::LENGTH_BYTES;

    use super::*;

    const FRAMES: [Frame<'static>; 8] = [
        Frame::Publish {
            id: 1,
            allowance_us: 50_000,
            payload: b"payload",
        },
        Frame::Publish {
            id: u64::MAX,
            allowance_us: u32::MAX,
            payload: b"",
        },
        Frame::Deliver {
            id: 7,
            attempt: 2,
            deadline_ns: 1 << 60,
            payload: b"x",
        },
        Frame::Ack { id: 9, attempt: 3 },
        Frame::Extend { id: 10, attempt: 1 },
        Frame::Settled {
            id: 11,
            attempts: 3,
            is_dead: true,
        },
        Frame::Settled {
            id: 12,
            attempts: 1,
            is_dead: false,
        },
        Frame::Ping,
    ];

    #[test]
    fn frames_come_back_as_they_were() {
        for frame in FRAMES {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            let decoded = Frame::decode(&bytes[LENGTH_BYTES..]);
            assert_eq!(decoded.expect("it is what was encoded"), frame);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let too_long = [PUBLISH; FRAME_BYTES_MAX + 1];
        for bytes in [&[99][..], &[PING, 0], &[ACK, 1, 2], &[], &too_long] {
            assert!(Frame::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
