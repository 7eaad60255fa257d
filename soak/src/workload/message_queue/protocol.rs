//! The wire format: small frames, each led by its length.
//!
//! ```text
//!   ┌───────────┬─────────┬────────────────────┬───────────┐
//!   │ length:u16│ kind:u8 │ fixed fields, LE   │ payload   │   length counts what follows it
//!   └───────────┴─────────┴────────────────────┴───────────┘
//! ```

use std::fmt;
use std::time::Duration;

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

impl Frame<'_> {
    /// Appends the frame to `out`.
    ///
    /// # Panics
    ///
    /// Panics if the payload makes it longer than [`FRAME_BYTES_MAX`].
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        match *self {
            Frame::Publish {
                id,
                allowance_us,
                payload,
            } => {
                out.push(PUBLISH);
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&allowance_us.to_le_bytes());
                out.extend_from_slice(payload);
            }
            Frame::Deliver {
                id,
                attempt,
                deadline_ns,
                payload,
            } => {
                out.push(DELIVER);
                out.extend_from_slice(&id.to_le_bytes());
                out.push(attempt);
                out.extend_from_slice(&deadline_ns.to_le_bytes());
                out.extend_from_slice(payload);
            }
            Frame::Ack { id, attempt } => {
                out.push(ACK);
                out.extend_from_slice(&id.to_le_bytes());
                out.push(attempt);
            }
            Frame::Extend { id, attempt } => {
                out.push(EXTEND);
                out.extend_from_slice(&id.to_le_bytes());
                out.push(attempt);
            }
            Frame::Settled {
                id,
                attempts,
                is_dead,
            } => {
                out.push(SETTLED);
                out.extend_from_slice(&id.to_le_bytes());
                out.push(attempts);
                out.push(is_dead.into());
            }
            Frame::Ping => out.push(PING),
        }
        let length = out.len() - start - LENGTH_BYTES;
        assert!(length <= FRAME_BYTES_MAX, "a frame of {length} bytes");
        out[start..start + LENGTH_BYTES].copy_from_slice(&(length as u16).to_le_bytes());
    }

    fn decode(mut bytes: &[u8]) -> Option<Frame<'_>> {
        let rest = &mut bytes;
        let frame = match u8::from_le_bytes(take(rest)?) {
            PUBLISH => Frame::Publish {
                id: u64::from_le_bytes(take(rest)?),
                allowance_us: u32::from_le_bytes(take(rest)?),
                payload: std::mem::take(rest),
            },
            DELIVER => Frame::Deliver {
                id: u64::from_le_bytes(take(rest)?),
                attempt: u8::from_le_bytes(take(rest)?),
                deadline_ns: u64::from_le_bytes(take(rest)?),
                payload: std::mem::take(rest),
            },
            ACK => Frame::Ack {
                id: u64::from_le_bytes(take(rest)?),
                attempt: u8::from_le_bytes(take(rest)?),
            },
            EXTEND => Frame::Extend {
                id: u64::from_le_bytes(take(rest)?),
                attempt: u8::from_le_bytes(take(rest)?),
            },
            SETTLED => Frame::Settled {
                id: u64::from_le_bytes(take(rest)?),
                attempts: u8::from_le_bytes(take(rest)?),
                is_dead: u8::from_le_bytes(take(rest)?) != 0,
            },
            PING => Frame::Ping,
            _ => return None,
        };
        rest.is_empty().then_some(frame)
    }
}

/// Bytes received and not decoded yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Inbox {
            buffer: vec![0; INBOX_BYTES].into(),
            start: 0,
            end: 0,
        }
    }

    /// Where the next bytes go; never empty once every whole frame has been taken out.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        &mut self.buffer[self.end..]
    }

    /// The first `received` bytes of the space have been filled.
    pub(crate) fn received(&mut self, received: usize) {
        self.end += received;
        assert!(
            self.end <= self.buffer.len(),
            "more bytes than there was space for"
        );
    }

    /// The next whole frame, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        let unread = &self.buffer[self.start..self.end];
        let Some((length, rest)) = unread.split_first_chunk() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_le_bytes(*length));
        if length > FRAME_BYTES_MAX {
            return Err(Malformed);
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        self.start += LENGTH_BYTES + length;
        Frame::decode(body).map(Some).ok_or(Malformed)
    }
}

/// The peer sent what no peer of ours sends: bytes were lost, doubled or mixed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed frame")
    }
}

impl std::error::Error for Malformed {}

/// The allowance as the wire carries it.
pub(crate) fn allowance_us(allowance: Duration) -> u32 {
    u32::try_from(allowance.as_micros()).expect("allowances are below an hour")
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

const LENGTH_BYTES: usize = 2;
pub(crate) const FRAME_BYTES_MAX: usize = 1_024;
const INBOX_BYTES: usize = 64 * 1_024;
const _: () = assert!(
    INBOX_BYTES > LENGTH_BYTES + FRAME_BYTES_MAX,
    "a whole frame fits"
);
const _: () = assert!(
    FRAME_BYTES_MAX <= u16::MAX as usize,
    "a length fits its field"
);

const PUBLISH: u8 = 1;
const DELIVER: u8 = 2;
const ACK: u8 = 3;
const EXTEND: u8 = 4;
const SETTLED: u8 = 5;
const PING: u8 = 6;

#[cfg(test)]
mod tests {
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

    fn encoded() -> Vec<u8> {
        let mut bytes = Vec::new();
        FRAMES.iter().for_each(|frame| frame.encode(&mut bytes));
        bytes
    }

    /// Whatever pieces the bytes come in, the same frames come out.
    #[test]
    fn frames_survive_any_cut() {
        let bytes = encoded();
        for piece in 1..=bytes.len() {
            let mut inbox = Inbox::new();
            let mut expected = FRAMES.iter();
            for chunk in bytes.chunks(piece) {
                inbox.space()[..chunk.len()].copy_from_slice(chunk);
                inbox.received(chunk.len());
                while let Some(frame) = inbox.next().expect("it is what was encoded") {
                    assert_eq!(Some(&frame), expected.next(), "in pieces of {piece}");
                }
            }
            assert_eq!(expected.next(), None, "in pieces of {piece}");
        }
    }

    #[test]
    fn an_inbox_never_runs_out_of_space() {
        let bytes = encoded();
        let mut inbox = Inbox::new();
        for _ in 0..3 * INBOX_BYTES / bytes.len() {
            inbox.space()[..bytes.len()].copy_from_slice(&bytes);
            inbox.received(bytes.len());
            while inbox.next().expect("it is what was encoded").is_some() {}
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let too_long = (FRAME_BYTES_MAX as u16 + 1).to_le_bytes();
        for bytes in [
            &[1, 0, 99][..],
            &[2, 0, PING, 0],
            &[3, 0, ACK, 1, 2],
            &[0, 0],
            &too_long,
        ] {
            let mut inbox = Inbox::new();
            inbox.space()[..bytes.len()].copy_from_slice(bytes);
            inbox.received(bytes.len());
            assert_eq!(inbox.next(), Err(Malformed), "{bytes:?}");
        }
    }
}
