//! The frames that clients and the broker exchange.
//!
//! A frame is its length, in four bytes, of what follows; one byte that says which frame it is; and
//! its fields. Numbers are unsigned and little-endian. A name is one byte of length and that many
//! bytes of UTF-8. A payload takes the rest of its frame.
//!
//! | frame | from | fields |
//! |---|---|---|
//! | `P` publish | client | topic: name; number: 8 bytes, chosen by the client; payload |
//! | `S` subscribe | client | topic: name; group: name; credit: 4 bytes |
//! | `A` ack | client | delivery: 8 bytes |
//! | `C` confirm | broker | number: 8 bytes, of the publish: the broker has the message |
//! | `R` refuse | broker | number: 8 bytes, of the publish: it has not, and the client may retry |
//! | `D` deliver | broker | delivery: 8 bytes; attempt: 2 bytes, from 1 on; payload |
//! | `K` acked | broker | delivery: 8 bytes; in time: 1 byte, 1 or 0 |
//!
//! Each group of a topic gets every message, and within a group one consumer gets it. The credit of
//! a subscription is how many messages it may hold without an ack. A message that is not
//! acknowledged by its deadline is delivered again, to any consumer of the group, as a new
//! delivery; an ack of the old one is then answered with 0. A client that sends anything else is
//! disconnected.

#![expect(missing_docs, reason = "the table has all fields")]

use std::io;

use super::frames::{Fields, frame, malformed, put_name};

/// What a client sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<'a> {
    Publish {
        topic: &'a str,
        number: u64,
        payload: &'a [u8],
    },
    Subscribe {
        topic: &'a str,
        group: &'a str,
        credit: u32,
    },
    Ack {
        delivery: u64,
    },
}

/// What the broker sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Confirm {
        number: u64,
    },
    Refuse {
        number: u64,
    },
    Deliver {
        delivery: u64,
        attempt: u16,
        payload: &'a [u8],
    },
    Acked {
        delivery: u64,
        in_time: bool,
    },
}

impl<'a> Request<'a> {
    /// Appends the frame, length and all. A name must have at most [`NAME_BYTES_MAX`](super::frames::NAME_BYTES_MAX) bytes.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        frame(out, |out| match *self {
            Request::Publish {
                topic,
                number,
                payload,
            } => {
                out.push(b'P');
                put_name(out, topic);
                out.extend_from_slice(&number.to_le_bytes());
                out.extend_from_slice(payload);
            }
            Request::Subscribe {
                topic,
                group,
                credit,
            } => {
                out.push(b'S');
                put_name(out, topic);
                put_name(out, group);
                out.extend_from_slice(&credit.to_le_bytes());
            }
            Request::Ack { delivery } => {
                out.push(b'A');
                out.extend_from_slice(&delivery.to_le_bytes());
            }
        });
    }

    /// Reads a frame, without its length.
    ///
    /// # Errors
    ///
    /// If there is no such frame.
    pub fn parse(frame: &'a [u8]) -> io::Result<Request<'a>> {
        let mut fields = Fields(frame);
        let request = match fields.byte()? {
            b'P' => Request::Publish {
                topic: fields.name()?,
                number: u64::from_le_bytes(fields.array()?),
                payload: fields.rest(),
            },
            b'S' => Request::Subscribe {
                topic: fields.name()?,
                group: fields.name()?,
                credit: u32::from_le_bytes(fields.array()?),
            },
            b'A' => Request::Ack {
                delivery: u64::from_le_bytes(fields.array()?),
            },
            _ => return Err(malformed("unknown frame")),
        };
        fields.end()?;
        Ok(request)
    }
}

impl<'a> Reply<'a> {
    /// Appends the frame, length and all.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        frame(out, |out| match *self {
            Reply::Confirm { number } => {
                out.push(b'C');
                out.extend_from_slice(&number.to_le_bytes());
            }
            Reply::Refuse { number } => {
                out.push(b'R');
                out.extend_from_slice(&number.to_le_bytes());
            }
            Reply::Deliver {
                delivery,
                attempt,
                payload,
            } => {
                out.push(b'D');
                out.extend_from_slice(&delivery.to_le_bytes());
                out.extend_from_slice(&attempt.to_le_bytes());
                out.extend_from_slice(payload);
            }
            Reply::Acked { delivery, in_time } => {
                out.push(b'K');
                out.extend_from_slice(&delivery.to_le_bytes());
                out.push(u8::from(in_time));
            }
        });
    }

    /// Reads a frame, without its length.
    ///
    /// # Errors
    ///
    /// If there is no such frame.
    pub fn parse(frame: &'a [u8]) -> io::Result<Reply<'a>> {
        let mut fields = Fields(frame);
        let reply = match fields.byte()? {
            b'C' => Reply::Confirm {
                number: u64::from_le_bytes(fields.array()?),
            },
            b'R' => Reply::Refuse {
                number: u64::from_le_bytes(fields.array()?),
            },
            b'D' => Reply::Deliver {
                delivery: u64::from_le_bytes(fields.array()?),
                attempt: u16::from_le_bytes(fields.array()?),
                payload: fields.rest(),
            },
            b'K' => Reply::Acked {
                delivery: u64::from_le_bytes(fields.array()?),
                in_time: fields.byte()? == 1,
            },
            _ => return Err(malformed("unknown frame")),
        };
        fields.end()?;
        Ok(reply)
    }
}
