//! How large a round is.

use std::time::Duration;

/// What is done in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Of the stream, in pieces.
    pub(super) reads: usize,
    pub(super) datagrams: usize,
    /// Of the channel between the executors,
    pub(super) messages: usize,
    /// and of the one within.
    pub(super) local: usize,
    /// From one round to the next.
    pub(super) every: Duration,
}

/// So many times as long does an operation take without optimisation, at the least: fewer hold an executor for as long.
pub(super) const SLOWNESS: usize = if cfg!(debug_assertions) { 16 } else { 1 };
