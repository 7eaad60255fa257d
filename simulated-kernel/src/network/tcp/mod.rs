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

mod calls;
mod connection;
mod input;
mod limits;
mod output;
mod segment;
mod timers;

pub(super) use connection::{Connection, Output, State};
pub(super) use segment::{Flags, Segment};
