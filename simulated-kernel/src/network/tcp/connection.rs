//! What one end knows of a connection.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::super::address::Time;
use super::segment::Segment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum State {
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
    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed | Self::TimeWait)
    }

    pub(super) fn is_synchronised(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::TimeWait)
    }
}

/// How far `connect` has come, as the socket remembers it apart from the state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Unconnected,
    Connecting,
    Connected,
}

/// What follows from a step of a connection.
#[derive(Debug, Default)]
pub(in super::super) struct Output {
    pub(in super::super) segments: Vec<Segment>,
    /// Something has happened for which the kernel would wake those who poll.
    pub(in super::super) wakes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Retransmit,
    /// The peer's window is full: asks whether it has opened.
    Probe,
    /// The record ends.
    End,
}

#[derive(Debug)]
pub(in super::super) struct Connection {
    pub(in super::super) state: State,
    pub(super) progress: Progress,
    pub(super) error: Option<i32>,
    /// Nothing more comes in: the peer has sent FIN, or `shutdown`.
    pub(super) read_shut: bool,
    pub(super) write_shut: bool,
    /// The peer's FIN is in order.
    pub(super) is_finished: bool,
    /// The socket is closed; the record lives on until all is delivered.
    pub(in super::super) is_orphan: bool,

    pub(super) mss: u64,
    pub(super) send_capacity: usize,
    /// Sent and not acknowledged, and then what is not sent yet.
    pub(super) send_queue: VecDeque<u8>,
    /// The number of the first byte of `send_queue`.
    pub(super) send_start: u64,
    pub(super) fin_queued: bool,
    pub(super) unacknowledged: u64,
    pub(super) next: u64,
    /// The largest `next` ever; `next` goes back when all is sent anew.
    pub(super) highest: u64,
    /// The peer takes bytes below this number.
    pub(super) send_limit: u64,
    pub(super) congestion_window: u64,
    pub(super) slow_start_until: u64,
    pub(super) duplicate_acks: u32,
    /// A loss is being repaired by fast retransmit, until this number is acknowledged.
    pub(super) recovering: Option<u64>,

    pub(super) receive_capacity: usize,
    pub(super) receive_queue: VecDeque<u8>,
    pub(super) expected: u64,
    /// The peer may send below this number.
    pub(super) advertised: u64,
    pub(super) early: BTreeMap<u64, Vec<u8>>,
    pub(super) fin_at: Option<u64>,

    pub(super) timer: Option<(Time, Timer)>,
    pub(super) round_trip: Option<Duration>,
    pub(super) round_trip_variance: Duration,
    /// The segment that ends at this number was sent at this time, once.
    pub(super) timed: Option<(u64, Time)>,
    pub(super) timeout: Duration,
    /// Consecutive time-outs without an answer, and when the first one was.
    pub(super) timeouts: u32,
    pub(super) silent_since: Option<Time>,
    /// How long no answer is waited for, if not for as long as by default.
    pub(super) user_timeout: Option<Duration>,
}
