//! Selective repeat over datagrams: a window, an acknowledgement and a timer for each.
//!
//! ```text
//!   sender                                                receiver
//!     window of segments ──▶ Data(sequence, segment) ──▶ reassembly ──▶ the stream
//!     acknowledged, sampled ◀── Ack(next, bitmap) ◀────────┘
//! ```
//!
//! These are the pure parts: they neither send, nor arm timers, nor look at a clock. The example
//! `reliable_udp` joins them to a file, a socket and a `DelayQueue`; the soak test to a link that
//! loses, doubles, swaps and damages what it carries, and to timers that it checks.

pub mod ack;
pub mod reassembly;
pub mod rto;
#[cfg(test)]
mod schedules;
pub mod window;
pub mod wire;
