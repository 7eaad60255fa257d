//! One end of a TCP connection: a state machine that takes segments, calls and expired timers, and
//! gives back segments (RFC 9293, without urgent data, options and delayed acknowledgements).
//!
//! ```text
//!   calls ───▶ calls.rs ──┐                     ┌──▶ segments to send
//!   segments ▶ input.rs ──┼──▶ output.rs ──▶ Output ─▶ wake-up of the socket
//!   timers ──▶ timers.rs ─┘                     └──▶ end of the record
//! ```
//!
//! Retransmission and its time-outs are those of RFC 6298, congestion control is that of RFC 5681
//! (slow start, congestion avoidance, fast retransmit). Sequence numbers have 64 bits and do not
//! wrap. The number of the first one is random, so that a late segment of an earlier connection is
//! recognised.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Time;
use super::address::{Errno, Result};

mod calls;
mod input;
mod output;
mod timers;

/// What two ends exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) seq: u64,
    pub(super) ack: Option<u64>,
    pub(super) flags: Flags,
    /// Bytes that the sender of the segment takes beyond `ack`.
    pub(super) window: u64,
    /// The largest payload that the sender takes; in segments with SYN.
    pub(super) mss: u32,
    pub(super) data: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flags {
    None,
    Syn,
    Fin,
    Rst,
}

impl Segment {
    /// How many sequence numbers the segment takes.
    fn len(&self) -> u64 {
        self.data.len() as u64 + u64::from(matches!(self.flags, Flags::Syn | Flags::Fin))
    }

    /// The reset that answers this segment where no connection is, none if it is a reset itself.
    pub(super) fn refusal(&self) -> Option<Segment> {
        if self.flags == Flags::Rst {
            return None;
        }
        let (seq, ack) = match self.ack {
            Some(ack) => (ack, None),
            None => (0, Some(self.seq + self.len())),
        };
        Some(Segment {
            seq,
            ack,
            flags: Flags::Rst,
            window: 0,
            mss: 0,
            data: Vec::new(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl State {
    /// As calls see it: what waits for late segments only belongs to no socket any more.
    fn is_closed(self) -> bool {
        matches!(self, Self::Closed | Self::TimeWait)
    }

    fn is_synchronised(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::TimeWait)
    }
}

/// How far `connect` has come, as the socket remembers it apart from the state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Unconnected,
    Connecting,
    Connected,
}

/// What follows from a step of a connection.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) segments: Vec<Segment>,
    /// Something has happened for which the kernel would wake those who poll.
    pub(super) wakes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Retransmit,
    /// The peer's window is full: asks whether it has opened.
    Probe,
    /// The record ends.
    End,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) state: State,
    progress: Progress,
    error: Option<Errno>,
    /// Nothing more comes in: the peer has sent FIN, or `shutdown`.
    read_shut: bool,
    write_shut: bool,
    /// The peer's FIN is in order.
    is_finished: bool,
    /// The socket is closed; the record lives on until all is delivered.
    pub(super) is_orphan: bool,

    mss: u64,
    send_capacity: usize,
    /// Sent and not acknowledged, and then what is not sent yet.
    send_queue: VecDeque<u8>,
    /// The number of the first byte of `send_queue`.
    send_start: u64,
    fin_queued: bool,
    unacknowledged: u64,
    next: u64,
    /// The largest `next` ever; `next` goes back when all is sent anew.
    highest: u64,
    /// The peer takes bytes below this number.
    send_limit: u64,
    congestion_window: u64,
    slow_start_until: u64,
    duplicate_acks: u32,
    /// A loss is being repaired by fast retransmit, until this number is acknowledged.
    recovering: Option<u64>,

    receive_capacity: usize,
    receive_queue: VecDeque<u8>,
    expected: u64,
    /// The peer may send below this number.
    advertised: u64,
    early: BTreeMap<u64, Vec<u8>>,
    fin_at: Option<u64>,

    timer: Option<(Time, Timer)>,
    round_trip: Option<Duration>,
    round_trip_variance: Duration,
    /// The segment that ends at this number was sent at this time, once.
    timed: Option<(u64, Time)>,
    timeout: Duration,
    /// Consecutive time-outs without an answer, and when the first one was.
    timeouts: u32,
    silent_since: Option<Time>,
}

const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// `tcp_syn_retries`.
const SYN_RETRIES: u32 = 6;
/// `tcp_synack_retries`.
const SYN_ACK_RETRIES: u32 = 5;
/// What 15 `tcp_retries2` are.
const SILENCE_LIMIT: Duration = Duration::from_millis(924_600);
/// What 8 retries of an orphan are.
const ORPHAN_SILENCE_LIMIT: Duration = Duration::from_millis(102_200);
/// `tcp_fin_timeout`, and the time that TIME_WAIT takes.
const LINGER: Duration = Duration::from_secs(60);
/// Segments of the first flight (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
