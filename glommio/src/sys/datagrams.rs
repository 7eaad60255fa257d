//! Datagrams in numbers: many received by one call, with what the kernel tells of each, and many
//! sent as segments of one buffer.

mod control;
mod name;
mod options;
mod receive;
mod send;

pub(crate) use options::{
    Told, has_segments, monotonic_ns, receive_drops, set_told, set_transmit_times,
};
pub(crate) use receive::{BATCH, Headers, Message};
pub(crate) use send::{Sending, send};
