//! Datagrams in numbers: many received by one call, with what the kernel tells of each, and many
//! sent as segments of one buffer.

mod control;
mod name;
mod options;
mod receive;
mod send;
#[cfg(feature = "simulation")]
mod simulated;
#[cfg(test)]
mod tests;

pub(crate) use control::BATCH;
pub(crate) use options::{
    Told, has_segments, monotonic_ns, receive_drops, set_told, set_transmit_times,
};
pub(crate) use receive::{Headers, Message};
pub(crate) use send::{Sending, send, send_many};
