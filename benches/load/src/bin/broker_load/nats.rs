//! The protocol of NATS, as far as its JetStream needs it to take messages, deliver them to a
//! consumer and have them acknowledged.
//!
//! A line is a command; `PUB` and `MSG` have a payload behind it. The commands of JetStream are
//! messages to subjects of its own, and it answers to the subject that a message names.

use std::io;

use examples::broker::frames::malformed;

/// Numbers of a message in its stream and among the deliveries to its consumer: what an ack names.
pub type Sequence = (u64, u64);

/// A stream in memory and its one consumer, [`CONSUMER`].
pub struct JetStream {
    stream: String,
    /// Messages that the consumer may hold without an ack.
    outstanding: u64,
}

impl JetStream {
    pub fn new(stream: &str, outstanding: u64) -> JetStream {
        JetStream {
            stream: stream.to_owned(),
            outstanding,
        }
    }

    /// Makes the stream; answered to [`SETUP`]. What is acknowledged is removed.
    pub fn append_create_stream(&self, out: &mut Vec<u8>) {
        let stream = &self.stream;
        let config = format!(
            r#"{{"name":"{stream}","subjects":["{stream}.in"],"storage":"memory","retention":"workqueue"}}"#
        );
        let subject = format!("$JS.API.STREAM.CREATE.{stream}");
        append_publish(out, &subject, SETUP, config.as_bytes());
    }

    /// Makes the consumer; answered to [`SETUP`]. Messages come from then on, as [`DELIVER`].
    pub fn append_create_consumer(&self, out: &mut Vec<u8>) {
        let JetStream {
            stream,
            outstanding,
        } = self;
        let config = format!(
            r#"{{"stream_name":"{stream}","config":{{"durable_name":"{CONSUMER}","deliver_subject":"{DELIVER}","ack_policy":"explicit","ack_wait":{ACK_WAIT_NS},"max_ack_pending":{outstanding}}}}}"#
        );
        let subject = format!("$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{CONSUMER}");
        append_publish(out, &subject, SETUP, config.as_bytes());
    }

    /// Publishes; answered to [`CONFIRM`].
    pub fn append_publish(&self, out: &mut Vec<u8>, payload: &[u8]) {
        append_publish(out, &format!("{}.in", self.stream), CONFIRM, payload);
    }

    /// Acknowledges a message that was delivered once; answered to [`ACKED`].
    pub fn append_ack(&self, out: &mut Vec<u8>, (stream_number, delivery_number): Sequence) {
        // The time and the count at the end are for clients.
        let subject = format!(
            "$JS.ACK.{}.{CONSUMER}.1.{stream_number}.{delivery_number}.0.0",
            self.stream
        );
        append_publish(out, &subject, ACKED, b"+ACK");
    }
}

/// The first lines of a connection that receives what is sent to `subjects`; answered with `PONG`.
pub fn append_connect(out: &mut Vec<u8>, subjects: &[&str]) {
    out.extend_from_slice(b"CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"rust\"}\r\n");
    for (number, subject) in subjects.iter().enumerate() {
        out.extend_from_slice(format!("SUB {subject} {number}\r\n").as_bytes());
    }
    out.extend_from_slice(b"PING\r\n");
}

fn append_publish(out: &mut Vec<u8>, subject: &str, reply: &str, payload: &[u8]) {
    let line = format!("PUB {subject} {reply} {}\r\n", payload.len());
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// What the server sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    Message {
        subject: &'a str,
        /// Where to answer; empty if nowhere.
        reply: &'a str,
        payload: &'a [u8],
    },
    Ping,
    Pong,
    /// What it says of itself.
    Info,
}

impl<'a> Event<'a> {
    /// The event at the beginning of `bytes`, and how many of them it takes. `None` if not all of
    /// it has come.
    ///
    /// An error that the server reports is one here.
    pub fn parse(bytes: &'a [u8]) -> io::Result<Option<(Event<'a>, usize)>> {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
            return if bytes.len() > LINE_BYTES_MAX {
                Err(malformed("a line without an end"))
            } else {
                Ok(None)
            };
        };
        let line =
            str::from_utf8(&bytes[..end]).map_err(|_| malformed("a line that is no text"))?;
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        let event = match command {
            "PING" => Event::Ping,
            "PONG" => Event::Pong,
            "INFO" | "+OK" => Event::Info,
            "-ERR" => return Err(io::Error::other(format!("NATS says: {rest}"))),
            "MSG" => {
                let mut words = rest.split(' ');
                let mut word = || words.next().ok_or_else(|| malformed("a short message"));
                let (subject, _subscription, third) = (word()?, word()?, word()?);
                let (reply, length) = match word() {
                    Ok(length) => (third, length),
                    Err(_) => ("", third),
                };
                let length: usize = length.parse().map_err(|_| malformed("no length"))?;
                let start = end + 2;
                if length > BYTES_MAX {
                    return Err(malformed("a message of more than a mebibyte"));
                }
                if bytes.len() < start + length + 2 {
                    return Ok(None);
                }
                let payload = &bytes[start..start + length];
                let message = Event::Message {
                    subject,
                    reply,
                    payload,
                };
                return Ok(Some((message, start + length + 2)));
            }
            _ => return Err(malformed("a line that is none of NATS'")),
        };
        Ok(Some((event, end + 2)))
    }
}

/// The numbers in the subject to which a delivery is acknowledged:
/// `$JS.ACK.stream.consumer.deliveries.stream number.delivery number.time.pending`.
pub fn sequence(reply: &str) -> io::Result<Sequence> {
    let number = |index| {
        let word = reply.split('.').nth(index);
        word.and_then(|word| word.parse().ok())
            .ok_or_else(|| malformed("a delivery that cannot be acknowledged"))
    };
    Ok((number(5)?, number(6)?))
}

/// Whether JetStream has done what it was asked for.
pub fn is_done(payload: &[u8]) -> bool {
    !payload.windows(8).any(|bytes| bytes == b"\"error\":")
}

/// The subjects to which it sends.
pub const SETUP: &str = "load_setup";
pub const CONFIRM: &str = "load_confirm";
pub const DELIVER: &str = "load_deliver";
pub const ACKED: &str = "load_acked";

const CONSUMER: &str = "load";
/// As long as nothing is to be delivered again in a run, however busy the machine: ten minutes.
const ACK_WAIT_NS: u64 = 600_000_000_000;
const LINE_BYTES_MAX: usize = 8 << 10;
const BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &[u8] = b"INFO {\"server_id\":\"x y\"}\r\nPING\r\n\
        MSG load_deliver 0 $JS.ACK.load.load.1.7.9.123.4 2\r\n\r\n\r\nMSG load_acked 1 0\r\n\r\n";

    /// Events come in pieces, wherever they are cut.
    #[test]
    fn events_are_read_from_pieces() {
        for cut in 0..=EVENTS.len() {
            let mut start = 0;
            let mut messages = Vec::new();
            for end in [cut, EVENTS.len()] {
                while let Some((event, length)) = Event::parse(&EVENTS[start..end]).unwrap() {
                    start += length;
                    if let Event::Message { reply, payload, .. } = event {
                        messages.push((sequence(reply).ok(), payload));
                    }
                }
            }
            assert_eq!(start, EVENTS.len());
            assert_eq!(messages, [(Some((7, 9)), &b"\r\n"[..]), (None, b"")]);
        }
    }
}
