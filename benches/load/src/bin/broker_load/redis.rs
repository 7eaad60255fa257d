//! Redis' protocol, as far as publishing to a stream, reading it in a group and acknowledging need
//! it.
//!
//! A command is an array of byte strings; all of a reply is read token by token, so that a long
//! reply need not be whole before its first messages count.

use std::io;

use examples::broker::frames::malformed;

/// What names an entry of a stream: milliseconds, and a number within them.
pub type EntryId = (u64, u64);

/// Commands about one stream and its group [`GROUP`].
#[derive(Clone)]
pub struct Stream {
    key: String,
    /// Older entries are removed by Redis, so that the stream does not grow for ever.
    entries_max: String,
}

impl Stream {
    /// `outstanding` messages are kept at least; those that are acknowledged may be removed.
    pub fn new(key: &str, outstanding: u64) -> Stream {
        Stream {
            key: key.to_owned(),
            entries_max: outstanding.to_string(),
        }
    }

    /// Makes the stream and its group.
    pub fn append_create(&self, out: &mut Vec<u8>) {
        let words = ["XGROUP", "CREATE", &self.key, GROUP, "$", "MKSTREAM"];
        append_command(out, &words.map(str::as_bytes));
    }

    /// Publishes; answered with the entry's name.
    #[rustfmt::skip]
    pub fn append_publish(&self, out: &mut Vec<u8>, payload: &[u8]) {
        let words = ["XADD", &self.key, "MAXLEN", "~", &self.entries_max, "*", "m"];
        let [a, b, c, d, e, f, g] = words.map(str::as_bytes);
        append_command(out, &[a, b, c, d, e, f, g, payload]);
    }

    /// Asks for new messages; answered when there is one.
    #[rustfmt::skip]
    pub fn append_read(&self, out: &mut Vec<u8>) {
        let words = [
            "XREADGROUP", "GROUP", GROUP, "consumer", "COUNT", READ_ENTRIES_MAX, "BLOCK", "0", "STREAMS", &self.key, ">",
        ];
        append_command(out, &words.map(str::as_bytes));
    }

    /// Acknowledges one message; answered with 1, or 0 if it was not in flight.
    pub fn append_ack(&self, out: &mut Vec<u8>, (ms, number): EntryId) {
        let id = format!("{ms}-{number}");
        append_command(out, &["XACK", &self.key, GROUP, &id].map(str::as_bytes));
    }
}

fn append_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// A piece of a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// Begins so many elements.
    Array(u64),
    Bytes(&'a [u8]),
    Integer(i64),
    Status,
}

impl<'a> Token<'a> {
    /// The token at the beginning of `bytes`, and how many of them it takes. `None` if not all of
    /// it has come.
    ///
    /// An error that Redis reports is one here.
    pub fn parse(bytes: &'a [u8]) -> io::Result<Option<(Token<'a>, usize)>> {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
            return if bytes.len() > LINE_BYTES_MAX {
                Err(malformed("a line without an end"))
            } else {
                Ok(None)
            };
        };
        let (line, rest) = (&bytes[..end], &bytes[end + 2..]);
        let text = str::from_utf8(line).map_err(|_| malformed("a line that is no text"))?;
        let (kind, text) = text
            .split_at_checked(1)
            .ok_or_else(|| malformed("an empty line"))?;
        let token = match kind {
            "*" => Token::Array(number(text)?),
            ":" => Token::Integer(number(text)?),
            "+" => Token::Status,
            "-" => return Err(io::Error::other(format!("Redis says: {text}"))),
            "$" => {
                let length: usize = number(text)?;
                if length > BYTES_MAX {
                    return Err(malformed("a string of more than a mebibyte"));
                }
                if rest.len() < length + 2 {
                    return Ok(None);
                }
                return Ok(Some((Token::Bytes(&rest[..length]), end + length + 4)));
            }
            _ => return Err(malformed("a reply that is none of Redis'")),
        };
        Ok(Some((token, end + 2)))
    }
}

/// Follows a reply to [`Stream::append_read`]: an array of one stream, which is its key and an
/// array of entries, each of which is its name and an array of a field and a value.
#[derive(Default)]
pub struct Reading {
    /// What comes next: at 0 the stream, at 4 an entry.
    step: u8,
    /// Entries of this reply that have not come, and the name of the one that comes.
    entries: u64,
    id: EntryId,
}

impl Reading {
    /// The next message, if `token` ends one.
    pub fn message<'a>(&mut self, token: Token<'a>) -> io::Result<Option<(EntryId, &'a [u8])>> {
        match (self.step, token) {
            (0, Token::Array(1)) | (1 | 4 | 6, Token::Array(2)) | (2 | 7, Token::Bytes(_)) => {}
            (3, Token::Array(entries @ 1..)) => self.entries = entries,
            (5, Token::Bytes(id)) => self.id = entry_id(id)?,
            (8, Token::Bytes(value)) => {
                self.entries -= 1;
                self.step = if self.entries == 0 { 0 } else { 4 };
                return Ok(Some((self.id, value)));
            }
            _ => return Err(malformed("messages of an unknown form")),
        }
        self.step += 1;
        Ok(None)
    }

    /// Whether all of the reply has come, and nothing of another one.
    pub fn is_complete(&self) -> bool {
        self.step == 0
    }
}

/// Reads `1526919030474-55`.
pub fn entry_id(bytes: &[u8]) -> io::Result<EntryId> {
    let text = str::from_utf8(bytes).unwrap_or_default();
    let (ms, within) = text
        .split_once('-')
        .ok_or_else(|| malformed("an entry without a name"))?;
    Ok((number(ms)?, number(within)?))
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse()
        .map_err(|_| malformed("a number that is none, or nothing where something is due"))
}

const GROUP: &str = "load";
const READ_ENTRIES_MAX: &str = "1000";
const LINE_BYTES_MAX: usize = 1 << 10;
const BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &[u8] = b"*1\r\n*2\r\n$4\r\nload\r\n*2\r\n\
        *2\r\n$3\r\n7-0\r\n*2\r\n$1\r\nm\r\n$2\r\n\r\n\r\n\
        *2\r\n$4\r\n7-12\r\n*2\r\n$1\r\nm\r\n$0\r\n\r\n";

    /// A reply comes in pieces, wherever they are cut.
    #[test]
    fn messages_are_read_from_pieces() {
        for cut in 0..=READ.len() {
            let mut reading = Reading::default();
            let mut messages = Vec::new();
            let mut start = 0;
            for end in [cut, READ.len()] {
                while let Some((token, length)) = Token::parse(&READ[start..end]).unwrap() {
                    start += length;
                    let message = reading.message(token).unwrap();
                    messages.extend(message.map(|(id, payload)| (id, payload.to_vec())));
                }
            }
            assert!(reading.is_complete() && start == READ.len());
            assert_eq!(
                messages,
                [((7, 0), b"\r\n".to_vec()), ((7, 12), Vec::new())]
            );
        }
    }
}
