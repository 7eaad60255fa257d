//! What the monitor and its worker say to each other, over a socket that is the worker's standard
//! input.
//!
//! ```text
//!   monitor                                  worker
//!     ◀────────────────────────── Began ──     the executors run
//!     ── Stall(from, to) ──────────────▶       you were stopped from then to then
//!     ── Interrupt ────────────────────▶       the run is to end
//!     ◀─────────────────────── Draining ──     no more stalls from here on
//!     ◀────────────────────────── Ended ──     all that was measured
//! ```
//!
//! A message is a line of JSON. When one end is gone, the other reads the end of the stream.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::measure::nanos;
use crate::record::Record;

/// From the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToWorker {
    /// The worker was stopped. In [`monotonic_ns`].
    Stall { from_ns: u64, to_ns: u64 },
    /// The run is to end early.
    Interrupt,
}

/// From the worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToMonitor {
    /// What is known of the run before it has run.
    Began(Box<Record>),
    Draining,
    Ended(Box<Record>),
}

pub(crate) fn send(mut wire: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    wire.write_all(&line)
}

/// Makes lines of the pieces that come in.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    received: Vec<u8>,
}

impl Lines {
    /// The messages that `piece` completes, in their order. An error: there was a line of another
    /// kind.
    pub(crate) fn messages<T>(&mut self, piece: &[u8]) -> io::Result<Vec<T>>
    where
        T: for<'line> Deserialize<'line>,
    {
        self.received.extend_from_slice(piece);
        let Some(end) = self.received.iter().rposition(|&byte| byte == b'\n') else {
            return Ok(Vec::new());
        };
        let rest = self.received.split_off(end + 1);
        let whole = std::mem::replace(&mut self.received, rest);
        let lines = whole[..end].split(|&byte| byte == b'\n');
        Ok(lines
            .map(serde_json::from_slice)
            .collect::<Result<_, _>>()?)
    }
}

/// The clock that all processes of a machine share.
pub(crate) fn monotonic_ns() -> io::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(nanos(Duration::from(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_whole_however_they_come_in_pieces() {
        let said = [
            ToWorker::Interrupt,
            ToWorker::Stall {
                from_ns: 1,
                to_ns: 2,
            },
            ToWorker::Interrupt,
        ];
        let (ours, mut theirs) = UnixStream::pair().expect("sockets can be made");
        for message in &said {
            send(&ours, message).expect("the other end is there");
        }
        drop(ours);
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut theirs, &mut bytes).expect("it was sent");
        for size in [1, 7, bytes.len()] {
            let mut lines = Lines::default();
            let received: Vec<ToWorker> = bytes
                .chunks(size)
                .flat_map(|piece| lines.messages(piece).expect("it was sent by us"))
                .collect();
            assert_eq!(received, said, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_of_another_kind_is_an_error() {
        let received = Lines::default().messages::<ToWorker>(b"hello\n");
        assert!(received.is_err(), "{received:?}");
    }
}
